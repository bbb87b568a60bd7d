"""Whether tasks can be cut into intervals of bounded load, and what bound they need. Over prefix sums of loads."""

from __future__ import annotations

from bisect import bisect_right
from math import inf, nextafter

from planners.errors import Infeasible
from planners.model import Limits, Tasks


def check_feasible(tasks: Tasks, limits: Limits) -> None:
    """Infeasible, with the smallest tau that would do, unless some cut into intervals is within the limits."""
    if not is_feasible(tasks, limits):
        raise Infeasible(limits.nodes, limits.tau, smallest_tau(tasks, limits.nodes))


def is_feasible(tasks: Tasks, limits: Limits) -> bool:
    """Whether some cut into intervals is within the limits. O(m + n' log m)."""
    prefix = tasks.load_prefix().tolist()
    return _greatest_load(prefix, limits.nodes, limits.load(prefix[-1])) is not None


def smallest_tau(tasks: Tasks, nodes: int) -> float:
    """The least tau for which tasks can be cut into so many balanced intervals.

    That is the least maximal load over all cuts, over the mean, minus one.

    >>> tasks = Tasks([1] * 10, [8, 4, 7, 9, 2, 4, 1, 4, 7, 5])
    >>> [round(smallest_tau(tasks, nodes), 6) for nodes in (2, 3, 4)]
    [0.098039, 0.117647, 0.254902]
    """
    prefix: list[float] = tasks.load_prefix().tolist()
    total = prefix[-1]
    if not total:
        return 0.0
    return max(0.0, least_maximal_load(prefix, nodes) / (total / nodes) - 1)


def least_maximal_load(prefix: list[float], nodes: int) -> float:
    """The least load that some cut into so many intervals does not exceed. Exact: it is the load of an interval.

    Bisection over loads. Every feasible bound is at once lowered to the greatest load of the cut that proved it, so the
    search ends at a load that occurs: when nothing below it is feasible. O(log(1/precision) * nodes * log m).
    """
    below, best = prefix[-1] / nodes, prefix[-1]  # invariant: best is feasible; nothing below `below` is
    if (even := _greatest_load(prefix, nodes, below)) is not None:
        return even
    while below < best:
        bound = (below + best) / 2
        if not below < bound < best:
            bound = nextafter(best, -inf)
        found = _greatest_load(prefix, nodes, bound)
        if found is not None:
            best = found
        elif bound == nextafter(best, -inf):
            return best
        else:
            below = bound
    return best


def tightest_cuts(tasks: Tasks, nodes: int) -> list[int]:
    """A cut into so many intervals whose greatest load is the least possible; empty intervals at the end.

    >>> tightest_cuts(Tasks([1] * 4, [1, 5, 1, 1]), 3)
    [0, 1, 2, 4]
    """
    prefix: list[float] = tasks.load_prefix().tolist()
    bound = least_maximal_load(prefix, nodes)
    cuts = [0]
    for _ in range(nodes):
        cuts.append(_farthest(prefix, cuts[-1], bound))
    return cuts


def _greatest_load(prefix: list[float], nodes: int, bound: float) -> float | None:
    """Cuts greedily, each interval as long as the bound allows: the greatest load there is then, or None."""
    last = len(prefix) - 1
    start, greatest = 0, 0.0
    for _ in range(nodes):
        end = _farthest(prefix, start, bound)
        greatest = max(greatest, prefix[end] - prefix[start])
        start = end
        if start == last:
            return greatest
    return None


def _farthest(prefix: list[float], start: int, bound: float) -> int:
    """The farthest end of an interval from `start` within the bound; one test everywhere: prefix[b] - prefix[a]."""
    end = bisect_right(prefix, prefix[start] + bound) - 1
    while end > start and prefix[end] - prefix[start] > bound:
        end -= 1
    while end + 1 < len(prefix) and prefix[end + 1] - prefix[start] <= bound:
        end += 1
    return end
