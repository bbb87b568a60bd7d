"""What a rebalancing planner returns: where every key is to be, and what that achieves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planners.rebalance.compiling import compiled
from planners.rebalance.kernels import Floats, Ints
from planners.rebalance.problem import RebalanceProblem

Keys = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RoutingTable:
    """The table A: the keys that are not where the hash function puts them, and where they are instead."""

    keys: Keys  # ascending
    instances: Ints

    @property
    def size(self) -> int:
        """N_A, the number of entries."""
        return int(self.keys.size)


@dataclass(frozen=True, eq=False)
class MovedKeys:
    """The keys that change their instance, Δ(F, F')."""

    keys: Keys  # ascending
    origins: Ints
    destinations: Ints

    @property
    def size(self) -> int:
        """How many keys move."""
        return int(self.keys.size)


@dataclass(frozen=True, eq=False)
class RebalancePlan:
    """A new assignment F', and what it achieves: all figures are those of the keys themselves, in compact form too."""

    assignment: Ints  # by key, its instance; for bins this is the map that a `megaphone` controller takes
    table: RoutingTable
    moves: MovedKeys
    moved: float  # M(w, F, F'): state that changes its instance
    moved_share: float  # of all state
    loads: Floats  # by instance
    balance: float  # the worst |L - mean| / mean
    balanced: bool  # no load above (1 + theta) * mean
    fits: bool  # the table is within its size
    cleaned: int = 0  # entries of the old table that phase I moved back
    trials: int = 1  # how often phases I to III ran
    vectors: int | None = None  # in compact form, how many there were
    estimate: Floats | None = None  # in compact form, the loads that the vectors promised

    @property
    def met(self) -> bool:
        """Whether both bounds were met: no load above (1 + theta) * mean, and the table within its size."""
        return self.balanced and self.fits

    @property
    def skewness(self) -> float:
        """The greatest load over the mean: the share of the ideal throughput is one over this."""
        mean = float(self.loads.mean())
        return float(self.loads.max()) / mean if mean else 1.0

    @property
    def error(self) -> float:
        """In compact form, the worst |load - promised load| / mean; 0 where keys were planned themselves."""
        mean = float(self.loads.mean())
        return float(np.abs(self.loads - self.estimate).max()) / mean if mean and self.estimate is not None else 0.0


def describe(
    problem: RebalanceProblem,
    assignment: Ints,
    *,
    cleaned: int = 0,
    trials: int = 1,
    vectors: int | None = None,
    estimate: Floats | None = None,
) -> RebalancePlan:
    """The plan of an assignment: everything is measured here, on keys, whatever found it."""
    loads, moved, total_state, table_keys, move_keys = _measure(
        problem.cost, problem.state, problem.home, problem.current, assignment, problem.instances
    )
    mean = loads.sum() / problem.instances
    return RebalancePlan(
        assignment=assignment,
        table=RoutingTable(table_keys, assignment[table_keys]),
        moves=MovedKeys(move_keys, problem.current[move_keys], assignment[move_keys]),
        moved=float(moved),
        moved_share=float(moved / total_state) if total_state else 0.0,
        loads=loads,
        balance=float(np.abs(loads - mean).max() / mean) if mean else 0.0,
        balanced=bool(loads.max() <= problem.limit),
        fits=problem.table is None or table_keys.size <= problem.table,
        cleaned=cleaned,
        trials=trials,
        vectors=vectors,
        estimate=estimate,
    )


@compiled
def _measure(
    cost: Floats, state: Floats, home: Ints, current: Ints, assignment: Ints, instances: int
) -> tuple[Floats, float, float, Keys, Keys]:
    """Loads, state moved, all state, the keys that are not at home, and those that are not where they were."""
    loads = np.zeros(instances)
    table, moves = np.empty(cost.size, np.int64), np.empty(cost.size, np.int64)
    entries = movers = 0
    moved = total = 0.0
    for k in range(cost.size):
        d = assignment[k]
        loads[d] += cost[k]
        total += state[k]
        if d != home[k]:
            table[entries] = k
            entries += 1
        if d != current[k]:
            moves[movers] = k
            movers += 1
            moved += state[k]
    return loads, moved, total, table[:entries].copy(), moves[:movers].copy()
