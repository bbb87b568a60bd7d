"""For how long who was under pressure, and by what: whoever looks once a second misses what comes and goes."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter_ns


class PressureClock:
    """One worker's account: it hears of all pressure. `look` is called when some begins or ends, which is seldom."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], int] = {}  # by (worker, dataflow or ON_ITS_WAY), those that last
        self._nanoseconds: dict[tuple[int, int], int] = {}

    def look(self, pressing: Iterable[tuple[int, int]]) -> None:
        """Who is under pressure now, and by what."""
        now, there = perf_counter_ns(), {*pressing}
        for who in [who for who in self._since if who not in there]:
            self._nanoseconds[who] = self._nanoseconds.get(who, 0) + now - self._since.pop(who)
        for who in there:
            self._since.setdefault(who, now)

    def seconds(self) -> dict[tuple[int, int], float]:
        """By who was under pressure and by what: for how long, until now."""
        now = perf_counter_ns()
        lasting = {who: now - since for who, since in self._since.items()}
        both = self._nanoseconds.keys() | lasting.keys()
        return {who: (self._nanoseconds.get(who, 0) + lasting.get(who, 0)) / 1e9 for who in sorted(both)}
