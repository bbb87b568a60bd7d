"""When a main that never has to wait lets everybody else run."""

from __future__ import annotations

from math import inf

import trio

OFTEN = 16  # times that main goes on before other tasks have their turn
_LONG = 500e-6  # seconds


class Breath:
    """One worker's. A checkpoint of trio's each time would cost a quarter of an epoch."""

    def __init__(self) -> None:
        self._last = -inf  # when main last let all others run
        self._since = 0  # how often it has not, since

    async def take(self, now: float, pumped: bool) -> None:
        """A checkpoint: it can be cancelled, and all others have their turn every 16th time, and after half a
        millisecond; each time, if no pump runs in this loop (a simulation)."""
        self._since += 1
        if pumped and self._since < OFTEN and now - self._last < _LONG:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            self._last, self._since = now, 0
            await trio.lowlevel.checkpoint()
