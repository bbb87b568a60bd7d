"""What a rebalancing planner is given, checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.rebalance.kernels import Floats, Ints

ROUNDING = 1e-12  # loads are sums of floats: so much above the bound, relatively, is still within it


@dataclass(frozen=True, eq=False)
class RebalanceProblem:
    """Statistics of the last interval by key, the routing as it is, and the bounds (equation 3)."""

    cost: Floats  # c(k)
    state: Floats  # S(k, w)
    home: Ints  # h(k), what the hash function says
    current: Ints  # F(k)
    instances: int  # N_D
    theta: float
    table: int | None  # A_max; None: no bound

    @cached_property
    def limit(self) -> float:
        """L_max = (1 + theta) * mean."""
        return float(self.cost.sum()) / self.instances * (1.0 + self.theta) * (1.0 + ROUNDING)


def problem(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    theta: float,
    table: int | None = None,
    window: int | None = None,
) -> RebalanceProblem:
    """Checks what a user gave; ValueError says what is wrong with it."""
    if instances < 1:
        raise ValueError(f"there must be at least one instance, not {instances}")
    if not theta >= 0:
        raise ValueError(f"theta is how far a load may be above the mean, so it cannot be {theta}; try 0.08")
    if table is not None and table < 0:
        raise ValueError(f"a routing table of size {table} makes no sense; leave it out for no bound")
    costs = _amounts("cost", cost)
    if costs.ndim != 1:
        raise ValueError(f"cost needs one number for each key, not an array of {costs.ndim} dimensions")
    states = windowed(state, window)
    homes, places = _places("home", home, instances), _places("current", current, instances)
    for name, array in (("state", states), ("home", homes), ("current", places)):
        if array.shape != costs.shape:
            raise ValueError(f"cost has {costs.size} keys and {name} {array.size}: each needs one number for each key")
    return RebalanceProblem(costs, states, homes, places, int(instances), float(theta), table)


def windowed(state: ArrayLike, window: int | None = None) -> Floats:
    """S(k, w): state by key over the last w intervals.

    `state` is by key, summed already, or by interval and key (the latest interval last), of which the last `window` are
    summed, or all without one.

    >>> windowed([[5, 0], [1, 2], [1, 1]], window=2)
    array([2., 3.])
    """
    if window is not None and window < 1:
        raise ValueError(f"a window must have at least one interval, not {window}")
    amounts = _amounts("state", state)
    if amounts.ndim == 2:
        rows = amounts if window is None else amounts[-window:]
        return np.ascontiguousarray(rows.sum(axis=0))
    if window is not None:
        raise ValueError("a window needs state by interval and key; what is by key alone is taken as summed already")
    if amounts.ndim != 1:
        raise ValueError(f"state is by key, or by interval and key, not an array of {amounts.ndim} dimensions")
    return amounts


def _amounts(name: str, values: ArrayLike) -> Floats:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.size and not (array.min() >= 0 and array.max() < np.inf):
        raise ValueError(f"{name} must be finite and not negative, and is not at {_first(~_amount(array))}")
    return array


def _amount(array: Floats) -> NDArray[np.bool_]:
    return (array >= 0) & (array < np.inf)


def _places(name: str, values: ArrayLike, instances: int) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or not (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"{name} needs the number of an instance for each key, not {array.dtype} {array.shape}")
    if array.size and not (array.min() >= 0 and array.max() < instances):
        where = _first((array < 0) | (array >= instances))
        raise ValueError(f"{name} names instances 0 to {instances - 1}, and something else at {where}")
    return np.ascontiguousarray(array, dtype=np.int32)


def _first(wrong: NDArray[np.bool_]) -> str:
    return "key " + " of interval ".join(str(int(i)) for i in reversed(np.argwhere(wrong)[0]))
