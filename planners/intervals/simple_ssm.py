"""Simple_SSM: the papers' plain recursion for the cheapest migration (Figure 5 of the live version), repaired.

As printed it wants a node left of every cut, so it can place neither a free interval before a node's own nor an empty
one, and misses optima. Here a left part may be without nodes, and intervals may be empty. It takes O(m^3 n^3 n'^2)
steps: an oracle for `ssm` on small cases, and the form to read beside the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf

from numpy.typing import ArrayLike

from planners.intervals.assignment import assign, request
from planners.intervals.feasibility import check_feasible
from planners.model import Intervals, Plan

SubProblem = tuple[int, int, int, int, int]  # (alpha, beta, gamma, delta, n_P) of Definition 4.2, half-open
Solution = tuple[float, tuple[int, int, int] | int | None]  # the gain, and (x, y, n_l), or the node of one interval


def simple_ssm(current: Intervals, *, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float) -> Plan:
    """The plan of least cost, as `ssm` finds it, by trying every division of every sub-problem.

    >>> simple_ssm(Intervals([0, 3, 6]), nodes=3, sizes=[1, 5, 1, 1, 2, 2], loads=[1] * 6, tau=0).cost
    2
    """
    tasks, limits = request(current, nodes, sizes, loads, tau)
    check_feasible(tasks, limits)
    load = tasks.load_prefix().tolist()
    solve = _solver(current, tasks.size_prefix().tolist(), load, limits.load(load[-1]))
    whole = (0, current.tasks, 0, len(current.nodes), limits.nodes)
    cuts, owners = [0], []
    for end, node in _intervals(solve, whole):
        cuts.append(end)
        owners.append(None if node is None else current.nodes[node])
    return Plan.between("simple_ssm", current, assign(current, cuts, owners), tasks, limits.tau)


def _solver(current: Intervals, size: list[float], load: list[float], limit: float) -> Callable[[SubProblem], Solution]:
    def gain(node: int, begin: int, end: int) -> float:
        low, high = max(begin, current.cuts[node]), min(end, current.cuts[node + 1])
        return size[high] - size[low] if low < high else 0.0

    def one_interval(alpha: int, beta: int, gamma: int, delta: int) -> Solution:
        if load[beta] - load[alpha] > limit:
            return -inf, None
        node = max(range(gamma, delta), key=lambda y: gain(y, alpha, beta), default=None)
        earned = 0.0 if node is None else gain(node, alpha, beta)
        return earned, node if earned else None  # a node that keeps nothing stays free for another interval

    @cache
    def solve(problem: SubProblem) -> Solution:
        alpha, beta, gamma, delta, count = problem
        if count == 1:
            return one_interval(alpha, beta, gamma, delta)
        best: Solution = (-inf, None)
        for x in range(alpha, beta + 1):  # the repair: the paper excludes x = alpha and x = beta, empty parts,
            for y in range(gamma, delta + 1):  # and y = gamma, a left part without nodes
                for left in range(1, count):
                    earned = solve((alpha, x, gamma, y, left))[0] + solve((x, beta, y, delta, count - left))[0]
                    if earned > best[0]:
                        best = earned, (x, y, left)
        return best

    return solve


def _intervals(solve: Callable[[SubProblem], Solution], problem: SubProblem) -> list[tuple[int, int | None]]:
    """The intervals of a solution, in order: where each ends, and which node keeps state there."""
    alpha, beta, gamma, delta, count = problem
    choice = solve(problem)[1]
    if isinstance(choice, tuple):
        x, y, left = choice
        return _intervals(solve, (alpha, x, gamma, y, left)) + _intervals(solve, (x, beta, y, delta, count - left))
    return [(beta, choice)]
