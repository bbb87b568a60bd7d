"""Brute force for progress tracking: push every time along every hop until nothing changes.

Only the graph's plain data is read (nodes, edges, and the fields `kept` and `fresh` of its connections). Every
comparison and every addition is made here. Searches end because a set of minimal times can grow downwards only
finitely often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dataflow.progress.graph import Graph, Location, Source, Target

Time = Any
Reached = dict[Location, set[Time]]

FAR = 1000  # later than any time that a small graph leads to: a path that starts a level afresh shows as going back


def before(t: Time, u: Time) -> bool:
    """At or before, in the partial order."""
    if isinstance(t, int):
        return t <= u
    if isinstance(t, tuple):
        return all(before(a, b) for a, b in zip(t, u, strict=True))
    return t.less_equal(u)


def apply(summary: Any, time: Time) -> Time | None:
    """What a summary of one level makes of a time of that level."""
    if isinstance(summary, int):
        return time + summary
    if isinstance(summary, tuple):
        parts = [apply(s, t) for s, t in zip(summary, time, strict=True)]
        return None if any(part is None for part in parts) else tuple(parts)
    return summary.results_in(time) if hasattr(summary, "results_in") else time  # the engine's identity has no methods


def through(path: Any, time: Time) -> Time | None:
    """What one hop makes of a time; None if nothing comes out. `path` is None along an edge."""
    if path is None:
        return time
    levels = time if len(path.origin) > 1 else (time,)
    out = [apply(summary, level) for summary, level in zip(path.kept, levels, strict=False)] + list(path.fresh)
    if any(level is None for level in out):
        return None
    return tuple(out) if len(out) > 1 else out[0]


def locations(graph: Graph) -> Iterator[Location]:
    """Every end of an edge, whether the graph is frozen or not."""
    for number, node in enumerate(graph.nodes):
        yield from (Target(number, port) for port in range(len(node.inputs)))
        yield from (Source(number, port) for port in range(len(node.outputs)))


def hops_of(graph: Graph) -> dict[Location, list[tuple[Location, Any]]]:
    """Where a time can go in one step, and under which path."""
    hops: dict[Location, list[tuple[Location, Any]]] = {location: [] for location in locations(graph)}
    for source, target in graph.edges:
        hops[source].append((target, None))
    for number, node in enumerate(graph.nodes):
        for (i, o), path in node.connections.items():
            hops[Target(number, i)].append((Source(number, o), path))
    return hops


def minimal(times: Iterable[Time]) -> set[Time]:
    """The times that no other is before."""
    present = set(times)
    return {t for t in present if not any(u != t and before(u, t) for u in present)}


def reach(graph: Graph, starts: Iterable[tuple[Location, Time]]) -> Reached:
    """The minimal times at each location that the given pointstamps could result in."""
    hops = hops_of(graph)
    reached: Reached = {location: set() for location in hops}
    todo = list(starts)
    while todo:
        here, time = todo.pop()
        if any(before(t, time) for t in reached[here]):
            continue
        reached[here] = {t for t in reached[here] if not before(time, t)} | {time}
        outcomes = ((there, through(path, time)) for there, path in hops[here])
        todo += [(there, outcome) for there, outcome in outcomes if outcome is not None]
    return reached


def frontiers(graph: Graph, counts: Mapping[tuple[Location, Time], int]) -> Reached:
    """The frontier at every location: what the pointstamps with positive counts could result in."""
    return reach(graph, [pointstamp for pointstamp, count in counts.items() if count > 0])


def could_result_in(graph: Graph, start: Location, time: Time, end: Location, later: Time) -> bool:
    """Whether some path takes (start, time) to (end, later) or earlier."""
    return any(before(t, later) for t in reach(graph, [(start, time)])[end])


def far_time(levels: tuple[Any, ...]) -> Time:
    """A time that is late at each level."""
    far = tuple(_far(domain.minimum) for domain in levels)
    return far if len(far) > 1 else far[0]


def _far(minimum: Time) -> Time:
    if isinstance(minimum, int):
        return FAR
    return tuple(map(_far, minimum)) if isinstance(minimum, tuple) else type(minimum)(FAR, FAR)


def has_unadvanced_cycle(graph: Graph) -> bool:
    """Whether some way round leads back to where it began, at a time that is no later."""
    hops = hops_of(graph)
    for here, out in hops.items():
        time = far_time(graph.levels(here))
        first = [(there, through(path, time)) for there, path in out]
        back = reach(graph, [(there, t) for there, t in first if t is not None])[here]
        if any(before(t, time) for t in back):
            return True
    return False
