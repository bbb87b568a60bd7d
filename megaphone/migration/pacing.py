"""Steps as large as a bound on the latency allows: what `within(latency)` does. Pure: numbers in, numbers out.

Nobody knows beforehand what a step costs: that depends on bins, rates, workers and the machine. So the pacer begins
with little state at a time, sees what it did to the latency, and sizes the next steps by that. The budget bounds the
bytes of all steps under way together, each of which has a part of it. So small steps overlap, and what they do together
is what the next budget follows from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from dataflow.time.order import Time

FIRST = 64 << 10  # bytes under way at first
LEAST = 4 << 10  # and at the least
MOST = 1 << 30
AIM = 0.7  # of the bound: the peak that is aimed at, since the next one may be higher
PARTS = 4  # a step has such a part of the budget, so that others can overlap with it
LOOKS = 8  # latencies that are seen before the first step
FASTEST = 2.0  # the budget grows by no more at a time
SLOWEST = 0.25  # and shrinks by no more
WAIT = 10.0  # times the bound: if the latency is above it all the while, the migration goes on all the same
STEADY = 0.1  # the weight of a new latency in the mean of those without a step


class Pacer:
    """How many bytes may be under way. `saw` and `completed` tell it what happened; `room` is what may be sent now.

    The latency of a step is taken for a constant and a part that grows with its bytes. After every budget's worth of
    bytes the peak since then says what the budget should have been to reach `AIM` of the bound.
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self.budget = FIRST
        self.base = 0.0  # the mean latency while nothing moves
        self._looks = 0
        self._peak = 0.0  # of the round
        self._moved = 0  # bytes of the round: steps that are complete
        self._waited = 0.0  # seconds that nothing could be sent because of the latency

    def saw(self, latency: float, steady: bool) -> None:
        """A time took so long. `steady`: no step was under way."""
        self._looks += 1
        if steady:
            weight = max(STEADY, 1 / self._looks)
            self.base += weight * (latency - self.base)
        self._peak = max(self._peak, latency)

    def completed(self, size: int) -> None:
        """A step of that many bytes is complete."""
        self._moved += size
        if self._moved >= self.budget // 2 or self._peak > self.bound:
            self._adjust()

    def _adjust(self) -> None:
        """Ends a round: what it moved caused its peak, so a multiple of it would have caused a multiple of that."""
        wanted, caused = AIM * self.bound - self.base, max(self._peak - self.base, self.bound * 1e-3)
        factor = min(FASTEST, max(SLOWEST, wanted / caused))
        if self._peak > self.bound:
            factor = min(factor, 0.5)
        self.budget = min(MOST, max(LEAST, int(self.budget * factor)))
        self._peak, self._moved = 0.0, 0

    def room(self, under_way: int, age: float, seconds: float) -> int:
        """How many bytes may be sent now, where so many are under way; `age`: for how long the oldest time has been
        waiting. `seconds` have passed since this was last asked."""
        if self._looks < LOOKS and self._waited < self.bound:
            self._waited += seconds
            return 0
        if age > AIM * self.bound and self._waited < WAIT * self.bound:
            self._waited += seconds
            return 0
        self._waited = 0.0 if age <= AIM * self.bound else self._waited
        self._looks = max(self._looks, LOOKS)
        part = max(LEAST, self.budget // PARTS)
        return part if part <= self.budget - under_way else 0


class PaceLatencies:
    """How long times take, as somebody sees it who hands them in and looks now and then which are complete.

    A caller that is late itself, because its worker did something else, has kept records waiting, too: by how much its
    calls are further apart than they usually are. Costs: O(1) for each call, and for each time once more.
    """

    def __init__(self) -> None:
        self._open: deque[tuple[Time, float, float]] = deque()  # times, when they were handed in, and how late
        self._last: tuple[Time, float] | None = None  # where the input was, and since when
        self._usual: float | None = None  # seconds between two calls

    def handed(self, time: Time, now: float) -> float:
        """The input has been advanced to a time; the seconds since it was before."""
        if self._last is None:
            self._last = time, now
            return 0.0
        at, since = self._last
        gap = now - since
        if not at < time:
            return 0.0
        usual = gap if self._usual is None else self._usual
        self._open.append((at, now, max(0.0, gap - 1.5 * usual)))
        self._usual = min(usual + 0.05 * (gap - usual), 2 * usual) if usual else gap
        self._last = time, now
        return gap

    def completed(self, passed: Callable[[Time], bool], now: float) -> Iterator[float]:
        """The latencies of times that have been completed since this was last asked."""
        while self._open and passed(self._open[0][0]):
            _, at, late = self._open.popleft()
            yield now - at + late

    def age(self, now: float) -> float:
        """For how long the oldest time that is not complete has been waiting."""
        return now - self._open[0][1] + self._open[0][2] if self._open else 0.0
