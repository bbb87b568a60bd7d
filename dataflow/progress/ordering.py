"""In which order changes propagate, and which cycles are refused: two answers of one decomposition.

At level 0 take away every hop that advances level 0. What still lies on a cycle must be advanced at a deeper level,
so it must lie wholly inside nested scopes; a location at depth 0 on such a cycle proves that time does not advance.
The strongly connected components, in topological order, give each location its position at level 0; inside each
component the same is done for level 1, and so on.

A change of time (t0, t1, ...) at a location with positions (p0, p1, ...) is then processed in the order of the
interleaved key (t0, p0, t1, p1, ...). Every hop increases that key: it advances the time of some level, keeping what
comes before it in the key, or it leads to a later component at a level before which nothing changed. So a pass in the
order of keys meets each (location, time) at most once, and terminates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dataflow.errors import UnadvancedCycle

if TYPE_CHECKING:
    from dataflow.progress.graph import Graph, Location
    from dataflow.progress.paths import PathSummary

Hops = dict["Location", list[tuple["Location", "PathSummary | None"]]]


def propagation_order(graph: Graph, locations: list[Location]) -> tuple[dict[Location, tuple[int, ...]], bool]:
    """The positions of each location, one per level of its scope; and whether the whole graph is acyclic."""
    hops: Hops = {location: [] for location in locations}
    for start, end, path in graph.hops():
        hops[start].append((end, path))
    ranks: dict[Location, tuple[int, ...]] = dict.fromkeys(locations, ())
    whole = components(locations, {start: [end for end, _ in out] for start, out in hops.items()})
    # Hops that advance time are taken away below, and yet must lead upwards wherever the whole graph allows it.
    _decompose(graph, hops, [location for component in whole for location in component], 0, ranks)
    return ranks, all(len(component) == 1 for component in whole)


def _decompose(
    graph: Graph, hops: Hops, within: list[Location], level: int, ranks: dict[Location, tuple[int, ...]]
) -> None:
    inside = set(within)
    still = {
        start: [e for e, path in hops[start] if e in inside and not (path is not None and path.advances(level))]
        for start in within
    }
    for position, component in enumerate(components(within, still)):
        for location in component:
            ranks[location] = (*ranks[location], position)
        deeper = [location for location in component if len(graph.levels(location)) > level + 1]
        if len(component) > 1 and len(deeper) < len(component):
            shallow = next(location for location in component if location not in set(deeper))
            raise UnadvancedCycle(_cycle_names(graph, shallow, still))
        if deeper:
            _decompose(graph, hops, deeper, level + 1, ranks)


def _cycle_names(graph: Graph, start: Location, edges: dict[Location, list[Location]]) -> tuple[str, ...]:
    """The operators on a shortest cycle through `start`."""
    came_from: dict[Location, Location] = {}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in edges[here]:
            if there == start:
                path = [here]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return _names(graph, reversed(path))
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    raise AssertionError("a component with more than one member has a cycle through each of them")


def _names(graph: Graph, path: Iterable[Location]) -> tuple[str, ...]:
    nodes = dict.fromkeys(location.node for location in path)
    return tuple(f"{graph.nodes[node].name} (#{node})" for node in nodes)


def components(nodes: list[Location], edges: dict[Location, list[Location]]) -> list[list[Location]]:
    """The strongly connected components in topological order (Tarjan's algorithm, without recursion). O(nodes +
    edges)."""
    order: dict[Location, int] = {}
    low: dict[Location, int] = {}
    stack: list[Location] = []
    on_stack: set[Location] = set()
    found: list[list[Location]] = []
    for root in reversed(nodes):  # so that, where edges leave a choice, the order of construction is kept
        if root in order:
            continue
        work = [(root, iter(edges[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            here, following = work[-1]
            for there in following:
                if there not in order:
                    order[there] = low[there] = len(order)
                    stack.append(there)
                    on_stack.add(there)
                    work.append((there, iter(edges[there])))
                    break
                if there in on_stack:
                    low[here] = min(low[here], order[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[here])
                if low[here] == order[here]:
                    component: list[Location] = []
                    while not component or component[-1] != here:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    found.append(component)
    found.reverse()
    return found
