"""Phases II and III of the general workflow (section III), compiled: who leaves an overloaded instance, and LLFD.

They work on *records*: a record is a key, or in the compact form a vector of keys that look alike, and then has a
count. Units (keys) of one record may end at several instances.

Why it ends: LLFD handles candidates in descending order of cost, and what it pushes out of an instance is strictly
cheaper than what it puts in. So a unit that was placed is never pushed out again, every unit is placed at most once,
and cursors into the sorted lists only go forward.

Cost: O(records) to group; an instance's list is sorted (linearly: a radix sort) when it is first needed, which is
when the instance is overloaded, or a candidate that fits nowhere asks whom it could push out. A candidate costs O(log
instances) if it fits. With theta > 0 at most instances / theta candidates do not fit at once: the others are cheaper
than theta * mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.rebalance.compiling import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.uint8]


class Order(NamedTuple):
    """The records at each instance in descending order of a value, ties to the lower record."""

    start: Ints  # by instance, where its records begin; one more at the end
    records: Ints
    ready: Flags  # by instance, whether its records are in order yet
    value: Floats  # by record
    cost: Floats  # of the records as they stand in their order: to skip the dear ones without looking each up


class KeyRecords(NamedTuple):
    """What is known of each record: its cost and state are those of one unit."""

    cost: Floats
    state: Floats
    home: Ints
    current: Ints
    units: Ints  # how many keys it stands for


class Trial(NamedTuple):
    """The state of one attempt. Cursors have two rows: into the lists of `current`, and of those moved back."""

    left: Ints  # by record, units where phase I left them
    queued: Ints  # by record, units among the candidates C
    is_back: Flags  # by record, whether phase I moved it back
    load: Floats  # by instance, the running estimate
    cheap: Floats  # by instance, the cost of units left there that are cheaper than the candidate at hand (or a bound)
    by_psi: Ints  # cursors
    by_cost: Ints  # cursors
    heap: Ints  # C: records with queued units, the dearest first
    heap_cost: Floats  # their costs, in the heap's order
    tree: Ints  # a tournament of instances: the least loaded is at the root


class Moved(NamedTuple):
    """What was decided: unit i of the log is of record `record[i]` and goes to `place[i]`."""

    record: Ints
    place: Ints
    stranded: int  # units that no instance would accept


@compiled
def group(records: Ints, place: Ints, instances: int) -> tuple[Ints, Ints]:
    """Those records by instance, in the given order within each: where each instance begins, and the records."""
    start = np.zeros(instances + 1, np.int32)
    for record in records:
        start[place[record] + 1] += 1
    for d in range(instances):
        start[d + 1] += start[d]
    at = start[:-1].copy()
    grouped = np.empty(records.size, np.int32)
    for record in records:
        d = place[record]
        grouped[at[d]] = record
        at[d] += 1
    return start, grouped


@compiled
def sort_all(order: Order, cost: Floats) -> None:
    """Puts every instance's records in order."""
    for d in range(order.ready.size):
        _sort(order, cost, d)


@compiled
def _sort(order: Order, cost: Floats, d: int) -> None:
    """Puts the records of one instance in order, unless they are."""
    if order.ready[d]:
        return
    order.ready[d] = 1
    segment = order.records[order.start[d] : order.start[d + 1]]
    if segment.size > 48:
        _radix_sort(segment, order.value)
    else:
        _insertion_sort(segment, order.value)
    for at in range(order.start[d], order.start[d + 1]):
        order.cost[at] = cost[order.records[at]]


@compiled
def _insertion_sort(segment: Ints, value: Floats) -> None:
    """Descending and stable."""
    for i in range(1, segment.size):
        record = segment[i]
        j = i
        while j > 0 and value[segment[j - 1]] < value[record]:
            segment[j] = segment[j - 1]
            j -= 1
        segment[j] = record


@compiled
def _radix_sort(segment: Ints, value: Floats) -> None:
    """Descending and stable: floats that are not negative order as their bits do, so the complements descend."""
    n = segment.size
    bits = value.view(np.uint64)
    keys, other_keys = np.empty(n, np.uint64), np.empty(n, np.uint64)
    records, other_records = segment.copy(), np.empty(n, np.int32)
    counts = np.zeros((8, 256), np.int32)
    for i in range(n):
        key = ~bits[segment[i]]
        keys[i] = key
        for digit in range(8):
            counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    for digit in range(8):
        shift = np.uint64(8 * digit)
        count = counts[digit]
        if count[(keys[0] >> shift) & np.uint64(255)] == n:
            continue  # all alike in this digit, as the low bits of whole numbers are
        at = 0
        for bucket in range(256):
            size = count[bucket]
            count[bucket] = at
            at += size
        for i in range(n):
            digits = int((keys[i] >> shift) & np.uint64(255))
            other_keys[count[digits]] = keys[i]
            other_records[count[digits]] = records[i]
            count[digits] += 1
        keys, other_keys = other_keys, keys
        records, other_records = other_records, records
    segment[:] = records


@compiled
def solve(
    records: KeyRecords, psi: Order, cost: Order, back_psi: Order, back_cost: Order, load: Floats, limit: float
) -> Moved:
    """Phases II and III. `load` is after phase I, and becomes that of the result; `back_*` is what phase I moved."""
    trial = _begin(records, back_psi.records, load)
    costs, tree, heap, heap_cost, queued = records.cost, trial.tree, trial.heap, trial.heap_cost, trial.queued
    size = _disassociate(records, psi, back_psi, trial, limit)
    _build_tree(tree, load)
    trial.cheap[:] = load
    all_units = records.units.sum()
    log_record, log_place = np.empty(all_units, np.int32), np.empty(all_units, np.int32)
    logged = stranded = 0
    while size:
        candidate, size = _pop(heap, heap_cost, size)
        need, units = costs[candidate], queued[candidate]
        queued[candidate] = 0
        for _ in range(units):
            d = tree[1]
            if load[d] + need > limit:
                d, size = _exchange(records, psi, cost, back_psi, back_cost, trial, limit, need, size)
                if d < 0:  # the printed loop leaves such a key unassigned
                    d = tree[1]
                    stranded += 1
            load[d] += need
            _update_tree(tree, load, d)
            assert logged < all_units, "a unit was placed twice: what made room for it was not strictly cheaper"
            log_record[logged], log_place[logged] = candidate, d
            logged += 1
    return Moved(log_record[:logged], log_place[:logged], stranded)


@compiled
def _begin(records: KeyRecords, back: Ints, load: Floats) -> Trial:
    instances = load.size
    leaves = 1
    while leaves < instances:
        leaves *= 2
    is_back = np.zeros(records.cost.size, np.uint8)
    is_back[back] = 1
    return Trial(
        records.units.copy(),
        np.zeros(records.cost.size, np.int32),
        is_back,
        load,
        np.zeros(instances),
        np.zeros((2, instances), np.int32),
        np.zeros((2, instances), np.int32),
        np.empty(records.cost.size, np.int32),
        np.empty(records.cost.size),
        np.full(2 * leaves, -1, np.int32),
    )


@compiled
def _disassociate(records: KeyRecords, psi: Order, back_psi: Order, trial: Trial, limit: float) -> int:
    """Phase II: from each overloaded instance, in the order of ψ, as many units as it takes. Returns the size of C."""
    size = 0
    for d in range(trial.load.size):
        if trial.load[d] <= limit:
            continue
        _sort(psi, records.cost, d)
        while trial.load[d] > limit:
            record, row = _head(psi, back_psi, trial.by_psi, trial, d, np.inf)
            if record < 0 or records.cost[record] == 0.0:
                break  # what remains is free, and the excess a rounding error
            size = _take(records, trial, d, record, trial.load[d] - limit, size)
            if trial.left[record] == 0:
                trial.by_psi[row, d] += 1
    return size


@compiled
def _head(order: Order, back: Order, cursors: Ints, trial: Trial, d: int, below: float) -> tuple[int, int]:
    """The first record at d that is cheaper than `below` and has units there, or -1; and the row of its cursor."""
    left, is_back = trial.left, trial.is_back
    first = _skip(order.start, order.records, order.cost, cursors[0], left, is_back, d, below, 0)
    second = _skip(back.start, back.records, back.cost, cursors[1], left, is_back, d, below, 1)
    if second < 0 or (first >= 0 and _before(order.value, first, second)):
        return first, 0
    return second, 1


@compiled
def _skip(
    start: Ints,
    records: Ints,
    costs: Floats,
    cursor: Ints,
    left: Ints,
    is_back: Flags,
    d: int,
    below: float,
    back: int,
) -> int:
    """Moves a cursor to the next record that is cheaper than `below` and has units at d; -1 if there is none.

    What is skipped is skipped for good: `below` never grows. (Flat arrays here and in `_pass_dear`, which may pass
    every key: in a loop, arrays inside tuples are counted up and down at every step, which costs a microsecond.)
    """
    at, end, found = start[d] + cursor[d], start[d + 1], -1
    while at < end:
        if costs[at] < below and left[records[at]] and is_back[records[at]] == back:
            found = records[at]
            break
        at += 1
    cursor[d] = at - start[d]
    return found


@compiled
def _before(value: Floats, a: int, b: int) -> bool:
    return bool(value[a] > value[b] or (value[a] == value[b] and a < b))


@compiled
def _take(records: KeyRecords, trial: Trial, d: int, record: int, excess: float, size: int) -> int:
    """Moves units of a record from d to C, until the excess is gone or there are no more. Returns the size of C."""
    cost = records.cost[record]
    units = min(float(trial.left[record]), max(1.0, math.ceil(excess / cost)))
    taken = np.int32(units)
    trial.left[record] -= taken
    trial.load[d] -= taken * cost
    trial.cheap[d] -= taken * cost
    if trial.queued[record] == 0:
        size = _push(trial.heap, trial.heap_cost, size, record, cost)
    trial.queued[record] += taken
    return size


@compiled
def _exchange(
    records: KeyRecords,
    psi: Order,
    cost: Order,
    back_psi: Order,
    back_cost: Order,
    trial: Trial,
    limit: float,
    need: float,
    size: int,
) -> tuple[int, int]:
    """The least loaded instance that can make room for that cost (lines 14 to 18), or -1; and the size of C."""
    if need > limit:  # even alone
        return -1, size
    for d in np.argsort(trial.load, kind="mergesort"):
        if _can_make_room(records, cost, back_cost, trial, limit, need, d):
            _sort(psi, records.cost, d)
            size = _make_room(records, psi, back_psi, trial, limit, need, d, size)
            return d, size
    return -1, size


@compiled
def _can_make_room(
    records: KeyRecords, cost: Order, back_cost: Order, trial: Trial, limit: float, need: float, d: int
) -> bool:
    """Whether an exchangeable set exists at d: all that is strictly cheaper, if it left, would leave enough room."""
    if trial.load[d] + need - trial.cheap[d] > limit:
        return False  # `cheap` is a bound while it is behind
    _sort(cost, records.cost, d)
    left, is_back = trial.left, trial.is_back
    # what is as dear as this candidate is out of reach for all that follow
    trial.cheap[d] -= _pass_dear(
        cost.start, cost.records, cost.cost, trial.by_cost[0], left, is_back, d, need, 0
    ) + _pass_dear(back_cost.start, back_cost.records, back_cost.cost, trial.by_cost[1], left, is_back, d, need, 1)
    return bool(trial.load[d] + need - trial.cheap[d] <= limit)


@compiled
def _pass_dear(
    start: Ints,
    records: Ints,
    costs: Floats,
    cursor: Ints,
    left: Ints,
    is_back: Flags,
    d: int,
    need: float,
    back: int,
) -> float:
    """Moves a cursor past what costs `need` or more; the cost of the units there."""
    at, end, total = start[d] + cursor[d], start[d + 1], 0.0
    while at < end and costs[at] >= need:
        if is_back[records[at]] == back:
            total += left[records[at]] * costs[at]
        at += 1
    cursor[d] = at - start[d]
    return total


@compiled
def _make_room(
    records: KeyRecords,
    psi: Order,
    back_psi: Order,
    trial: Trial,
    limit: float,
    need: float,
    d: int,
    size: int,
) -> int:
    """Pushes an exchangeable set E out of d, in the order of ψ. Returns the size of C."""
    while trial.load[d] + need > limit:
        record, row = _head(psi, back_psi, trial.by_psi, trial, d, need)
        if record < 0 or records.cost[record] == 0.0:
            break  # rounding: the sum of what is cheaper said that it was enough
        size = _take(records, trial, d, record, trial.load[d] + need - limit, size)
        if trial.left[record] == 0:
            trial.by_psi[row, d] += 1
    return size


@compiled
def _push(heap: Ints, cost: Floats, size: int, record: int, its_cost: float) -> int:
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if not _dearer(its_cost, record, cost[parent], heap[parent]):
            break
        heap[at], cost[at] = heap[parent], cost[parent]
        at = parent
    heap[at], cost[at] = record, its_cost
    return size + 1


@compiled
def _pop(heap: Ints, cost: Floats, size: int) -> tuple[int, int]:
    top = heap[0]
    size -= 1
    last, its_cost = heap[size], cost[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _dearer(cost[child + 1], heap[child + 1], cost[child], heap[child]):
            child += 1
        if not _dearer(cost[child], heap[child], its_cost, last):
            break
        heap[at], cost[at] = heap[child], cost[child]
        at = child
    heap[at], cost[at] = last, its_cost
    return top, size


@compiled
def _dearer(cost: float, record: int, other_cost: float, other: int) -> bool:
    """The order of C: descending cost, ties to the lower record."""
    return bool(cost > other_cost or (cost == other_cost and record < other))


@compiled
def _build_tree(tree: Ints, load: Floats) -> None:
    leaves = tree.size // 2
    for d in range(load.size):
        tree[leaves + d] = d
    for at in range(leaves - 1, 0, -1):
        tree[at] = _lesser(load, tree[2 * at], tree[2 * at + 1])


@compiled
def _update_tree(tree: Ints, load: Floats, d: int) -> None:
    at = (tree.size // 2 + d) // 2
    while at > 0:
        tree[at] = _lesser(load, tree[2 * at], tree[2 * at + 1])
        at //= 2


@compiled
def _lesser(load: Floats, left: int, right: int) -> int:
    """The less loaded of two instances, ties to the left; -1 is none."""
    return left if right < 0 or load[left] <= load[right] else right


def order_of(records: Ints, place: Ints, instances: int, value: Floats) -> Order:
    """The records by instance, to be sorted by `value` as needed."""
    start, grouped = group(records, place, instances)
    return Order(start, grouped, np.zeros(instances, np.uint8), value, np.empty(records.size))


def resorted(order: Order, value: Floats) -> Order:
    """The same lists, for another value."""
    return Order(order.start, order.records.copy(), np.zeros_like(order.ready), value, np.empty(order.records.size))
