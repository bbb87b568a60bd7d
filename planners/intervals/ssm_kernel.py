"""The dynamic program behind `ssm`, compiled.

The paper's SSM takes O(m^2 n') steps: for every start of a sub-problem it tries every end of the first part. Three
observations make that nearly linear in m.

- *Forward, one interval at a time.* `best[k, x]` is the greatest gain of k intervals that cover the tasks before x. A
  further interval [p, x) begins anywhere in the window of p for which its load is within the limit; the window's ends
  only ever move right as x does.
- *Who keeps state at most once.* A new interval earns by one old interval that it overlaps. Only the old interval in
  which x lies could earn again later, so one bit more is enough: `open[k, x]` is the greatest gain if that one has not
  earned yet. (Where x is a cut of the old assignment, there is none, and nobody looks.)
- *The gain splits.* What [p, x) keeps of the old interval [a, b) is S(min(x, b)) - S(max(p, a)): a term for x, and a
  term for p. The best p for each x is therefore a maximum over a sliding window, of `best - S(a)` for p up to a, and of
  `open - S(p)` for p inside: amortised constant time.

The time is O(n' * pairs), where pairs counts, for every x, the old intervals that a new interval ending in x can
overlap: about m (1 + n / n') for balanced ones. Space is O(m n'). Bounds on k prune: before x there must be enough
intervals to cover, and after it enough left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dataflow.compiled.kernel import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel()
def window_starts(loads: Floats, limit: float) -> Ints:
    """By x, the least p for which the tasks of [p, x) are within the limit. `loads` are prefix sums."""
    starts = np.zeros(len(loads), np.int64)
    p = 0
    for x in range(len(loads)):
        while loads[x] - loads[p] > limit:
            p += 1
        starts[x] = p
    return starts


@kernel()
def levels(starts: Ints, nodes: int) -> tuple[Ints, Ints]:
    """By k, the positions that k intervals can cover up to, and from which the other nodes - k can cover the rest."""
    m = len(starts) - 1
    first, last = np.full(nodes + 1, m, np.int64), np.zeros(nodes + 1, np.int64)
    for k in range(nodes, 0, -1):
        first[k - 1] = starts[first[k]]
    for k in range(nodes):
        x = last[k]
        while x < m and starts[x + 1] <= last[k]:
            x += 1
        last[k + 1] = x
    return first, last


@kernel()
def _link(values: Floats, low: int, high: int) -> Ints:
    """By position of [low, high], the next one whose value is no less, or high + 1."""
    following = np.empty(len(values) + 1, np.int64)
    for i in range(high, low - 1, -1):
        j = i + 1
        while j <= high and values[j] < values[i]:
            j = following[j]
        following[i] = j
    return following


@kernel()
def _slide(following: Ints, place: int, low: int, high: int) -> int:
    """Where the maximum of [low, high] is, given where it was for a window that began and ended no later.

    It steps only over places that no later window looks at again, so that sliding over a range costs its length.
    """
    if place < low:
        place = low
    while following[place] <= high:
        place = following[place]
    return place


@kernel()
def _add_free(best: Floats, into: Floats, starts: Ints, low: int, high: int, bottom: int, top: int) -> None:
    """An interval that keeps nothing, possibly empty: it may begin at the best position of its window."""
    links = _link(best, bottom, top)
    place = bottom
    for x in range(low, high + 1):
        place = _slide(links, place, starts[x], min(x, top))
        into[x] = best[place]


@kernel()
def _add_open(
    best: Floats, opened: Floats, into: Floats, starts: Ints, cuts: Ints, low: int, high: int, bottom: int, top: int
) -> None:
    """The same for x inside an old interval [a, b) that must not have earned: from p inside, only if it had not."""
    links, own = _link(best, bottom, top), _link(opened, bottom, top)
    for y in range(len(cuts) - 1):
        a, b = cuts[y], cuts[y + 1]
        outer = inner = bottom
        for x in range(max(a + 1, low), min(b - 1, high) + 1):
            if starts[x] <= min(a, top):
                outer = _slide(links, outer, starts[x], min(a, top))
                into[x] = best[outer]
            begin, end = max(starts[x], a + 1), min(x, top)
            if begin <= end:
                inner = _slide(own, inner, begin, end)
                into[x] = max(into[x], opened[inner])


@kernel()
def _add_kept(
    best: Floats,
    opened: Floats,
    into: Floats,
    into_open: Floats,
    sizes: Floats,
    starts: Ints,
    cuts: Ints,
    low: int,
    high: int,
    bottom: int,
    top: int,
) -> None:
    """Intervals that keep state of an old interval [a, b), wherever they end."""
    rest = opened - sizes
    links, own = _link(best, bottom, top), _link(rest, bottom, top)
    for y in range(len(cuts) - 1):
        a, b = cuts[y], cuts[y + 1]
        outer = inner = bottom
        for x in range(max(a + 1, low), high + 1):
            start = starts[x]
            if start >= b:
                break
            value = -np.inf
            if start <= min(a, top):
                outer = _slide(links, outer, start, min(a, top))
                value = best[outer] - sizes[a]
            begin, end = max(start, a + 1), min(x, b)
            if begin <= min(end - 1, top):
                inner = _slide(own, inner, begin, min(end - 1, top))
                value = max(value, rest[inner])
            value += sizes[end]
            into[x] = max(into[x], value)
            if x > b:
                into_open[x] = max(into_open[x], value)


@kernel()
def solve(sizes: Floats, starts: Ints, cuts: Ints, nodes: int) -> tuple[Floats, Floats]:
    """The tables of greatest gains, `best` and `open`, by the number of intervals and by position.

    `sizes` are prefix sums; `cuts` those of the old assignment, without its empty intervals.
    """
    m = len(sizes) - 1
    first, last = levels(starts, nodes)
    best, opened = np.full((nodes + 1, m + 1), -np.inf), np.full((nodes + 1, m + 1), -np.inf)
    best[0, 0] = 0.0
    for k in range(nodes):
        low, high, bottom, top = first[k + 1], last[k + 1], first[k], last[k]
        _add_free(best[k], best[k + 1], starts, low, high, bottom, top)
        _add_open(best[k], opened[k], opened[k + 1], starts, cuts, low, high, bottom, top)
        _add_kept(best[k], opened[k], best[k + 1], opened[k + 1], sizes, starts, cuts, low, high, bottom, top)
    return best, opened


@kernel()
def trace(best: Floats, opened: Floats, sizes: Floats, starts: Ints, cuts: Ints) -> tuple[Ints, Ints]:
    """The cuts that earn the greatest gain, and by interval the old one that it keeps state of, or -1.

    Walks back from the end. Nothing was stored but gains: each step looks for a predecessor that explains the gain,
    with the same floating-point operations that made it, so that the comparison is exact.
    """
    nodes, m = best.shape[0] - 1, best.shape[1] - 1
    new, keeps = np.zeros(nodes + 1, np.int64), np.full(nodes, -1, np.int64)
    new[nodes] = x = m
    y = len(cuts) - 2  # the old interval with a < x <= b
    only_open = False  # whether the old interval in which x lies must not have earned
    for k in range(nodes, 0, -1):
        while y > 0 and cuts[y] >= x:
            y -= 1
        only_open = only_open and cuts[y] < x < cuts[y + 1]
        x, keeps[k - 1], only_open = _predecessor(best, opened, sizes, starts, cuts, k, x, y, only_open)
        new[k - 1] = x
    return new, keeps


@kernel()
def _predecessor(
    best: Floats, opened: Floats, sizes: Floats, starts: Ints, cuts: Ints, k: int, x: int, y: int, only_open: bool
) -> tuple[int, int, bool]:
    """Where the k-th interval, which ends in x, begins; what it keeps; whether what it begins in must be open."""
    wanted = opened[k, x] if only_open else best[k, x]
    newest = y - 1 if only_open else y
    for old in range(newest, -1, -1):  # kept state first: of equal plans, one that moves less of what has no size
        a, b = cuts[old], cuts[old + 1]
        if b <= starts[x]:
            break
        end = min(x, b)
        for p in range(starts[x], end):
            if p <= a and sizes[end] + (best[k - 1, p] - sizes[a]) == wanted:
                return p, old, False
            if p > a and sizes[end] + (opened[k - 1, p] - sizes[p]) == wanted:
                return p, old, True
    for p in range(x, starts[x] - 1, -1):
        inside = only_open and p > cuts[y]
        if (opened[k - 1, p] if inside else best[k - 1, p]) == wanted:
            return p, -1, inside
    raise AssertionError("no predecessor explains the gain")
