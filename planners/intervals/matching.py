"""What it costs to go from one partitioning to another, and who then owns what (sections 3.2 and 4.1).

Each interval afterwards goes to at most one node of before, which keeps what the two have in common. Pairs that have
something in common never cross: from left to right they form a staircase of at most n + n' - 1 steps, in which two
neighbours share the one interval or the other. So the best pairing takes one scan with three numbers, where the papers
call a general assignment solver.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dataflow.compiled.kernel import kernel

Floats = NDArray[np.float64]


def cost(before: ArrayLike, after: ArrayLike, prefix: Floats) -> float:
    """The size of state that must move between two cut lists; `prefix` are the prefix sums of sizes.

    >>> cost([0, 4, 7, 10], [0, 3, 7, 10], np.array([0, 5, 11, 20, 21, 29, 33, 34, 37, 39, 45.0]))
    1.0
    """
    return float(prefix[-1] - _gain(np.asarray(before, np.int64), np.asarray(after, np.int64), prefix))


def costs(before: ArrayLike, after: NDArray[np.integer], prefix: Floats) -> Floats:
    """The cost to each row of cuts, from one cut list. O(n + n') a row, a few nanoseconds for each interval."""
    return _costs(np.asarray(before, np.int64), after, prefix)


def first_best(
    before: ArrayLike, after: NDArray[np.integer], prefix: Floats, values: Floats, bound: float
) -> tuple[float, int]:
    """The least cost plus value over rows in the order of their values, and its row; (bound, -1) if none is less.

    A cost is never negative, so the search ends at the first value that is no less than the best total.
    """
    total, row = _first_best(np.asarray(before, np.int64), after, prefix, values, bound)
    return float(total), int(row)


def match(before: Sequence[int], after: Sequence[int], prefix: Floats) -> list[int | None]:
    """By interval afterwards, the interval before whose node keeps it in the cheapest pairing; None if none does.

    >>> match([0, 4, 7, 10], [0, 3, 4, 7, 10], np.array([0, 5, 11, 20, 21, 29, 33, 34, 37, 39, 45.0]))
    [0, None, 1, 2]
    """
    steps = [step for step in _staircase(before, after) if prefix[step[3]] > prefix[step[2]]]
    taken = _best_chain(steps, [float(prefix[b] - prefix[a]) for _, _, a, b in steps])
    owner: list[int | None] = [None] * (len(after) - 1)
    for i, j, _, _ in taken:
        owner[j] = i
    return owner


def _staircase(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The pairs (i, j) of intervals that have tasks in common, with these tasks as [a, b), from left to right."""
    i = j = a = 0
    steps = []
    while i < len(before) - 1 and j < len(after) - 1:
        b = min(before[i + 1], after[j + 1])
        if b > a:
            steps.append((i, j, a, b))
        a = b
        ends_before, ends_after = before[i + 1] == b, after[j + 1] == b
        i, j = i + ends_before, j + ends_after
    return steps


def _best_chain(steps: list[tuple[int, int, int, int]], gains: list[float]) -> list[tuple[int, int, int, int]]:
    """The steps of the greatest total gain of which no two share an interval.

    `best[k]` is for the first k steps. A step excludes those just before it that share an interval with it: a run of
    equal i, or of equal j, so what it can be combined with is the best of the steps before that run.
    """
    best, before_run = [0.0], []
    for k, (i, j, _, _) in enumerate(steps):
        run = k
        if k and steps[k - 1][0] == i:
            while run and steps[run - 1][0] == i:
                run -= 1
        elif k and steps[k - 1][1] == j:
            while run and steps[run - 1][1] == j:
                run -= 1
        before_run.append(run)
        best.append(max(best[k], best[run] + gains[k]))
    taken, k = [], len(steps)
    while k:
        if best[k] > best[k - 1]:
            taken.append(steps[k - 1])
            k = before_run[k - 1]
        else:
            k -= 1
    return taken[::-1]


@kernel()
def _gain(before: NDArray[np.int64], after: NDArray[np.int64], prefix: Floats) -> float:
    """The size of what stays: the scan itself.

    Of the steps so far: `best` of all; `free_i` if the interval of before that is under way is left unpaired, `free_j`
    if that of after is. (None leaves both: a step pairs its two, and of two neighbours one interval is the same.)
    """
    best = free_i = free_j = 0.0
    i = j = 0
    a = 0
    m = before[-1]
    while a < m:
        while before[i + 1] <= a:
            i += 1
            free_i = best
        while after[j + 1] <= a:
            j += 1
            free_j = best
        b = min(before[i + 1], after[j + 1])
        # Of free_i and free_j one is of an interval that begins here, and equals `best`; the other is what counts.
        with_this = min(free_i, free_j) + prefix[b] - prefix[a]
        if with_this > best:
            best = with_this
        a = b
    return best


@kernel()
def _costs(before: NDArray[np.int64], after: NDArray[np.integer], prefix: Floats) -> Floats:
    result = np.empty(len(after))
    row = np.empty(after.shape[1], np.int64)
    for k in range(len(after)):
        row[:] = after[k]
        result[k] = prefix[-1] - _gain(before, row, prefix)
    return result


@kernel()
def _first_best(
    before: NDArray[np.int64], after: NDArray[np.integer], prefix: Floats, values: Floats, bound: float
) -> tuple[float, int]:
    best, found = bound, -1
    row = np.empty(after.shape[1], np.int64)
    for k in range(len(after)):
        if values[k] >= best:
            break
        row[:] = after[k]
        total = values[k] + prefix[-1] - _gain(before, row, prefix)
        if total < best:
            best, found = total, k
    return best, found
