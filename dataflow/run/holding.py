"""Who holds which time back, since when, from whom, and along which path: `explain` as typed values that can travel.

A location's summaries and ways never change once its graph is complete, so they are computed once and kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dataflow.progress.graph import Graph, Location, Source
from dataflow.progress.paths import PathSummary
from dataflow.progress.reach import path_summaries
from dataflow.progress.tracker import Pointstamp
from dataflow.run.completion import StreamEnds
from dataflow.time.order import Time, less_equal

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump

MOST_HELD = 200  # times of one dataflow that are told
MOST_WAITING = 8
MOST_HOLDERS = 4  # of one who waits
_KEPT = 64  # locations whose summaries are kept


@dataclass(frozen=True, slots=True)
class HeldTime:
    """Something outstanding: capabilities at an output, or messages on their way to an input."""

    operator: int
    port: int
    output: bool
    time: str
    count: int  # on all workers, as far as this one has heard
    here: int  # of these, on this worker
    since: float  # wall clock; 0 if it is not known


@dataclass(frozen=True, slots=True)
class HolderReading:
    """Who keeps a time from being complete somewhere."""

    operator: int
    output: bool
    time: str
    here: int  # how many of them on this worker
    since: float
    path: tuple[int, ...]  # operators, from this one to where it is waited for


@dataclass(frozen=True, slots=True)
class WaitingReading:
    """Somebody who waits for a time to be complete: a probe that main waits for, or an end of the dataflow."""

    who: str
    operator: int
    time: str
    holders: tuple[HolderReading, ...]


@dataclass(frozen=True, slots=True)
class HoldingReading:
    """One dataflow, as one worker sees it."""

    dataflow: str
    held: tuple[HeldTime, ...]
    waiting: tuple[WaitingReading, ...]


class _Ways:
    """What is kept of a graph: summaries from a location, and the next step of a shortest way to a location."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._summaries: dict[Location, Mapping[Location, list[PathSummary]]] = {}
        self._next: dict[Location, dict[Location, Location]] = {}
        self._back: dict[Location, list[Location]] = {}
        for a, b, _ in graph.hops():
            self._back.setdefault(b, []).append(a)

    def holds(self, start: Location, time: Time, end: Location, awaited: Time) -> bool:
        """Whether a pointstamp could still lead to a time at or before the awaited one."""
        if start not in self._summaries:
            if len(self._summaries) >= _KEPT:
                self._summaries.clear()
            self._summaries[start] = path_summaries(self._graph, start)
        outcomes = (path.results_in(time) for path in self._summaries[start].get(end, ()))
        return any(outcome is not None and less_equal(outcome, awaited) for outcome in outcomes)

    def path(self, start: Location, end: Location) -> tuple[int, ...]:
        """The operators on a shortest way, both ends included; none if there is no way."""
        following = self.towards(end)
        if start != end and start not in following:
            return ()
        nodes, here = [start.node], start
        while here != end:
            here = following[here]
            if here.node != nodes[-1]:
                nodes.append(here.node)
        return tuple(nodes)

    def towards(self, end: Location) -> dict[Location, Location]:
        """By location from which there is a way to `end`, the next one on it."""
        if end not in self._next:
            if len(self._next) >= _KEPT:
                self._next.clear()
            found: dict[Location, Location] = {}
            queue = deque([end])
            while queue:
                here = queue.popleft()
                for before in self._back.get(here, ()):
                    if before not in found and before != end:
                        found[before] = here
                        queue.append(before)
            self._next[end] = found
        return self._next[end]


_KNOWN: WeakKeyDictionary[Graph, _Ways] = WeakKeyDictionary()


def read_holding(pump: Pump) -> list[HoldingReading]:
    """Of all dataflows. O(pointstamps), and O(graph) for each that is looked at for the first time."""
    dates = pump.meter.date_pointstamps()
    return [_read(dataflow, dates.get(dataflow.number, {})) for dataflow in pump.dataflows]


def _read(dataflow: Dataflow, dates: Mapping[Pointstamp, float]) -> HoldingReading:
    ways = _KNOWN.get(dataflow.graph)
    if ways is None:
        ways = _KNOWN[dataflow.graph] = _Ways(dataflow.graph)
    there = sorted(dataflow.tracker.pointstamps().items(), key=lambda item: dates.get(item[0], 0.0))
    held = [_held(dataflow, index, time, count, dates) for (index, time), count in there[:MOST_HELD] if count > 0]
    waiting = []
    for who, location, awaited in _waits(dataflow):
        holders: list[HolderReading] = []
        reaching = ways.towards(location)
        for (index, time), count in there:
            at = dataflow.graph.locations[index]
            if count <= 0 or (at != location and at not in reaching) or not ways.holds(at, time, location, awaited):
                continue
            mine = _held(dataflow, index, time, count, dates)
            path = ways.path(at, location)
            holders.append(HolderReading(at.node, mine.output, mine.time, mine.here, mine.since, path))
            if len(holders) >= MOST_HOLDERS:
                break
        waiting.append(WaitingReading(who, location.node, str(awaited), tuple(holders)))
    return HoldingReading(dataflow.name, tuple(held), tuple(waiting))


def _waits(dataflow: Dataflow) -> Iterator[tuple[str, Location, Time]]:
    """Those who wait: first the probes that main waits for, then the ends of the dataflow."""
    told = 0
    for probe in dataflow.probes:
        for awaited in probe.awaited[: MOST_WAITING - told]:
            told += 1
            yield f"main waits for output {probe.source.port} of {dataflow.operators[probe.source.node].label}", (
                probe.source
            ), awaited
    for location in StreamEnds(dataflow).locations[: MOST_WAITING - told]:
        for time in [*dataflow.tracker.frontier(dataflow.graph.index(location))][:1]:
            yield f"the end of the dataflow at {dataflow.operators[location.node].label}", location, time


def _held(dataflow: Dataflow, index: int, time: Time, count: int, dates: Mapping[Pointstamp, float]) -> HeldTime:
    location = dataflow.graph.locations[index]
    operator = dataflow.operators[location.node]
    if isinstance(location, Source):
        here = operator.outputs[location.port].held.get(time, 0)
    else:
        here = sum(1 for at, _ in operator.inputs[location.port].queue if at == time)
    since = dates.get((index, time), 0.0)
    return HeldTime(location.node, location.port, isinstance(location, Source), str(time), count, here, since)
