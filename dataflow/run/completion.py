"""How far a whole dataflow has come: what sources are paced by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.progress.graph import Location, Source, Target
from dataflow.progress.paths import split
from dataflow.run.signal import Signal
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow


class Completion:
    """Asks whether a time of the root is complete everywhere: past the frontiers of all the places where streams
    end."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._signal = Signal()
        self._leaves: list[tuple[int, int]] = []  # (index of location, depth), once built

    async def wait_built(self) -> bool:
        """Waits until the dataflow is complete, and finds its ends. False if it will never be."""
        await self._dataflow.started.wait()
        if not self._dataflow.built:
            return False
        graph = self._dataflow.graph
        for location in self._ends():
            self._leaves.append((graph.index(location), len(graph.levels(location)) - 1))
            self._dataflow.watch(location, self._signal.set)
        self._dataflow.on_end.append(self._signal.set)
        return True

    def _ends(self) -> list[Location]:
        """Outputs that nobody reads and inputs of operators without outputs; every input, if streams only go round.

        The keeper's do not count: it holds times for the snapshots that it takes, and sources must not wait for these.
        """
        graph, nodes = self._dataflow.graph, self._dataflow.program_nodes
        fed = {source for source, _ in graph.edges}
        locations = [location for location in graph.locations if nodes is None or location.node < nodes]
        inputs = [location for location in locations if isinstance(location, Target)]
        ends: list[Location] = [location for location in inputs if not graph.nodes[location.node].outputs]
        for location in locations:
            if isinstance(location, Source) and location not in fed and graph.nodes[location.node].inputs:
                ends.append(location)
        return ends or list(inputs)

    async def wait_passed(self, time: Time) -> None:
        """Waits until `time` is complete everywhere, or the dataflow is dropped."""
        while not self.passed(time) and not self._dataflow.dropped:
            await self._signal.wait()

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
