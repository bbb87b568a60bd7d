"""How fast a snapshot is copied and written: a budget of bytes, so that the stream has its turn."""

from __future__ import annotations

import trio

from dataflow.run.clock import Clock

USUAL = 64 << 20  # bytes a second; more if a snapshot would take longer than half of the interval
_TURN = 1 << 17  # bytes that are copied in one turn
_LEAST = 0.0005  # seconds that are worth a sleep


class WritingPace:
    """Spreads the copying of `size` bytes over at most `seconds`. Where that is no time at all, it gives others their
    turn, and goes on."""

    def __init__(self, clock: Clock, size: int, seconds: float) -> None:
        self._clock = clock
        self._began = clock.now()
        self._rate = max(USUAL, size / seconds) if seconds > 0 else float("inf")  # bytes a second
        self._done = 0  # bytes
        self._turn = 0  # bytes of this turn

    async def did(self, size: int) -> None:
        """So many bytes were copied."""
        self._done += size
        self._turn += size
        if self._turn < _TURN:
            return
        self._turn = 0
        due = self._began + self._done / self._rate
        if due > self._clock.now() + _LEAST:
            await self._clock.sleep_until(due)
        else:
            await trio.lowlevel.checkpoint()
