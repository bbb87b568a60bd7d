"""How the tracker's cost grows: with the operators that a change reaches, and with the times that are outstanding."""

import time
from collections.abc import Iterable
from statistics import median

from bench.registry import benchmark
from bench.run import Run
from dataflow.progress.graph import Graph, Source, Target
from dataflow.progress.paths import Levels, advance, identity
from dataflow.progress.tracker import AcyclicTracker, Change, CyclicTracker, Tracker
from dataflow.time.timestamp import Integers, Product

INTEGERS: Levels = (Integers(),)
TRACKERS: tuple[type[AcyclicTracker | CyclicTracker], ...] = (AcyclicTracker, CyclicTracker)


@benchmark("tracker", "the tracker's cost per change, with 10 to 1,000 operators and 1 to 10,000 outstanding times")
def tracker(run: Run) -> None:
    epochs = 50 if run.quick else 300
    for size in run.each("operators", [10, 100, 1000]):
        for kind in TRACKERS:
            chain = _chain(size, loop=False)
            seconds = _seconds_per_epoch(kind(chain), _advances(chain, epochs, depth=1))
            run.report(f"{kind.__name__}, chain of {size}: an epoch, each operator", seconds / size * 1e6, "µs")
            seconds = _seconds_per_epoch(kind(chain), _local(chain, epochs))
            run.report(f"{kind.__name__}, chain of {size}: a change at the last operator", seconds * 1e6, "µs")
        ring = _chain(size, loop=True)
        seconds = _seconds_per_epoch(CyclicTracker(ring), _advances(ring, epochs, depth=1))
        run.report(f"CyclicTracker, ring of {size}: an epoch, each operator", seconds / size * 1e6, "µs")
    chain = _chain(10, loop=False)
    for outstanding in run.each("outstanding times", [1, 100, 10_000]):
        for kind in TRACKERS:
            seconds = _seconds_per_epoch(kind(chain), _advances(chain, epochs, outstanding))
            run.report(f"{kind.__name__}, {outstanding} times outstanding: an epoch through 10", seconds * 1e6, "µs")
        pairs = _chain(10, loop=False, levels=(Product(int, int),))
        rounds = epochs if outstanding <= 100 else 10  # a partial order looks at every time that it filed: this is slow
        seconds = _seconds_per_epoch(CyclicTracker(pairs), _pairs(pairs, rounds, outstanding))
        run.report(f"pairs, {outstanding} times outstanding: an epoch through 10", seconds * 1e6, "µs")


def _chain(size: int, loop: bool, levels: Levels = INTEGERS) -> Graph:
    """An input and `size` operators in a row; as a loop, the last one feeds the first, one later."""
    graph = Graph()
    graph.add_node("input", [], [levels], {}, [0])
    graph.add_node("first", [levels] * (1 + loop), [levels], {(i, 0): identity(levels) for i in range(1 + loop)})
    graph.add_edge(Source(0, 0), Target(1, 0))
    for number in range(2, size + 1):
        graph.add_node("operator", [levels], [levels], {(0, 0): identity(levels)})
        graph.add_edge(Source(number - 1, 0), Target(number, 0))
    if loop:
        graph.add_node("feedback", [levels], [levels], {(0, 0): advance(levels, (1,))})
        graph.add_edge(Source(size, 0), Target(size + 1, 0))
        graph.add_edge(Source(size + 1, 0), Target(1, 1))
    graph.freeze()
    return graph


def _advances(graph: Graph, epochs: int, depth: int) -> Iterable[list[Change]]:
    """An input that holds `depth` times and, again and again, gives up the first and takes a new last."""
    here = graph.index(Source(0, 0))
    yield [((here, t), +1) for t in range(depth)]
    for epoch in range(epochs):
        yield [((here, epoch + depth), +1), ((here, epoch), -1)]


def _pairs(graph: Graph, epochs: int, depth: int) -> Iterable[list[Change]]:
    here = graph.index(Source(0, 0))
    yield [((here, (t, 0)), +1) for t in range(depth)]
    for epoch in range(epochs):
        yield [((here, (epoch + depth, 0)), +1), ((here, (epoch, 0)), -1)]


def _local(graph: Graph, epochs: int) -> Iterable[list[Change]]:
    """The input holds time 0; a message comes and goes at the last operator, which nothing else can notice."""
    last = max(node for node in range(len(graph.nodes)))
    here = graph.index(Target(last, 0))
    yield [((graph.index(Source(0, 0)), 0), +1)]
    for epoch in range(epochs):
        yield [((here, epoch), +1)]
        yield [((here, epoch), -1)]


def _seconds_per_epoch(tracker: Tracker, batches: Iterable[list[Change]]) -> float:
    first, *rest = batches
    tracker.propagate(first)
    seconds = []
    for batch in rest:
        start = time.perf_counter()
        tracker.propagate(batch)
        seconds.append(time.perf_counter() - start)
    return median(seconds)
