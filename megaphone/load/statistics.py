"""What planners want to know of a running operator: records, processing time and bytes of state, by bin and interval.

Each worker counts as it applies records, which costs an addition per record (with more than 2^16 bins, where that would
be a cache miss, one block of 64 records in 61 stands for the others). Once per interval it reports its counts to every
worker, on an ordinary stream. A record counts when it comes, and not again at the time to which it was put off: what is
due now came a window ago, and predicts nothing. Processing time is measured per batch, records that were put off
included, and shared out by records. Heavy keys are those of a sketch (see `heavy`, and `tally` for rows).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataflow import Stream
from dataflow.channels.pact import Audience
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Capability, Context, InputPort, Keeps, MessageCapability, OutputPort
from dataflow.state.values import Key
from dataflow.time.durations import Duration, is_duration, seconds
from megaphone.control.configuration import Table
from megaphone.keys.keyspace import as_list

Numbers: TypeAlias = NDArray[np.int64]
Heaviest: TypeAlias = tuple[Sequence[Key] | Numbers, Numbers, Numbers]
"""Heavy keys, their records, and by how much these may be too many."""
Counted: TypeAlias = tuple[NDArray[np.integer], Callable[[int, int], Numbers]]
"""Records so far, by bin, and what tells the bytes of bins from one number up to another."""
N = TypeVar("N", bound=np.integer)
_AT_ONCE = 1 << 14  # bins in one part; with more, reports are rarer in proportion
UNKNOWN = -1  # the size of a bin that nobody has reported


def _nothing() -> Numbers:
    return np.empty(0, np.int64)


def _zeros(bins: int, kind: type[N]) -> NDArray[N]:
    """Zeros in memory that has been touched: with 2^20 bins, the first touch costs more than all else in a report, and
    in a report records wait for it."""
    array = np.empty(bins, kind)
    array.fill(0)
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One worker's bins in one interval, or some of them: a large report comes in parts. Arrays by bin."""

    worker: int
    interval: int
    seconds: float
    bins: Numbers
    records: Numbers
    nanoseconds: Numbers
    bytes: Numbers
    span: int = 0  # of time, in the dataflow's own units; 0 if it is not known
    keys: Sequence[Key] | Numbers = ()  # heavy ones, apart from their bins or in them: an array, or a list for rows
    key_records: Numbers = field(default_factory=_nothing)  # of each: its records, or more
    key_errors: Numbers = field(default_factory=_nothing)  # by how much that may be too many
    until: int | None = None  # the dataflow's time that the interval ends with, if `span` is known
    apart: int = 0  # records of keys that live apart, which are in no bin's
    apart_nanoseconds: int = 0
    is_last: bool = True  # of the parts of a report: the one with keys (it may arrive before others)
    elsewhere: int = 0  # records that the other parts have
    names: Sequence[Key] = ()  # heavy keys as people write them, where `keys` are hashes of these

    @property
    def shown_keys(self) -> list[Key]:
        """The heavy keys as people write them."""
        return list(self.names) if self.names else as_list(self.keys)

    @property
    def per_record(self) -> float:
        """Nanoseconds that a record took."""
        records = int(self.records.sum()) + self.apart
        return (float(self.nanoseconds.sum()) + self.apart_nanoseconds) / records if records else 0.0


class Statistics:
    """The last report of each bin, from whichever worker has it."""

    def __init__(self, bins: int) -> None:
        self.records: Numbers = _zeros(bins, np.int64)  # in the bin's last interval
        self.nanoseconds: Numbers = _zeros(bins, np.int64)
        self.bytes: Numbers = _zeros(bins, np.int64)
        self.kept = True  # whether the operator reports: not if its interval is None
        self.seconds = 0.0  # how long an interval was
        self.reports = 0
        self.heavy: dict[int, Load] = {}  # by worker, its last report: for its heavy keys
        self.history: list[Load] | None = None  # set to a list to keep every report
        self.listeners: list[Callable[[Load], None]] = []  # called with every report, once it is noted here
        self._parts = -(-bins // _AT_ONCE)  # of a report
        self._first: Counter[int] = Counter()  # by worker, how many parts of its first report have arrived

    def heard(self, load: Load) -> None:
        """Accepts a worker's report. A bin without a byte has left that worker: its new owner reports it."""
        here = load.bytes > 0
        bins = load.bins[here]
        self.records[bins] = load.records[here]
        self.nanoseconds[bins] = load.nanoseconds[here]
        self.bytes[bins] = load.bytes[here]
        self._first[load.worker] += load.interval == 0
        self.note(load)
        for listen in self.listeners:
            listen(load)

    def note(self, load: Load) -> None:
        """Keeps a report, beside what it says of bins."""
        if load.is_last:
            self.seconds = load.seconds
            self.heavy[load.worker] = load
            self.reports += 1
        if self.history is not None:
            self.history.append(load)

    def sizes_of(self, bins: Numbers, places: Table) -> Numbers:
        """The bytes of some bins as last reported, or UNKNOWN. A worker reports all bins that it has, so a bin without
        a byte is empty if its worker (`places`, by bin) has reported anything, and unknown if not."""
        sizes, told = self.bytes[bins], [worker for worker, parts in self._first.items() if parts >= self._parts]
        return np.where((sizes > 0) | np.isin(places[bins], told), sizes, UNKNOWN)


def _checked_interval(given: float | Duration | None, name: str) -> float | None:
    """In seconds."""
    refused = ConstructionError(
        f"{name}: interval is {given!r}; it is a number of seconds from 0 on or a duration, or None for no reports"
    )
    try:
        interval = seconds(given) if is_duration(given) else given
    except ValueError as error:
        raise refused from error
    if interval is not None and not (isinstance(interval, int | float) and 0 <= interval < float("inf")):
        raise refused
    return interval


class Reporter:
    """Reports once per interval what a worker's S has counted: `counter` gives the counts, `heavy` the heavy keys.

    With very many bins, records would wait too long for a whole report: it goes in parts, one with each time.
    """

    def __init__(
        self,
        context: Context,
        output: OutputPort,
        bins: int,
        interval: float | Duration | None,
        counter: Callable[[], Counted],
        heavy: Callable[[], Heaviest | None] = lambda: None,
        names: Callable[[Sequence[Key] | Numbers], Sequence[Key]] = lambda keys: (),
    ) -> None:
        length = _checked_interval(interval, context.name)
        self._heavy = heavy
        self._names = names
        self._inputs = context.inputs
        self._telling: Iterator[Load] | None = None  # the parts of a report that have not been sent
        self._clock = context.clock
        self._worker = context.worker
        self._output = output
        self._interval = None if length is None else length * max(1, bins // _AT_ONCE)
        self._counter = counter
        self._began = self._clock.now()
        self._numbered = 0
        self._capability: Capability | None = None
        self._last: int | None = None  # the time up to which everything was counted in an earlier interval
        self._before, self._now, self._records = (_zeros(bins, np.uint32) for _ in range(3))
        self._spent = 0
        self._apart = 0

    def saw(self, message: MessageCapability) -> None:
        """A message has come: its time is one to report at, if a report is due."""
        if (
            self._interval is not None
            and self._capability is None
            and self._clock.now() - self._began >= self._interval
        ):
            self._capability = message.retain(self._output.number)

    def spent(self, nanoseconds: int, apart: int) -> None:
        """Counts time that went into applying records, and how many of these were of keys that live apart."""
        self._spent += nanoseconds
        self._apart += apart

    def report(self, time: int | None = None, since: int | None = None) -> None:
        """Everything at the time at hand, and at those `since` another, has been applied: the moment for a report that
        is due."""
        if self._last is None and time is not None:
            self._last = (time if since is None else since) - 1
        if self._capability is not None:
            if self._telling is None:
                self._telling = self._parts(time)
            self._tell(self._telling, self._capability)

    def end(self) -> None:
        """Sends the rest of a report when no time will come any more to send it with. For each step of the host."""
        while self._telling is not None and not any(port.frontier for port in self._inputs):
            assert self._capability is not None
            self._tell(self._telling, self._capability)

    def _tell(self, parts: Iterator[Load], capability: Capability) -> None:
        load = next(parts)
        self._output.give(capability, [load])
        if load.is_last:
            capability.drop()
            self._capability = self._telling = None

    def _parts(self, time: int | None) -> Iterator[Load]:
        now, counts = self._clock.now(), self._records
        counted, sizes_of = self._counter()
        self._now[:] = counted.view(np.uint32) if counted.itemsize == 4 else counted & 0xFFFFFFFF
        np.subtract(self._now, self._before, out=counts)  # tables count in 32 bits, which may come round
        self._before, self._now = self._now, self._before
        total = int(counts.sum(dtype=np.int64)) + self._apart
        each = self._spent / total if total else 0.0
        span, mine = self._span(time), (self._worker, self._numbered, now - self._began)
        keys, key_records, key_errors = self._heavy() or ([], _nothing(), _nothing())
        apart, self._apart, self._spent, self._began = self._apart, 0, 0, now
        self._numbered += 1
        elsewhere = 0
        for first in range(0, len(counts), _AT_ONCE):
            end = min(first + _AT_ONCE, len(counts))
            records, sizes = counts[first:end].astype(np.int64), sizes_of(first, end)
            used = np.flatnonzero((records > 0) | (sizes > 0))
            records = records[used]
            part = (*mine, used + first, records, (records * each).astype(np.int64), sizes[used], span)
            if end == len(counts):
                heavy = (keys, key_records, key_errors)
                more = (time, apart, int(apart * each))
                yield Load(*part, *heavy, *more, elsewhere=elsewhere, names=self._names(keys))
            else:
                elsewhere += int(records.sum())
                yield Load(*part, until=time, is_last=False)

    def _span(self, time: int | None) -> int:
        if time is None or self._last is None:
            return 0
        self._last, span = time, time - self._last
        return span


def collect(stream: Stream[Load], statistics: Statistics, name: str) -> None:
    """Brings every worker's reports to every worker."""

    def step(input: InputPort, output: OutputPort) -> None:
        for _, loads in input:
            for load in loads:
                statistics.heard(load)

    stream.unary(f"{name} statistics", lambda _: step, pact=Audience(), keeps=Keeps.NOTHING)


def as_columns(history: list[Load]) -> Columns:
    """A history as columns: interval, worker, bin, records, bytes, cost (nanoseconds): the log that planners want."""
    return Columns(
        {
            "interval": _spread(history, lambda load: load.interval),
            "worker": _spread(history, lambda load: load.worker),
            "bin": _joined([load.bins for load in history]),
            "records": _joined([load.records for load in history]),
            "bytes": _joined([load.bytes for load in history]),
            "cost": _joined([load.nanoseconds for load in history]),
        }
    )


def _joined(arrays: list[Numbers]) -> Numbers:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _spread(history: list[Load], of: Callable[[Load], int]) -> Numbers:
    return _joined([np.full(len(load.bins), of(load), np.int64) for load in history])
