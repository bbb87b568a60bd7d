"""Graphs, an epoch at a time, by repetition until nothing changes. An edge is a (near, far); results are multisets of
(epoch, result)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Any

Edge = tuple[int, int]


def closure(edges: Iterable[Edge], roots: Iterable[int]) -> set[int]:
    """All nodes that can be reached from the roots.

    >>> closure([(1, 2), (2, 3), (4, 1)], [1])
    {1, 2, 3}
    """
    reached = set(roots)
    while not all(far in reached for near, far in edges if near in reached):
        reached |= {far for near, far in edges if near in reached}
    return reached


def newly_reachable(edges: Sequence[Sequence[Edge]], roots: Sequence[Sequence[int]]) -> Counter[Any]:
    """What can be reached with all edges and roots up to an epoch, and could not be in the one before."""
    result = Counter()
    before: set[int] = set()
    for epoch in range(max(len(edges), len(roots))):
        known_edges = [edge for some in edges[: epoch + 1] for edge in some]
        now = closure(known_edges, [root for some in roots[: epoch + 1] for root in some])
        result.update((epoch, node) for node in now - before)
        before = now
    return result


def distances(edges: Sequence[Sequence[Edge]], roots: Sequence[Sequence[int]]) -> Counter[Any]:
    """(node, edges from the nearest root), in each epoch's own graph.

    >>> sorted(distances([[(1, 2), (2, 3), (1, 3)]], [[1]]))
    [(0, (1, 0)), (0, (2, 1)), (0, (3, 1))]
    """
    result = Counter()
    for epoch, (some_edges, some_roots) in enumerate(zip_longest(edges, roots, fillvalue=())):
        layer, seen, distance = set(some_roots), set(some_roots), 0
        while layer:
            result.update((epoch, (node, distance)) for node in layer)
            layer = {far for near, far in some_edges if near in layer} - seen
            seen |= layer
            distance += 1
    return result


def components(edges: Sequence[Sequence[Edge]]) -> Counter[Any]:
    """(node, least node that is connected with it), in each epoch's own graph.

    >>> sorted(components([[(5, 2), (2, 7), (3, 3)]]))
    [(0, (2, 2)), (0, (3, 3)), (0, (5, 2)), (0, (7, 2))]
    """
    result = Counter()
    for epoch, some in enumerate(edges):
        both = [*some, *((far, near) for near, far in some)]
        result.update((epoch, (node, min(closure(both, [node])))) for node in {near for near, _ in both})
    return result


def pagerank(edges: Sequence[Sequence[Edge]], rounds: int) -> Counter[Any]:
    """(node, rank) in each epoch's own graph. All start with 1; half of a rank is given, half is passed along links.

    >>> sorted(pagerank([[(1, 2)]], rounds=1))
    [(0, (1, Fraction(1, 2))), (0, (2, Fraction(3, 2)))]
    """
    result = Counter()
    for epoch, some in enumerate(edges):
        nodes = sorted({node for edge in some for node in edge})
        ranks = dict.fromkeys(nodes, Fraction(1))
        for _ in range(rounds):
            ranks = {v: (1 + sum(ranks[u] * _portion(some, u, v) for u in nodes)) / 2 for v in nodes}
        result.update((epoch, item) for item in ranks.items())
    return result


def _portion(edges: Sequence[Edge], u: int, v: int) -> Fraction:
    """The part of u's rank that goes to v: a node without links keeps its own."""
    links = [far for near, far in edges if near == u] or [u]
    return Fraction(links.count(v), len(links))
