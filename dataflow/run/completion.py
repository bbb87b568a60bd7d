"""How far a whole dataflow has come: what sources are paced by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.progress.graph import Location, Source, Target
from dataflow.progress.paths import split
from dataflow.progress.reach import downstream
from dataflow.run.signal import Signal
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow


class StreamEnds:
    """The places where the streams of a dataflow end, as this worker sees them: what a time must have passed to be
    complete everywhere."""

    def __init__(self, dataflow: Dataflow) -> None:
        graph = dataflow.graph
        self._dataflow = dataflow
        self.locations = _ends(dataflow)
        self._leaves = [(graph.index(location), len(graph.levels(location)) - 1) for location in self.locations]

    def passed(self, time: Time) -> bool:
        """Whether `time` is complete everywhere."""
        tracker = self._dataflow.tracker
        return not any(
            tracker.could_see(index, time) if depth == 0 else self._inside(index, depth, time)
            for index, depth in self._leaves
        )

    def _inside(self, index: int, depth: int, time: Time) -> bool:
        order = self._dataflow.graph.levels(self._dataflow.graph.locations[index])[0].less_equal
        return any(order(split(t, depth)[0], time) for t in self._dataflow.tracker.frontier(index))

    def frontier(self) -> list[Time]:
        """The times of the root that are not complete, at each end; several ends have several."""
        tracker = self._dataflow.tracker
        return [split(time, depth)[0] if depth else time for at, depth in self._leaves for time in tracker.frontier(at)]


def _ends(dataflow: Dataflow) -> list[Location]:
    """Outputs that nobody reads and inputs of operators without outputs; every input, if streams only go round.

    The keeper's do not count: it holds times for the snapshots that it takes, and sources must not wait for these.
    """
    graph, nodes = dataflow.graph, dataflow.program_nodes
    fed = {source for source, _ in graph.edges}
    lines = set(dataflow.lines)
    others = downstream(graph, lines)  # on time lines of their own: times of the entries mean nothing there
    locations = [location for location in graph.locations if nodes is None or location.node < nodes]
    locations = [location for location in locations if location.node not in others]
    inputs = [location for location in locations if isinstance(location, Target)]
    ends: list[Location] = [
        location for location in inputs if location.node in lines or not graph.nodes[location.node].outputs
    ]
    for location in locations:
        if location.node in lines:
            continue
        if isinstance(location, Source) and location not in fed and graph.nodes[location.node].inputs:
            ends.append(location)
    return ends or list(inputs)


class Completion:
    """Asks whether a time of the root is complete everywhere: past the frontiers of all the places where streams
    end."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._signal = Signal()
        self._ends: StreamEnds | None = None  # once built

    async def wait_built(self) -> bool:
        """Waits until the dataflow is complete, and finds its ends. False if it will never be."""
        await self._dataflow.started.wait()
        if not self._dataflow.built:
            return False
        self._ends = StreamEnds(self._dataflow)
        for location in self._ends.locations:
            self._dataflow.watch(location, self._signal.set)
        self._dataflow.on_end.append(self._signal.set)
        return True

    async def wait_passed(self, time: Time) -> None:
        """Waits until `time` is complete everywhere, or the dataflow is dropped."""
        while not self.passed(time) and not self._dataflow.dropped:
            await self._signal.wait()

    def passed(self, time: Time) -> bool:
        """Whether `time` is complete everywhere."""
        assert self._ends is not None
        return self._ends.passed(time)
