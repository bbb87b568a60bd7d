"""The compact form (section IV): keys that look alike become one vector with a count; plans on vectors, back to keys.

A vector is (d', d, d_h, v_c, v_S, #): where its keys go next, where they are, where the hash function puts them, what
one of them costs and holds, and how many there are. Keys look alike if HLHE says so of their costs and of their
states.

In the paper v_c and v_S are HLHE's representatives, discretised here for the keys of each instance by themselves, as
the instances would before they report (`means=False`). That makes the loads of instances right, but not those of what
moves: ψ prefers vectors whose cost was rounded up and whose state was rounded down, so that less load moves than it
seems. By default keys are therefore gathered between the same two representatives, and v_c and v_S are their means: no
choice of a representative is needed, which is faster, and ψ sees no rounding, which is more exact (figure skew-11
shows both).

The keys of a vector look alike, so ψ does not tell them apart. If some of them move, they are spread evenly over the
vector, in the order of keys. If the first ones moved, and keys were numbered by rank, the dearer half would move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.rebalance.compiling import compiled
from planners.rebalance.hlhe import hlhe, levels
from planners.rebalance.kernels import Floats, Ints, KeyRecords, Moved
from planners.rebalance.problem import RebalanceProblem, problem

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Vectors:
    """Six columns; a row for each vector."""

    next: Ints  # d'
    current: Ints  # d
    home: Ints  # d_h
    cost: Floats  # v_c
    state: Floats  # v_S
    count: Ints  # #

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return int(self.count.size)


class KeyAmounts(NamedTuple):
    """What keys cost, or hold: as planned with, and the number of the representative that they share."""

    value: Floats
    number: Ints


class CompactForm:
    """Keys as vectors, and the way back. Building it costs a few passes over the keys, without sorting."""

    def __init__(self, given: RebalanceProblem, r: int, means: bool = True) -> None:
        cost, state = (self._means if means else self._representatives)(given, r)
        self.vector_of, firsts = _gather(given.current, given.home, cost.number, state.number, given.instances)
        count, costs, states = _average(self.vector_of, firsts.size, cost.value, state.value)
        self.records = KeyRecords(costs, states, given.home[firsts], given.current[firsts], count)

    def _means(self, given: RebalanceProblem, r: int) -> tuple[KeyAmounts, KeyAmounts]:
        return KeyAmounts(given.cost, levels(given.cost, r)), KeyAmounts(given.state, levels(given.state, r))

    def _representatives(self, given: RebalanceProblem, r: int) -> tuple[KeyAmounts, KeyAmounts]:
        """Keys by HLHE's representatives. The mean of a vector's equal representatives is the representative itself."""
        cost = hlhe(given.cost, r, group=given.current, groups=given.instances)
        state = hlhe(given.state, r, group=given.current, groups=given.instances)
        return KeyAmounts(cost.values, cost.chosen), KeyAmounts(state.values, state.chosen)

    @property
    def vectors(self) -> int:
        """How many vectors there are."""
        return int(self.records.units.size)

    def expand(self, back: Ints, moved: Moved) -> Ints:
        """The assignment by key of a plan on vectors."""
        place = self.records.current.copy()
        place[back] = self.records.home[back]
        starts, places = _by_record(moved.record, moved.place, self.vectors)
        return _deal(self.vector_of, self.records.units, place, starts, places)


def compact(
    cost: ArrayLike,
    state: ArrayLike,
    *,
    home: ArrayLike,
    current: ArrayLike,
    instances: int,
    r: int = 3,
    means: bool = True,
    window: int | None = None,
) -> Vectors:
    """The vectors of keys as they are (d' = d).

    >>> found = compact([4, 4, 8], [4, 4, 8], home=[0, 0, 1], current=[1, 1, 1], instances=2)
    >>> [(int(d), int(h), float(c), float(s), int(n)) for d, h, c, s, n in
    ...  zip(found.current, found.home, found.cost, found.state, found.count)]
    [(1, 0, 4.0, 4.0, 2), (1, 1, 8.0, 8.0, 1)]
    """
    given = problem(cost, state, home=home, current=current, instances=instances, theta=0.0, window=window)
    records = CompactForm(given, r, means).records
    return Vectors(records.current, records.current, records.home, records.cost, records.state, records.units)


class Index(NamedTuple):
    """An open-addressing table from what vectors have in common to their numbers, which are given as they are met."""

    slots: Ints  # the vector, or -1
    places: Codes  # by slot, home and current
    amounts: Codes  # by slot, the numbers of both representatives


@compiled
def _gather(current: Ints, home: Ints, cost: Ints, state: Ints, instances: int) -> tuple[Ints, Ints]:
    """By key its vector; by vector its first key."""
    vector_of = np.empty(current.size, np.int32)
    firsts = np.empty(current.size, np.int32)
    index = _index(4096)
    k = size = 0
    while True:
        k, size = _fill(
            current, home, cost, state, instances, index.slots, index.places, index.amounts, vector_of, firsts, k, size
        )
        if k == current.size:
            break
        index = _grown(index)
    return vector_of, firsts[:size].copy()


@compiled
def _average(vector_of: Ints, size: int, cost: Floats, state: Floats) -> tuple[Ints, Floats, Floats]:
    """By vector, how many keys, and their mean cost and state."""
    count, costs, states = np.zeros(size, np.int32), np.zeros(size), np.zeros(size)
    for k in range(vector_of.size):
        vector = vector_of[k]
        count[vector] += 1
        costs[vector] += cost[k]
        states[vector] += state[k]
    return count, costs / count, states / count


@compiled
def _index(slots: int) -> Index:
    return Index(np.full(slots, -1, np.int32), np.empty(slots, np.int64), np.empty(slots, np.int64))


@compiled
def _fill(
    current: Ints,
    home: Ints,
    cost: Ints,
    state: Ints,
    instances: int,
    slots: Ints,
    places: Codes,
    amounts: Codes,
    vector_of: Ints,
    firsts: Ints,
    k: int,
    size: int,
) -> tuple[int, int]:
    """Gathers from key k on until the index is half full; the next key, and how many vectors there are."""
    while k < current.size and 2 * size < slots.size:
        place = int(current[k]) * instances + int(home[k])
        amount = (int(cost[k]) << 32) | int(state[k])
        slot = _find(slots, places, amounts, place, amount)
        if slots[slot] < 0:
            slots[slot], places[slot], amounts[slot] = size, place, amount
            firsts[size] = k
            size += 1
        vector_of[k] = slots[slot]
        k += 1
    return k, size


@compiled
def _find(slots: Ints, places: Codes, amounts: Codes, place: int, amount: int) -> int:
    """The slot of a vector, or the one where it would go."""
    mask = slots.size - 1
    scattered = np.uint64(amount + (amount >> 27) + place * 0x2545F491) * np.uint64(0x9E3779B97F4A7C15)
    slot = int(scattered >> np.uint64(40)) & mask
    while slots[slot] >= 0 and (amounts[slot] != amount or places[slot] != place):
        slot = (slot + 1) & mask
    return slot


@compiled
def _grown(index: Index) -> Index:
    larger = _index(4 * index.slots.size)
    for slot in range(index.slots.size):
        if index.slots[slot] >= 0:
            place, amount = index.places[slot], index.amounts[slot]
            at = _find(larger.slots, larger.places, larger.amounts, place, amount)
            larger.slots[at], larger.places[at], larger.amounts[at] = index.slots[slot], place, amount
    return larger


@compiled
def _by_record(record: Ints, place: Ints, vectors: int) -> tuple[Ints, Ints]:
    """The log by vector: where each vector's destinations begin, and the destinations."""
    start = np.zeros(vectors + 1, np.int32)
    for i in record:
        start[i + 1] += 1
    for i in range(vectors):
        start[i + 1] += start[i]
    at = start[:-1].copy()
    places = np.empty(record.size, np.int32)
    for j in range(record.size):
        places[at[record[j]]] = place[j]
        at[record[j]] += 1
    return start, places


@compiled
def _deal(vector_of: Ints, count: Ints, place: Ints, start: Ints, places: Ints) -> Ints:
    """By key its instance: as many of a vector's keys as it has destinations, evenly spread; the others stay."""
    at = start[:-1].copy()
    due = np.zeros(count.size, np.int32)  # by vector, destinations owed to the keys so far, in parts of its count
    assignment = np.empty(vector_of.size, np.int32)
    for k in range(vector_of.size):
        vector = vector_of[k]
        due[vector] += start[vector + 1] - start[vector]
        if due[vector] >= count[vector]:
            due[vector] -= count[vector]
            assignment[k] = places[at[vector]]
            at[vector] += 1
        else:
            assignment[k] = place[vector]
    return assignment
