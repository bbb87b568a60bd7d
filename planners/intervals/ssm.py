"""SSM: the cheapest single migration to a balanced assignment of so many nodes (section 4.3 of the live version)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.intervals import ssm_kernel
from planners.intervals.assignment import assign, request
from planners.intervals.feasibility import check_feasible
from planners.model import Amounts, Intervals, Plan, prefix


def ssm(current: Intervals, *, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float) -> Plan:
    """The plan of least cost to `nodes` intervals whose loads are at most (1 + tau) times the mean.

    With more nodes than there are, the new ones get the smallest free numbers; with fewer, the nodes leave that cost
    least to empty. Of the cheapest plans, it is one that moves the fewest tasks (if sizes are whole numbers). Nodes
    that idle have empty intervals at the end. `Infeasible` if no cut is balanced. Costs O(n' * m * (1 + n / n')) steps
    and O(m * n') space for balanced intervals: see `ssm_kernel`.

    >>> plan = ssm(Intervals([0, 3, 6]), nodes=3, sizes=[1, 5, 1, 1, 2, 2], loads=[1] * 6, tau=0)
    >>> plan.cost, plan.assignment, plan.moves
    (2, Intervals(cuts=(0, 2, 4, 6), nodes=(0, 2, 1)), [(2, 0, 2), (3, 1, 2)])
    """
    tasks, limits = request(current, nodes, sizes, loads, tau)
    check_feasible(tasks, limits)
    busy = [i for i, (begin, end) in enumerate(pairwise(current.cuts)) if begin < end]
    old = np.array([0, *(current.cuts[i + 1] for i in busy)], np.int64)
    load = tasks.load_prefix()
    starts = ssm_kernel.window_starts(load, limits.load(load[-1]))
    weight = prefix(weights(tasks.sizes))
    best, opened = ssm_kernel.solve(weight, starts, old, limits.nodes)
    cuts, keeps = ssm_kernel.trace(best, opened, weight, starts, old)
    owners = [None if keep < 0 else current.nodes[busy[keep]] for keep in keeps.tolist()]
    return Plan.between("ssm", current, assign(current, cuts.tolist(), owners), tasks, limits.tau)


def weights(sizes: Amounts) -> NDArray[np.float64]:
    """What to keep as much as possible of: sizes, and among equal sizes the number of tasks.

    Whole numbers leave room for that below the last digit, if they are not too large: a task of size s weighs
    s (m + 1) + 1, and all m of the ones together weigh less than one unit of size. Others are taken as they are.
    """
    scale = len(sizes) + 1
    amounts = sizes.astype(np.float64)
    whole = bool((amounts == np.floor(amounts)).all())
    return amounts * scale + 1 if whole and amounts.sum() * scale + scale < 2**53 else amounts
