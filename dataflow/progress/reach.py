"""Could-result-in, spelled out: the path summaries from one location to all others.

The trackers never need this (they pass changes from neighbour to neighbour); explanations do, and so does whoever
wants to know why a frontier stands where it stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dataflow.progress.graph import Graph, Location
from dataflow.progress.paths import PathSummary, identity
from dataflow.time.order import Time


def path_summaries(graph: Graph, start: Location) -> dict[Location, list[PathSummary]]:
    """For each location that can be reached from `start`, the minimal summaries of the paths that lead there.

    Terminates because going round a cycle advances time, so the second round is never less than the first. Costs
    O(hops x summaries), once per call.
    """
    hops: dict[Location, list[tuple[Location, PathSummary | None]]] = {}
    for a, b, path in graph.hops():
        hops.setdefault(a, []).append((b, path))
    found: dict[Location, list[PathSummary]] = {start: [identity(graph.levels(start))]}
    queue = deque((start, summary) for summary in found[start])
    while queue:
        here, summary = queue.popleft()
        if summary not in found[here]:
            continue  # a smaller one has replaced it since
        for there, path in hops.get(here, ()):
            further = summary if path is None else summary.followed_by(path)
            if further is not None and _insert(found.setdefault(there, []), further):
                queue.append((there, further))
    return found


def _insert(summaries: list[PathSummary], new: PathSummary) -> bool:
    if any(old.less_equal(new) for old in summaries):
        return False
    summaries[:] = [old for old in summaries if not new.less_equal(old)]
    summaries.append(new)
    return True


def upstream(graph: Graph, node: int) -> set[int]:
    """The nodes from which records can get to a node, as far as the graph has been built."""
    return _closure({node}, [(target.node, source.node) for source, target in graph.edges])


def downstream(graph: Graph, nodes: Iterable[int]) -> set[int]:
    """The nodes to which records can get from these."""
    return _closure(nodes, [(source.node, target.node) for source, target in graph.edges])


def _closure(starts: Iterable[int], steps: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for a, b in steps:
        following.setdefault(a, []).append(b)
    found: set[int] = set()
    left = [there for start in starts for there in following.get(start, ())]
    while left:
        here = left.pop()
        if here not in found:
            found.add(here)
            left += following.get(here, ())
    return found


def could_result_in(graph: Graph, start: Location, time: Time, end: Location, later: Time) -> bool:
    """Whether a pointstamp (start, time) could lead to one at (end, later)."""
    from dataflow.time.order import less_equal

    outcomes = (summary.results_in(time) for summary in path_summaries(graph, start).get(end, ()))
    return any(outcome is not None and less_equal(outcome, later) for outcome in outcomes)
