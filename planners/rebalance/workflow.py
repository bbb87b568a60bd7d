"""The general workflow of section III: clean the table, prepare candidates, assign them. One attempt after the other.

What attempts share is kept: the lists of keys by instance, sorted as needed. An attempt after the first costs what it
touches, and a few copies of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np

from planners.rebalance.compiling import compiled
from planners.rebalance.kernels import Floats, Ints, KeyRecords, Moved, Order, order_of, resorted, solve, sort_all
from planners.rebalance.plan import RebalancePlan, describe
from planners.rebalance.problem import RebalanceProblem
from planners.rebalance.vectors import CompactForm


@dataclass(frozen=True)
class Criterion:
    """ψ: the record with the greatest value is the first to leave an instance."""

    name: str
    value: Callable[[Floats, Floats], Floats]  # of cost and state


by_cost = Criterion("cost", lambda cost, state: cost)


def by_gamma(beta: float) -> Criterion:
    """The migration priority index γ(k, w) = c(k)^β / S(k, w). Larger β: heavier keys, and fewer entries."""
    if not 0 < beta < np.inf:
        raise ValueError(f"beta weighs cost against state and must be above 0, not {beta}; the paper's is 1.5")
    return Criterion(f"gamma {beta}", lambda cost, state: _gamma(cost, state, beta))


def _gamma(cost: Floats, state: Floats, beta: float) -> Floats:
    """In numpy, whose powers are vectorised. A key with work and no state is the first to move; 0 / 0 is the last."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.power(cost, beta)
        value /= state
    if np.isnan(value.sum()):
        value[np.isnan(value)] = 0.0
    return value


@dataclass(frozen=True, eq=False)
class Attempt:
    """What one attempt at phases I to III came to, on records."""

    back: Ints  # records that phase I moved back
    moved: Moved
    load: Floats
    cleaned: int  # keys that phase I moved back
    entries: int  # N_A'
    state_moved: float

    def rank(self, given: RebalanceProblem) -> tuple[float, int, float, int]:
        """The less the better: excess load, excess entries, state moved, entries."""
        excess = max(0.0, float(self.load.max(initial=0.0)) - given.limit)
        too_many = 0 if given.table is None else max(0, self.entries - given.table)
        return excess, too_many, self.state_moved, self.entries


class Form(Protocol):
    """Keys, or vectors: what to plan on, and how to get from a plan to keys."""

    @property
    def records(self) -> KeyRecords: ...

    def expand(self, back: Ints, moved: Moved) -> Ints:
        """The assignment by key."""
        ...

    @property
    def vectors(self) -> int | None: ...


class KeyForm:
    """Each key is a record."""

    vectors = None

    def __init__(self, given: RebalanceProblem) -> None:
        ones = np.ones(given.cost.size, np.int32)
        self.records = KeyRecords(given.cost, given.state, given.home, given.current, ones)

    def expand(self, back: Ints, moved: Moved) -> Ints:
        assignment = self.records.current.copy()
        assignment[back] = self.records.home[back]
        assignment[moved.record] = moved.place
        return assignment


class Workflow:
    """Attempts at one problem, in one form."""

    def __init__(self, given: RebalanceProblem, form: Form) -> None:
        self._given = given
        self._form = form
        self._records = records = form.records
        everything = np.arange(records.cost.size, dtype=np.int32)
        self._cost = order_of(everything, records.current, given.instances, records.cost)
        self._orders: dict[str, Order] = {by_cost.name: self._cost}
        self._load, self.entries = _loads(records, given.instances)
        in_table = np.flatnonzero(records.current != records.home).astype(np.int32)
        # η: the smallest state first; ties to the lower record, so that a plan is the same everywhere
        self._table = in_table[np.argsort(records.state[in_table], kind="stable")]

    def cleanings(self) -> list[int]:
        """The numbers of keys that phase I can move back: records are moved as a whole."""
        return list(accumulate((int(count) for count in self._records.units[self._table]), initial=0))

    def attempt(self, psi: Criterion, back: int = 0) -> Attempt:
        """Phases I to III: move back at least that many keys of the table, and rebalance."""
        records, given = self._records, self._given
        cleaned = self._first(back)
        load = self._load.copy()
        _move_back(records, cleaned, load)
        order = self._order(psi)
        back_cost = order_of(cleaned, records.home, given.instances, records.cost)
        back_psi = back_cost if psi is by_cost else resorted(back_cost, order.value)
        sort_all(back_cost, records.cost)
        sort_all(back_psi, records.cost)
        moved = solve(records, order, self._cost, back_psi, back_cost, load, given.limit)
        entries, state_moved = _count(records, cleaned, moved.record, moved.place, self.entries)
        return Attempt(cleaned, moved, load, int(records.units[cleaned].sum()), int(entries), float(state_moved))

    def plan(self, outcome: Attempt, trials: int = 1) -> RebalancePlan:
        """The plan by keys, measured on keys."""
        assignment = self._form.expand(outcome.back, outcome.moved)
        estimate = None if self._form.vectors is None else outcome.load
        return describe(
            self._given,
            assignment,
            cleaned=outcome.cleaned,
            trials=trials,
            vectors=self._form.vectors,
            estimate=estimate,
        )

    def _first(self, back: int) -> Ints:
        """The fewest records of the table that hold so many keys, smallest state first, in the order of records."""
        if back <= 0:
            return self._table[:0]
        held = np.cumsum(self._records.units[self._table])
        return np.sort(self._table[: int(np.searchsorted(held, back)) + 1])

    def _order(self, psi: Criterion) -> Order:
        if psi.name not in self._orders:
            self._orders[psi.name] = self._unsorted(psi)
        return self._orders[psi.name]

    def _unsorted(self, psi: Criterion) -> Order:
        records = self._records
        everything = np.arange(records.cost.size, dtype=np.int32)
        value = psi.value(records.cost, records.state)
        return order_of(everything, records.current, self._given.instances, value)


def workflow(given: RebalanceProblem, r: int | None, means: bool = True) -> Workflow:
    """On keys, or with r on vectors."""
    return Workflow(given, KeyForm(given) if r is None else CompactForm(given, r, means))


@compiled
def _loads(records: KeyRecords, instances: int) -> tuple[Floats, int]:
    """Load by instance, and keys that are not at home."""
    load = np.zeros(instances)
    entries = 0
    for i in range(records.cost.size):
        load[records.current[i]] += records.units[i] * records.cost[i]
        if records.current[i] != records.home[i]:
            entries += records.units[i]
    return load, entries


@compiled
def _move_back(records: KeyRecords, back: Ints, load: Floats) -> None:
    """Phase I, on loads."""
    for i in back:
        cost = records.units[i] * records.cost[i]
        load[records.current[i]] -= cost
        load[records.home[i]] += cost


@compiled
def _count(records: KeyRecords, back: Ints, moved: Ints, place: Ints, entries: int) -> tuple[int, float]:
    """Table entries and state moved after an attempt, from what it changed."""
    state_moved = 0.0
    is_back = np.zeros(records.cost.size, np.uint8)
    for i in back:
        is_back[i] = 1
        entries -= records.units[i]
        state_moved += records.units[i] * records.state[i]
    for j in range(moved.size):
        i = moved[j]
        entries += place[j] != records.home[i]
        state_moved += records.state[i] if place[j] != records.current[i] else 0.0
        if is_back[i]:
            state_moved -= records.state[i]
        else:
            entries -= records.current[i] != records.home[i]
    return entries, state_moved
