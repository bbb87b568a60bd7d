"""Slow and obviously right: cut lists by trying all, costs by a general assignment solver, Bellman by repetition.

Shares nothing with `planners` but the meaning of the words. Limits are given as loads, by node count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

Cut = tuple[int, ...]

# The example of the issue: sizes, loads, and the matrix of Table 4.
SIZES = (5, 6, 9, 1, 8, 4, 1, 3, 2, 6)
LOADS = (8, 4, 7, 9, 2, 4, 1, 4, 7, 5)
TABLE_4 = ((0.3, 0.6, 0.1), (0.3, 0.4, 0.3), (0.1, 0.5, 0.4))


def cut_lists(loads: Sequence[float], nodes: int, limit: float) -> list[Cut]:
    """Ascending cuts that leave at most `nodes` intervals, each within the limit; filled up at the end."""
    m = len(loads)
    found = []
    for many in range(min(nodes, m)):
        for inner in combinations(range(1, m), many):
            cuts = (0, *inner, m)
            if all(sum(loads[a:b]) <= limit + 1e-9 for a, b in pairwise(cuts)):
                found.append(cuts + (m,) * (nodes - 1 - many))
    return sorted(found)


def cost(before: Cut, after: Cut, sizes: Sequence[float]) -> float:
    """The size that moves when intervals are given to nodes as well as can be."""
    stays = np.array(
        [
            [sum(sizes[max(a, c) : min(b, d)]) if max(a, c) < min(b, d) else 0 for c, d in pairwise(after)]
            for a, b in pairwise(before)
        ]
    )
    rows, columns = linear_sum_assignment(stays, maximize=True)
    return float(sum(sizes) - stays[rows, columns].sum())


def projected(
    sizes: Sequence[float],
    loads: Sequence[float],
    matrix: Sequence[Sequence[float]],
    limits: Mapping[int, float],
    gamma: float,
) -> dict[tuple[int, Cut], float]:
    """By node count and cut list, the projected cost: the Bellman equation, repeated until nothing changes."""
    price = cache(lambda before, after: cost(before, after, sizes))
    lists = {nodes: cut_lists(loads, nodes, limit) for nodes, limit in limits.items()}
    costs: dict[tuple[int, Cut], float] = {(n, cuts): 0.0 for n, each in lists.items() for cuts in each}
    while True:
        best: Any = {
            (cuts, then): min(price(cuts, target) + gamma * costs[then, target] for target in lists[then])
            for cuts in {cuts for _, cuts in costs}
            for then in lists
        }
        new = {
            (n, cuts): sum(p * best[cuts, then] for p, then in zip(matrix[list(lists).index(n)], lists, strict=True))
            for n, cuts in costs
        }
        if max(abs(new[key] - costs[key]) for key in costs) < 1e-13 * (1 + max(new.values())):
            return new
        costs = new


def mean_limits(loads: Sequence[float], counts: Sequence[int], tau: float) -> dict[int, float]:
    """(1 + tau) times the mean, by node count."""
    return {n: (1 + tau) * sum(loads) / n for n in counts}
