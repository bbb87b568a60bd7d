"""Readj, as far as the paper describes it: keys go home where they can, then heavy keys are moved and swapped.

Only keys that cost at least sigma times the mean load take part; each step considers all pairs of instances and all
moves and swaps of such keys between them, and takes the one that lowers the sum of squared loads most (for two loads
A > B that is the transfer t with the greatest t * (A - B - t)). It ends when no load is above the limit, or nothing
helps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.rebalance.compiling import compiled
from planners.rebalance.kernels import Floats, Ints
from planners.rebalance.plan import RebalancePlan, describe
from planners.rebalance.problem import RebalanceProblem, problem

SIGMAS = (0.3, 0.1, 0.03, 0.01)


def readj(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float = 0.08,
    table: int | None = None,
    sigma: float | Sequence[float] = SIGMAS,
    window: int | None = None,
) -> RebalancePlan:
    """The best plan over the given sigmas, as the paper compares it: in bounds if possible, then the least moved.

    Each step costs O(H^2) for H keys that take part.
    """
    given = problem(
        cost, state, home=home, current=current, instances=instances, theta=theta, table=table, window=window
    )
    sigmas = [sigma] if isinstance(sigma, int | float) else list(sigma)
    if not sigmas or not all(s > 0 for s in sigmas):
        raise ValueError(f"sigma is the least share of the mean load that takes part, and must be above 0: {sigma}")
    plans = [describe(given, _readjusted(given, float(s)), trials=len(sigmas)) for s in sigmas]
    return min(plans, key=lambda plan: (not plan.balanced, not plan.fits, plan.moved if plan.met else plan.skewness))


def _readjusted(given: RebalanceProblem, sigma: float) -> Ints:
    assignment = given.current.copy()
    loads: Floats = np.bincount(assignment, weights=given.cost, minlength=given.instances).astype(np.float64)
    away = np.flatnonzero(assignment != given.home)
    away = away[np.argsort(-given.cost[away], kind="stable")]
    _move_home(given.cost, given.home, assignment, loads, given.limit, away)
    mean = given.cost.sum() / given.instances
    heavy = np.flatnonzero(given.cost >= max(sigma * mean, np.finfo(float).tiny))
    if heavy.size:
        _swap(given.cost, assignment, loads, given.limit, heavy)
    return assignment


@compiled
def _move_home(
    cost: Floats, home: Ints, assignment: Ints, loads: Floats, limit: float, away: NDArray[np.int64]
) -> None:
    """Each key in the table goes home, the heaviest first, unless that would overload its home."""
    for k in away:
        if loads[home[k]] + cost[k] <= limit:
            loads[assignment[k]] -= cost[k]
            loads[home[k]] += cost[k]
            assignment[k] = home[k]


@compiled
def _swap(cost: Floats, assignment: Ints, loads: Floats, limit: float, heavy: NDArray[np.int64]) -> None:
    while loads.max() > limit:
        mover, partner, destination, gain = _best(cost, assignment, loads, heavy)
        if gain <= 1e-12 * limit * limit:
            return
        origin = assignment[mover]
        transfer = cost[mover]
        if partner >= 0:
            transfer -= cost[partner]
            assignment[partner] = origin
        assignment[mover] = destination
        loads[origin] -= transfer
        loads[destination] += transfer


@compiled
def _best(cost: Floats, assignment: Ints, loads: Floats, heavy: NDArray[np.int64]) -> tuple[int, int, int, float]:
    """The key to move, the key to swap it with or -1, the destination, and half of what the sum of squares loses."""
    mover, partner, destination, gain = -1, -1, -1, 0.0
    for k in heavy:
        a = assignment[k]
        for d in range(loads.size):
            found = cost[k] * (loads[a] - loads[d] - cost[k])
            if d != a and found > gain:
                mover, partner, destination, gain = k, -1, d, found
        for other in heavy:
            d = assignment[other]
            transfer = cost[k] - cost[other]
            found = transfer * (loads[a] - loads[d] - transfer)
            if d != a and transfer > 0.0 and found > gain:
                mover, partner, destination, gain = k, other, d, found
    return mover, partner, destination, gain
