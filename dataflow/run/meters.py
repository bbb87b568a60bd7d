"""What a worker counts as it works: always on, and so nearly free.

- Operators, ports and channels have plain numbers, to which the hot path adds: `Dataflow.sweep`, `LocalChannel.push`.
- A turn of the pump costs two looks at the clock and one comparison (`Meter.turned`). Every few milliseconds a turn
  *looks* as well: it samples how long a time takes from when its worker's entries have left it until it is complete
  everywhere.
- Everything else is computed when somebody asks: `dataflow.run.readings`.

Who holds which time, and since when: pointstamps are dated at most once a second. None can have come after the last
turn, so whoever asks later knows the dates of the newest ones as well.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns, time
from typing import TYPE_CHECKING

from dataflow.progress.tracker import Pointstamp
from dataflow.run.completion import StreamEnds
from dataflow.run.telemetry import tell_span
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.hooks import DecisionLoop
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.limits import StateLimit
    from dataflow.run.pump import Pump
    from dataflow.run.stepping import Stepping

log = logging.getLogger("dataflow")
SAMPLE_EVERY = 20_000_000  # nanoseconds from one sample of latency to the next, at least
DATE_EVERY = 1_000_000_000  # nanoseconds between looks at pointstamps
DATED = 4096  # pointstamps that are dated at most: those of a dataflow that has more are not of interest one by one
RECENT = 600  # samples, and marks, that are kept to be shown
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of latencies, in seconds."""


@dataclass(slots=True)
class Latencies:
    """Samples of how long times took, in buckets; and the last ones as they were."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0  # of all of them together
    recent: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECENT))  # (wall clock, seconds)

    def note(self, seconds: float) -> None:
        """One more sample."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.recent.append((time(), seconds))


class Sampler:
    """Samples latencies of one dataflow: chooses the time at which its entries are, waits until they have left it, and
    then until it is complete everywhere."""

    __slots__ = ("_ends", "_entries", "_left", "_time", "_total", "chosen", "latencies")

    def __init__(self, dataflow: Dataflow) -> None:
        self._entries = dataflow.entries
        self._total = all(port.domain.total for port in dataflow.entries)  # no other times can be told apart
        self._ends = StreamEnds(dataflow)
        self._time: Time = None
        self._left: int | None = None  # when the entries left the time that was chosen
        self.chosen = False  # whether a time was, and is not complete
        self.latencies = Latencies()

    def choose(self) -> None:
        """Begins with the time at which the entries are, if they are at one."""
        least = self._least()
        if least is not None:
            self._time, self._left, self.chosen = least[0], None, True

    def look(self, began: int, now: int) -> None:
        """A turn has passed. Times move in turns alone: what was so at its beginning was so before."""
        if self._left is None:
            least = self._least()
            if least is not None and not self._time < least[0]:
                return
            self._left = began
        if self._ends.passed(self._time):
            self.latencies.note((now - self._left) / 1e9)
            self.chosen = False

    def waits(self) -> float:
        """For how many seconds the chosen time has been complete here and not everywhere."""
        return (perf_counter_ns() - self._left) / 1e9 if self.chosen and self._left is not None else 0.0

    def lag(self) -> tuple[Time | None, Time | None]:
        """The time at which this worker's entries are, and the least that is not complete; None where there is none."""
        least, left = self._least(), self._ends.frontier()
        return (None if least is None else least[0]), (min(left) if left and self._total else None)

    def _least(self) -> tuple[Time] | None:
        if not self._total:
            return None
        held = [min(port.held) for port in self._entries if port.held]
        return (min(held),) if held else None


@dataclass(slots=True, eq=False)
class Mark:
    """Something that happened and may explain what latency did: a migration, a snapshot, a recovery, another
    membership."""

    when: float  # wall clock
    kind: str
    text: str
    until: float = 0.0  # wall clock; 0 while it is under way


class Meter:
    """What one worker has counted beside what its operators have."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self.since = time()
        self.began = perf_counter_ns()
        self.busy_ns = 0  # in turns: operators, progress, messages
        self.turns = 0
        self.longest_ns = 0  # turn
        self.last = self.began  # when the last turn ended
        self._awaited = 0  # tasks that wait for times now
        self._awaited_ns = 0
        self._awaited_since = 0
        self.stepped: Sequence[Stepping] = ()  # dataflows that had something to do in this turn
        self._samplers: dict[int, Sampler] = {}  # by number of the dataflow
        self._chosen = 0  # of them wait for a time
        self.marks: deque[Mark] = deque(maxlen=RECENT)
        self.marked: Counter[str] = Counter()  # marks so far, by kind
        self.loops: list[DecisionLoop] = []  # of the program's, that show themselves
        self.state_limit: StateLimit | None = None
        self._next_look = 0
        self._next_choice = 0
        self._next_dates = 0
        self._dates: dict[int, dict[Pointstamp, float]] = {}  # by dataflow, since when (wall clock) each is there

    def turned(self, began: int, ended: int) -> None:
        """A turn of the pump has ended."""
        took = ended - began
        self.busy_ns += took
        self.turns += 1
        self.last = ended
        if took > self.longest_ns:
            self.longest_ns = took
        if ended >= self._next_look:
            self._look(began, ended)
        self.stepped = ()

    def await_begins(self) -> None:
        """A task of the program's waits for a time."""
        if not self._awaited:
            self._awaited_since = perf_counter_ns()
        self._awaited += 1

    def await_ends(self) -> None:
        """It does not wait any longer."""
        self._awaited -= 1
        if not self._awaited:
            self._awaited_ns += perf_counter_ns() - self._awaited_since

    @property
    def awaiting_ns(self) -> int:
        """How long any have waited, until now."""
        return self._awaited_ns + (perf_counter_ns() - self._awaited_since if self._awaited else 0)

    def sampler(self, dataflow: Dataflow) -> Sampler:
        """Who samples latencies of a dataflow."""
        sampler = self._samplers.get(dataflow.number)
        if sampler is None:
            sampler = self._samplers[dataflow.number] = Sampler(dataflow)
        return sampler

    def mark(self, kind: str, text: str, since: float | None = None) -> None:
        """Something has happened: in this moment, or from `since` until now."""
        self.end(self.begin(kind, text, since))

    def begin(self, kind: str, text: str, since: float | None = None) -> Mark:
        """Something begins that takes a while; `end` must follow."""
        mark = Mark(time() if since is None else since, kind, text)
        self.marks.append(mark)
        self.marked[kind] += 1
        return mark

    def end(self, mark: Mark, text: str | None = None) -> None:
        """It is over; `text`: what has become of it."""
        mark.text = mark.text if text is None else text
        mark.until = max(mark.when, time())
        log.info("%s: %s", mark.kind, mark.text, extra={"worker": self._pump.index})
        tell_span(self._pump.index, mark.kind, mark.text, mark.when, mark.until)

    def _look(self, began: int, now: int) -> None:
        """Goes on with samples that are under way, at each turn; chooses new ones, and dates pointstamps, seldom. Only
        of dataflows that had something to do: in others no time has moved, however many there are."""
        chooses = now >= self._next_choice
        dataflows = self._pump.running_dataflows
        for stepped in self.stepped:
            dataflow = dataflows.get(stepped.number)
            if dataflow is None:  # it has ended
                sampler = self._samplers.get(stepped.number)
                if sampler is not None and sampler.chosen:
                    sampler.chosen = False
                    self._chosen -= 1
                continue
            sampler = self.sampler(dataflow)
            before = sampler.chosen
            if before:
                sampler.look(began, now)
            elif chooses:
                sampler.choose()
            self._chosen += sampler.chosen - before
        if chooses:
            self._next_choice = now + SAMPLE_EVERY
        self._next_look = now if self._chosen else self._next_choice
        if self.state_limit is not None:
            self.state_limit.check(self._pump, now)
        if now >= self._next_dates:
            self._next_dates = now + DATE_EVERY
            self.date_pointstamps()

    def date_pointstamps(self) -> dict[int, dict[Pointstamp, float]]:
        """By dataflow and pointstamp, since when it is there. What is new came before the end of the last turn."""
        last_turn = time() - (perf_counter_ns() - self.last) / 1e9
        dates = {}
        for dataflow in self._pump.dataflows:
            known, there = self._dates.get(dataflow.number, {}), dataflow.tracker.pointstamps()
            some = there if len(there) <= DATED else [*there][:DATED]
            dates[dataflow.number] = {stamp: known.get(stamp, last_turn) for stamp in some}
        self._dates = dates
        return dates
