"""The worker's clock: trio's, real or virtual. A simulation may replace it to make simultaneous wake-ups
deterministic."""

from __future__ import annotations

import trio

from dataflow.run.timers import Timer, make_timer

_SHORT = 0.05  # seconds: who sleeps for longer does not mind a millisecond


class Clock:
    """Seconds, on the clock of the trio loop."""

    _timers: list[Timer] | None = None  # those that nobody uses

    def now(self) -> float:
        """The current time."""
        return trio.current_time()

    async def sleep_until(self, deadline: float) -> None:
        """Waits until the clock shows `deadline`. Always a checkpoint.

        trio's loop sleeps in whole milliseconds, and so up to one too long. A short sleep has a timer of its own beside
        the deadline, which ends it in time. On a virtual clock it is the deadline that does.
        """
        left = deadline - trio.current_time()
        if 0 < left < _SHORT:
            if self._timers is None:
                self._timers = []
            timer = self._timers.pop() if self._timers else make_timer()
            if timer is not None:
                try:
                    with trio.move_on_at(deadline):
                        await timer.wait(left)
                finally:
                    self._timers.append(timer)
                if trio.current_time() >= deadline:
                    return
        await trio.sleep_until(deadline)

    def close(self) -> None:
        """Nobody sleeps any more."""
        for timer in self._timers or ():
            timer.close()
        self._timers = None
