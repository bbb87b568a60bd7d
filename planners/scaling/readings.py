"""From what workers have counted, read twice, to the work of the interval between. Pure.

The counters are Protocols: those of `dataflow.run.readings` satisfy them, and nothing here imports an engine. An
operator without an input is a source; what it brings in is what it sends out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from planners.scaling.work import OperatorWork, RecordFlow, SourceWork, WorkInterval


class EdgeCounts(Protocol):
    """What came into one input."""

    @property
    def source(self) -> int:
        """The number of the operator that it comes from; negative if nothing does."""
        ...

    @property
    def records(self) -> int: ...


class OperatorCounts(Protocol):
    """One operator on one worker."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def busy(self) -> float:
        """Useful time, in seconds."""
        ...

    @property
    def records_out(self) -> int: ...
    @property
    def edges(self) -> Sequence[EdgeCounts]: ...


class DataflowCounts(Protocol):
    """One dataflow on one worker."""

    @property
    def number(self) -> int: ...
    @property
    def operators(self) -> Sequence[OperatorCounts]: ...


class WorkerCounts(Protocol):
    """One worker. Counters grow for as long as its process (`pid`) lives."""

    @property
    def worker(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def when(self) -> float: ...
    @property
    def busy(self) -> float:
        """Seconds in which it did anything, operators' included."""
        ...

    @property
    def thread(self) -> float:
        """Seconds of processor time of the thread in which it did so; what main computes is in it as well."""
        ...

    @property
    def dataflows(self) -> Sequence[DataflowCounts]: ...


def work_between(
    before: Sequence[WorkerCounts],
    after: Sequence[WorkerCounts],
    offered: Mapping[str, float] | None = None,
    backlog: Mapping[str, float] | None = None,
) -> WorkInterval | None:
    """What was done between two readings of all workers; None if they cannot be compared, because workers have joined,
    left or been replaced, or because no time has passed. `offered` and `backlog`: by name of a source, records per
    second that there were to bring in, and records that wait outside."""
    first, last = ({each.worker: each for each in reading} for reading in (before, after))
    if first.keys() != last.keys() or any(first[worker].pid != last[worker].pid for worker in first):
        return None
    seconds = sum(last[worker].when - first[worker].when for worker in first) / len(first) if first else 0.0
    if seconds <= 0:
        return None
    totals = _Totals()
    for worker, reading in last.items():
        share = _share_running(first[worker], reading)
        totals.add(reading, 1, share)
        totals.add(first[worker], -1, share)
    sources, operators = totals.works(offered or {}, backlog or {})
    useful = sum(source.busy for source in sources) + sum(operator.busy for operator in operators)
    overhead = max(0.0, totals.busy - useful)
    return WorkInterval(seconds, len(last), sources, operators, totals.record_flows(), overhead)


def _share_running(before: WorkerCounts, after: WorkerCounts) -> float:
    """The share of its busy time in which a worker really ran, at most: to wait for a processor is not useful time.

    Not by the delays that the system counts: a worker that is seldom busy has most of them when it is woken, before
    its busy time begins, and would seem to need next to nothing on a crowded machine.
    """
    busy, ran = after.busy - before.busy, after.thread - before.thread
    return min(1.0, max(0.0, ran) / busy) if busy > 0 else 1.0


class _Totals:
    """Counters of all workers, added up."""

    def __init__(self) -> None:
        self.busy = 0.0
        self._busy: dict[str, float] = defaultdict(float)
        self._out: dict[str, float] = defaultdict(float)
        self._into: dict[str, float] = defaultdict(float)
        self._flows: dict[tuple[str, str], float] = defaultdict(float)
        self._plain: dict[str, str] = {}  # the operator's own name, by that with its number
        self._sources: dict[str, bool] = {}

    def add(self, reading: WorkerCounts, sign: int, useful: float) -> None:
        """Adds a reading, or takes it off. `useful`: that share of its times."""
        self.busy += sign * reading.busy * useful
        for flow in reading.dataflows:
            names = {each.number: f"{each.name} ({flow.number}.{each.number})" for each in flow.operators}
            for each in flow.operators:
                name = names[each.number]
                self._plain[name] = each.name
                self._busy[name] += sign * each.busy * useful
                self._out[name] += sign * each.records_out
                edges = [edge for edge in each.edges if edge.source in names]
                self._sources[name] = not edges
                for edge in edges:
                    self._into[name] += sign * edge.records
                    self._flows[names[edge.source], name] += sign * edge.records

    def works(
        self, offered: Mapping[str, float], backlog: Mapping[str, float]
    ) -> tuple[list[SourceWork], list[OperatorWork]]:
        sources, operators = [], []
        for name, is_source in self._sources.items():
            busy = max(0.0, self._busy[name])
            plain = self._plain[name]
            if is_source:
                rate = offered.get(plain)
                sources.append(SourceWork(name, max(0.0, self._out[name]), busy, rate, backlog.get(plain, 0.0)))
            else:
                operators.append(OperatorWork(name, max(0.0, self._into[name]), busy))
        return sources, operators

    def record_flows(self) -> list[RecordFlow]:
        return [RecordFlow(*ends, max(0.0, records)) for ends, records in self._flows.items()]
