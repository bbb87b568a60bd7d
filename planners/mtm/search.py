"""The cheapest next partitioning: the minimum over P' of c(P, P') + value[P'], for many P and all balanced P'.

This is where the time of the projected costs goes (the inner loops of PMC; Figure 6, 9 in the live version). Three
things make it fast, and none changes the result:

- The scan of the staircase (see `matching`) needs of what lies left of a cut only two numbers: the best gain, and the
  best gain that leaves free the interval of P in which the cut lies. What one more interval [x, y) does to them is a
  table for P, so that all cut lists with a common prefix share its cost (`partitionings.Tree`), and a leaf is a few
  additions and maxima on consecutive memory.
- A subtree is passed over if its least value and its least cost together are no better than the best so far. The least
  cost is that of SSM with the prefix given, and comes from one more table for P.
- Consecutive P differ little, so the best target of the one is tried first for the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataflow.compiled.kernel import kernel
from planners.intervals.partitionings import Cuts, Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def least_values(tree: Tree, values: Floats) -> Floats:
    """By node of the tree, the least value of the leaves below it."""
    least = np.empty(len(tree.cut))
    below, shift = values, 0  # `first` is absolute among nodes, and among leaves below the last level
    for level in range(len(tree.levels) - 2, -1, -1):
        start, stop = tree.levels[level], tree.levels[level + 1]
        least[start:stop] = np.minimum.reduceat(below, tree.first[start:stop] - shift)
        below, shift = least[start:stop], start
    return least


class Choices(NamedTuple):
    """By source: the least total, the rank of the target that has it, and what the migration to it costs."""

    total: Floats
    target: Ints
    cost: Floats


def cheapest(sources: Cuts, tree: Tree, values: Floats, prefix: Floats, least: Floats | None = None) -> Choices:
    """By row of cuts, the least cost plus value over the tree's leaves. `prefix` are the prefix sums of sizes. `least`
    are the tree's least values, for who has them: they cost O(leaves)."""
    least = least_values(tree, values) if least is None else least
    total, target = _cheapest(
        sources, tree.cut, tree.first, tree.levels, tree.least_cut, tree.reach, least, values, prefix
    )
    return Choices(total, target, total - values[target])


@kernel()
def _cheapest(
    sources: Cuts,
    cut: Cuts,
    first: Ints,
    levels: Ints,
    least_cut: Ints,
    reach: Ints,
    least: Floats,
    values: Floats,
    prefix: Floats,
) -> tuple[Floats, Ints]:
    m, depth = len(prefix) - 1, len(levels) - 1
    steps = np.zeros((4, m + 1, m + 1))
    rest = np.empty((2, depth + 1, m + 1))
    favourite = np.full(depth + 1, -1, np.int64)
    totals, targets = np.empty(len(sources)), np.empty(len(sources), np.int64)
    for k in range(len(sources)):
        _tabulate(sources[k], prefix, reach, steps)
        _tabulate_rest(steps, least_cut, reach, rest)
        best, target = np.inf, -1
        if k:
            target = targets[k - 1]
            best = values[target] + prefix[m] - _gain_along(favourite, steps, m)
        totals[k], targets[k] = _search(
            cut, first, levels, least_cut, reach, least, values, prefix[m], steps, rest, favourite, best, target
        )
    return totals, targets


@kernel()
def _tabulate(source: Cuts, prefix: Floats, reach: Ints, steps: Floats) -> None:
    """What an interval [x, y) of P' does to the numbers (best, free), for every x and y: a matrix of maxima and sums.

    best' = max(best + steps[0], free + steps[1]);  free' = max(best + steps[2], free + steps[3])

    steps[1]: what [x, y) shares with the interval of P around x, which is still free. steps[0]: the most that it shares
    with a later one. The other two are the same up to the start of the interval of P around y, so that this one stays
    free; if that is the one around x, nothing before y can have taken it: free' = free.
    """
    m, i = len(prefix) - 1, 0
    for x in range(m):
        while source[i + 1] <= x:
            i += 1
        j, end = i, source[i + 1]
        shared = later = done = 0.0  # with the one around x; the most with a later one; and with those before y's
        for y in range(x + 1, reach[x] + 1):
            if j == i:
                shared = prefix[y] - prefix[x]
            else:
                later = max(later, prefix[y] - prefix[source[j]])
            if y == end:  # a cut of P: what is around y begins here
                done = later
                while j + 1 < len(source) - 1 and source[j + 1] <= y:
                    j += 1
                end = source[j + 1]
            inside = j == i and y < end
            steps[0, x, y], steps[1, x, y] = later, shared
            steps[2, x, y], steps[3, x, y] = (-np.inf, 0.0) if inside else (done, shared)


@kernel()
def _tabulate_rest(steps: Floats, least_cut: Ints, reach: Ints, rest: Floats) -> None:
    """The most that can still be gained right of a cut, by level: for the gain `best`, and for `free`."""
    m, depth = steps.shape[1] - 1, rest.shape[1] - 1
    for y in range(m + 1):
        rest[0, depth, y], rest[1, depth, y] = steps[0, y, m], steps[1, y, m]
    for level in range(depth - 1, -1, -1):
        for y in range(m + 1):
            from_best = from_free = -np.inf
            for z in range(min(max(y + 1, least_cut[level]), m), reach[y] + 1):
                b, f = rest[0, level + 1, z], rest[1, level + 1, z]
                from_best = max(from_best, max(steps[0, y, z] + b, steps[2, y, z] + f))
                from_free = max(from_free, max(steps[1, y, z] + b, steps[3, y, z] + f))
            rest[0, level, y], rest[1, level, y] = from_best, from_free


@kernel()
def _gain_along(path: Ints, steps: Floats, m: int) -> float:
    """The gain of one cut list."""
    best = free = 0.0
    for d in range(len(path) - 1):
        x, y = path[d], path[d + 1]
        best, free = (
            max(best + steps[0, x, y], free + steps[1, x, y]),
            max(best + steps[2, x, y], free + steps[3, x, y]),
        )
    x = path[-1]
    gain: float = max(best + steps[0, x, m], free + steps[1, x, m])
    return gain


@kernel()
def _search(
    cut: Cuts,
    first: Ints,
    levels: Ints,
    least_cut: Ints,
    reach: Ints,
    least: Floats,
    values: Floats,
    total: float,
    steps: Floats,
    rest: Floats,
    favourite: Ints,
    best: float,
    target: int,
) -> tuple[float, int]:
    """Depth first through the tree, for what is less than `best`; leaves the best path in `favourite`."""
    m, last = steps.shape[1] - 1, len(levels) - 2
    path = np.zeros(last + 1, np.int64)
    cursor, stop = np.zeros(last + 1, np.int64), np.ones(last + 1, np.int64)
    best_gain, free_gain = np.zeros(last + 1), np.zeros(last + 1)
    level = 0
    while level >= 0:
        node = cursor[level]
        if node == stop[level]:
            level -= 1
            continue
        cursor[level] += 1
        y = cut[node]
        b = f = 0.0
        if level:
            x, b0, f0 = path[level - 1], best_gain[level - 1], free_gain[level - 1]
            b = max(b0 + steps[0, x, y], f0 + steps[1, x, y])
            f = max(b0 + steps[2, x, y], f0 + steps[3, x, y])
        # Nothing below has a lesser value, and nothing below costs less: both are exact, though not of one leaf.
        if least[node] + total - max(b + rest[0, level, y], f + rest[1, level, y]) >= best:
            continue
        path[level], best_gain[level], free_gain[level] = y, b, f
        low = min(max(y + 1, least_cut[level]), m)
        if level < last:
            level += 1
            cursor[level], stop[level] = first[node], first[node] + reach[y] - low + 1
            continue
        offset = first[node] - low
        for z in range(low, reach[y] + 1):
            after = max(b + steps[0, y, z], f + steps[1, y, z])
            free = max(b + steps[2, y, z], f + steps[3, y, z])
            here = values[offset + z] + total - max(after + rest[0, last + 1, z], free + rest[1, last + 1, z])
            if here < best:
                best, target = here, offset + z
                favourite[: last + 1] = path
                favourite[last + 1] = z
    return best, target
