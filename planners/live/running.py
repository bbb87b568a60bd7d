"""An operator of a run that is under way, seen and steered through the run's door (`python -m dataflow list`).

It is what the loop asks of a controller (`planners.loop.steering.Steerable`), for a process beside the run. Each `look`
is an interval: it sums up what workers have reported since the last one, as rates per second, so that looks of any
length compare. A worker that has reported nothing meanwhile had nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dataflow.asking.answers.loads import LoadAnswer
from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.build.hooks import Movement, ShardReport
from planners.errors import BadRequest
from planners.loop.steering import Key

Ask = Callable[[str, Question, float], object]
Numbers = NDArray[np.int64]
PATIENCE = 15.0  # seconds for an answer


@dataclass(frozen=True, slots=True, eq=False)
class LookReport:
    """What one worker did between two looks, per second. Arrays by bin, those of keys by heavy key."""

    worker: int
    interval: int
    bins: Numbers
    records: Numbers
    nanoseconds: Numbers
    bytes: Numbers
    per_record: float
    keys: Sequence[Key]
    key_records: Numbers
    seconds: float = 1.0  # rates are per second
    span: int = 0
    until: int | None = None  # what came before a migration was complete never gets here
    elsewhere: int = 0
    apart: int = 0


class LookStatistics:
    """By finest bin, records and nanoseconds per second between the last two looks, and bytes; by worker, all of it."""

    def __init__(self, bins: int) -> None:
        self.records, self.nanoseconds, self.bytes = (np.zeros(bins, np.int64) for _ in range(3))
        self.heavy: dict[int, LookReport] = {}

    def heard(self, reports: Iterable[LookReport]) -> None:
        """Accepts what all workers did between two looks."""
        self.records[:], self.nanoseconds[:] = 0, 0
        for report in reports:
            here = report.bytes > 0
            bins = report.bins[here]
            self.records[bins] += report.records[here]
            self.nanoseconds[bins] += report.nanoseconds[here]
            self.bytes[bins] = report.bytes[here]
            self.heavy[report.worker] = report


class RunningOperator:
    """An operator of a running program. Call `look` at each interval; `hear` is given the reports of each, by bin."""

    def __init__(self, run: str, operator: str, strategy: str = "batched:64", ask: Ask = ask_run) -> None:
        self._run, self._operator, self._strategy, self._ask = run, operator, strategy, ask
        self._since = self._looks = self.lost = 0
        self._stale = True  # what was counted before, or while bins moved, says little of how it is now
        self._bins: dict[Key, int] = {}  # of heavy keys, and of those that live apart
        self.listeners: list[Callable[[LookReport], None]] = []
        self._answer = self._asked()
        self.statistics = LookStatistics(len(self._answer.places))

    def _asked(self) -> LoadAnswer:
        question = Question("loads", {"operator": self._operator, "since": self._since})
        answer = self._ask(self._run, question, PATIENCE)
        if not isinstance(answer, LoadAnswer):
            raise BadRequest("the run answers something else: use the same version of this project as it does")
        self._since = answer.news.number
        self.lost += answer.news.lost
        self._bins |= {key: bin for key, bin, _ in answer.news.apart}
        return answer

    def look(self) -> bool:
        """Whether something was heard that the loop may judge by. NoSuchRun when the run has ended."""
        was_moving = self._answer.moving
        self._answer = self._asked()
        reports = [_summed(worker, self._looks, some) for worker, some in self._by_worker().items()]
        self._looks += 1
        for report in reports:
            for listen in self.listeners:
                listen(self._coarsened(report))
        usable = not (self._stale or was_moving or self._answer.moving) and any(len(r.bins) for r in reports)
        self._stale = self._answer.moving or was_moving
        if usable:
            self.statistics.heard(reports)
        return usable

    def _by_worker(self) -> dict[int, list[ShardReport]]:
        by_worker: dict[int, list[ShardReport]] = defaultdict(list)
        for worker in self._answer.members:
            by_worker[worker] = []
        for report in self._answer.news.reports:
            by_worker[report.worker].append(report)
            self._bins |= dict(zip(report.keys, report.key_shards, strict=False))
        return by_worker

    def _coarsened(self, report: LookReport) -> LookReport:
        """By the bins that there are, for a log: those are what a table is about."""
        if len(self.counts) == len(self._answer.places):
            return report
        group = np.repeat(np.arange(len(self.counts)), self.counts)[report.bins]
        bins, place = np.unique(group, return_inverse=True)
        records, nanoseconds, sizes = (_totals(place, each, len(bins)) for each in _amounts(report))
        return replace(report, bins=bins, records=records, nanoseconds=nanoseconds, bytes=sizes)

    @property
    def configuration(self) -> tuple[int, ...]:
        """By finest bin, its worker."""
        return tuple(self._answer.places.tolist())

    @property
    def counts(self) -> Numbers:
        """By bin, how many finest ones it has."""
        return self._answer.groups

    @property
    def peers(self) -> int:
        """One more than the greatest number of a worker that can have bins."""
        return 1 + max(self._answer.members)

    @property
    def members(self) -> Sequence[int]:
        """The workers that can have bins."""
        return sorted(self._answer.members)

    @property
    def pinned(self) -> Mapping[Key, int]:
        """By key that lives apart from its bin, its worker."""
        return {key: worker for key, _, worker in self._answer.news.apart}

    @property
    def pins_keys(self) -> bool:
        """Keys cannot be pinned from outside: those that are apart stay so."""
        return False

    @property
    def busy(self) -> bool:
        """Whether a migration that was asked for from outside is under way."""
        return self._answer.moving

    @property
    def settled(self) -> None:
        """Nothing that came before a migration was complete gets into the statistics."""

    def bins_of(self, keys: list[Key], /) -> ArrayLike:
        """The bins (as a log has them) of keys that were reported."""
        group = np.repeat(np.arange(len(self.counts)), self.counts)
        return group[[self._bins[key] for key in keys]]

    def passed(self, time: int, /) -> bool:
        """Whether a time is done: nobody asks, since each worker has a report at each look."""
        return True

    def loads(self, cost: str) -> NDArray[np.float64]:
        """By bin that there is, its load per second."""
        amounts = self.statistics.records if cost == "records" else self.statistics.nanoseconds
        return np.add.reduceat(amounts, np.cumsum(self.counts) - self.counts).astype(float)

    def migrate(
        self,
        to: Sequence[int],
        strategy: str | None = None,
        pins: Mapping[Key, int | None] | None = None,
        splits: Sequence[str] = (),
        merges: Sequence[str] = (),
    ) -> None:
        """Asks the run to move bins. Refused if it will not."""
        if pins or splits or merges:
            raise BadRequest("from outside, bins are moved, and neither pinned, split nor merged")
        words = {"to": as_words(to), "strategy": strategy or self._strategy}
        question = Question("migrate", {"operator": self._operator, "action": "begin", **words})
        answer = self._ask(self._run, question, PATIENCE)
        assert isinstance(answer, Movement)
        self._stale = True

    def reshape(self, splits: Sequence[str] = (), merges: Sequence[str] = ()) -> None:
        """Bins stay as they are."""
        raise BadRequest("from outside, bins are moved, and neither split nor merged by a loop")


def _amounts(report: LookReport) -> tuple[Numbers, Numbers, Numbers]:
    return report.records, report.nanoseconds, report.bytes


def _summed(worker: int, look: int, reports: Sequence[ShardReport]) -> LookReport:
    """A worker's reports between two looks, as rates. Bytes are the last that were told."""
    seconds = sum(report.seconds for report in reports if report.whole) or 1.0
    bins = np.unique(np.concatenate([np.empty(0, np.int64), *(report.shards for report in reports)]))
    records, nanoseconds, sizes = np.zeros(len(bins)), np.zeros(len(bins)), np.zeros(len(bins), np.int64)
    keys: dict[Key, float] = defaultdict(float)
    for report in reports:
        place = np.searchsorted(bins, report.shards)
        records[place] += report.records / seconds
        nanoseconds[place] += report.nanoseconds / seconds
        sizes[place] = report.bytes
        for key, count in zip(report.keys, report.key_records, strict=True):
            keys[key] += count / seconds
    last = [report.per_record for report in reports if report.whole]
    counts = _whole(np.array([*keys.values()], np.float64))
    per_record = last[-1] if last else 0.0
    return LookReport(worker, look, bins, _whole(records), _whole(nanoseconds), sizes, per_record, [*keys], counts)


def _whole(rates: NDArray[np.float64]) -> Numbers:
    return rates.round().astype(np.int64)


def _totals(place: Numbers, amounts: Numbers, bins: int) -> Numbers:
    return np.bincount(place, amounts, bins).astype(np.int64)


def as_words(to: Sequence[int]) -> str:
    """A map of bins as `python -m dataflow migrate --to` has it.

    >>> as_words([0, 0, 1, 2, 2])
    '0-1=0,2=1,3-4=2'
    """
    starts = [bin for bin in range(len(to)) if bin == 0 or to[bin] != to[bin - 1]]
    ends = [*starts[1:], len(to)]
    return ",".join(
        f"{start}={to[start]}" if end == start + 1 else f"{start}-{end - 1}={to[start]}"
        for start, end in zip(starts, ends, strict=True)
    )
