"""When a main that never has to wait lets everybody else run."""

from __future__ import annotations

from math import inf

OFTEN = 16  # times that main goes on before other tasks have their turn
_LONG = 500e-6  # seconds


class Breath:
    """One worker's. A checkpoint of trio's each time would cost a quarter of an epoch."""

    def __init__(self) -> None:
        self._last = -inf  # when main last let all others run
        self._since = 0  # how often it has not, since

    def held(self, now: float) -> bool:
        """Whether main may go on: all others have their turn every 16th time, and after half a millisecond. If not, it
        must let them now."""
        self._since += 1
        if self._since < OFTEN and now - self._last < _LONG:
            return True
        self._last, self._since = now, 0
        return False
