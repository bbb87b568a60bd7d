"""Phases II and III of the general workflow (section III), compiled: who leaves an overloaded instance, and LLFD.

They work on *records*: a record is a key, or in the compact form a vector of keys that look alike, and then has a count.
Units (keys) of one record may end at several instances.

Why it ends: LLFD handles candidates in descending order of cost, and what it pushes out of an instance is strictly
cheaper than what it puts in. So a unit that was placed is never pushed out again, every unit is placed at most once, and
cursors into the sorted lists only go forward.

Cost: O(records) to group; an instance's list is sorted (linearly: a radix sort) when it is first needed, which is when the
instance is overloaded, or a candidate that fits nowhere asks whom it could push out. A candidate costs O(log instances)
if it fits. With theta > 0 at most instances / theta candidates do not fit at once: the others are cheaper than theta * mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.rebalance.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.uint8]


class Order(NamedTuple):
    """The records at each instance in descending order of a value, ties to the lower record."""

    start: Ints  # by instance, where its records begin; one more at the end
    records: Ints
    ready: Flags  # by instance, whether its records are in order yet
    value: Floats  # by record


class Records(NamedTuple):
    """What is known of each record: its cost and state are those of one unit."""

    cost: Floats
    state: Floats
    home: Ints
    current: Ints
    count: Ints


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
def sort_all(order: Order) -> None:
    """Puts every instance's records in order."""
    for d in range(order.ready.size):
        _sort(order, d)


@compiled
def _sort(order: Order, d: int) -> None:
    """Puts the records of one instance in order: insertion for a few, else radix, both stable."""
    if order.ready[d]:
        return
    order.ready[d] = 1
    segment = order.records[order.start[d] : order.start[d + 1]]
    if segment.size > 48:
        _radix_sort(segment, order.value)
        return
    for i in range(1, segment.size):
        record = segment[i]
        value = order.value[record]
        j = i
        while j > 0 and order.value[segment[j - 1]] < value:
            segment[j] = segment[j - 1]
            j -= 1
        segment[j] = record


@compiled
def _radix_sort(segment: Ints, value: Floats) -> None:
    """Descending and stable: the bits of floats that are not negative order as they do, so their complements descend."""
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
            bucket = np.int64((keys[i] >> shift) & np.uint64(255))
            other_keys[count[bucket]] = keys[i]
            other_records[count[bucket]] = records[i]
            count[bucket] += 1
        keys, other_keys = other_keys, keys
        records, other_records = other_records, records
    segment[:] = records


@compiled
def solve(
    records: Records, psi: Order, cost: Order, back_psi: Order, back_cost: Order, load: Floats, limit: float
) -> Moved:
    """Phases II and III. `load` is that after phase I and becomes that of the result; `back_*` hold what phase I moved."""
    trial = _begin(records, back_psi.records, load)
    size = _disassociate(records, psi, back_psi, trial, limit)
    _build_tree(trial)
    trial.cheap[:] = load
    all_units = records.count.sum()
    log_record, log_place = np.empty(all_units, np.int32), np.empty(all_units, np.int32)
    logged = stranded = 0
    while size:
        candidate, size = _pop(trial.heap, size, records.cost)
        units = trial.queued[candidate]
        trial.queued[candidate] = 0
        for _ in range(units):
            d, size = _accepting(records, psi, cost, back_psi, back_cost, trial, limit, candidate, size)
            if d < 0:  # the printed loop leaves such a key unassigned
                d = trial.tree[1]
                stranded += 1
            load[d] += records.cost[candidate]
            _update_tree(trial, d)
            assert logged < all_units, "a unit was placed twice: what made room for it was not strictly cheaper"
            log_record[logged], log_place[logged] = candidate, d
            logged += 1
    return Moved(log_record[:logged], log_place[:logged], stranded)


@compiled
def _begin(records: Records, back: Ints, load: Floats) -> Trial:
    instances = load.size
    leaves = 1
    while leaves < instances:
        leaves *= 2
    is_back = np.zeros(records.cost.size, np.uint8)
    is_back[back] = 1
    return Trial(
        records.count.copy(),
        np.zeros(records.cost.size, np.int32),
        is_back,
        load,
        np.zeros(instances),
        np.zeros((2, instances), np.int32),
        np.zeros((2, instances), np.int32),
        np.empty(records.cost.size, np.int32),
        np.full(2 * leaves, -1, np.int32),
    )


@compiled
def _disassociate(records: Records, psi: Order, back_psi: Order, trial: Trial, limit: float) -> int:
    """Phase II: from each overloaded instance, in the order of ψ, as many units as it takes. Returns the size of C."""
    size = 0
    for d in range(trial.load.size):
        if trial.load[d] <= limit:
            continue
        _sort(psi, d)
        while trial.load[d] > limit:
            record, row = _head(psi, back_psi, trial.by_psi, trial, d)
            if record < 0 or records.cost[record] == 0.0:
                break  # what remains is free, and the excess a rounding error
            size = _take(records, trial, d, record, trial.load[d] - limit, size)
            if trial.left[record] == 0:
                trial.by_psi[row, d] += 1
    return size


@compiled
def _head(order: Order, back: Order, cursors: Ints, trial: Trial, d: int) -> tuple[int, int]:
    """The first record at instance d that still has units there, and the row of its cursor; (-1, 0) at the end."""
    first, at, end = -1, cursors[0, d], order.start[d + 1] - order.start[d]
    while at < end:
        record = order.records[order.start[d] + at]
        if trial.left[record] and not trial.is_back[record]:
            first = record
            break
        at += 1
    cursors[0, d] = at
    second, at, end = -1, cursors[1, d], back.start[d + 1] - back.start[d]
    while at < end:
        record = back.records[back.start[d] + at]
        if trial.left[record]:
            second = record
            break
        at += 1
    cursors[1, d] = at
    if second < 0 or (first >= 0 and _before(order.value, first, second)):
        return first, 0
    return second, 1


@compiled
def _before(value: Floats, a: int, b: int) -> bool:
    return bool(value[a] > value[b] or (value[a] == value[b] and a < b))


@compiled
def _take(records: Records, trial: Trial, d: int, record: int, excess: float, size: int) -> int:
    """Moves units of a record from d to C, until the excess is gone or there are no more. Returns the size of C."""
    cost = records.cost[record]
    units = min(float(trial.left[record]), max(1.0, math.ceil(excess / cost)))
    taken = np.int32(units)
    trial.left[record] -= taken
    trial.load[d] -= taken * cost
    trial.cheap[d] -= taken * cost
    if trial.queued[record] == 0:
        size = _push(trial.heap, size, records.cost, record)
    trial.queued[record] += taken
    return size


@compiled
def _accepting(
    records: Records,
    psi: Order,
    cost: Order,
    back_psi: Order,
    back_cost: Order,
    trial: Trial,
    limit: float,
    candidate: int,
    size: int,
) -> tuple[int, int]:
    """The instance that takes one unit of the candidate (lines 4 to 8 of algorithm 1) or -1, and the size of C."""
    need = records.cost[candidate]
    least = trial.tree[1]
    if trial.load[least] + need <= limit:
        return least, size
    if need > limit:  # even alone
        return -1, size
    for d in np.argsort(trial.load, kind="mergesort"):
        _sort(psi, d)
        if _can_make_room(records, cost, back_cost, trial, limit, need, d):
            size = _make_room(records, psi, back_psi, trial, limit, need, d, size)
            return d, size
    return -1, size


@compiled
def _can_make_room(
    records: Records, cost: Order, back_cost: Order, trial: Trial, limit: float, need: float, d: int
) -> bool:
    """Whether an exchangeable set exists at d: all that is strictly cheaper, if it left, would leave enough room."""
    if trial.load[d] + need - trial.cheap[d] > limit:
        return False
    _sort(cost, d)
    while True:  # what is as dear as this candidate is out of reach for all that follow
        record, row = _head(cost, back_cost, trial.by_cost, trial, d)
        if record < 0 or records.cost[record] < need:
            break
        trial.cheap[d] -= trial.left[record] * records.cost[record]
        trial.by_cost[row, d] += 1
    return bool(trial.load[d] + need - trial.cheap[d] <= limit)


@compiled
def _make_room(
    records: Records,
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
        record, row = _head(psi, back_psi, trial.by_psi, trial, d)
        if record < 0 or records.cost[record] == 0.0:
            break  # rounding: the sum of what is cheaper said that it was enough
        if records.cost[record] < need:
            size = _take(records, trial, d, record, trial.load[d] + need - limit, size)
        if records.cost[record] >= need or trial.left[record] == 0:
            trial.by_psi[row, d] += 1
    return size


@compiled
def _push(heap: Ints, size: int, cost: Floats, record: int) -> int:
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if not _before(cost, record, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = record
    return size + 1


@compiled
def _pop(heap: Ints, size: int, cost: Floats) -> tuple[int, int]:
    top, last = heap[0], heap[size - 1]
    size -= 1
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(cost, heap[child + 1], heap[child]):
            child += 1
        if not _before(cost, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return top, size


@compiled
def _build_tree(trial: Trial) -> None:
    leaves = trial.tree.size // 2
    for d in range(trial.load.size):
        trial.tree[leaves + d] = d
    for at in range(leaves - 1, 0, -1):
        trial.tree[at] = _lesser(trial, trial.tree[2 * at], trial.tree[2 * at + 1])


@compiled
def _update_tree(trial: Trial, d: int) -> None:
    at = (trial.tree.size // 2 + d) // 2
    while at > 0:
        trial.tree[at] = _lesser(trial, trial.tree[2 * at], trial.tree[2 * at + 1])
        at //= 2


@compiled
def _lesser(trial: Trial, left: int, right: int) -> int:
    """The less loaded of two instances, ties to the left; -1 is none."""
    return left if right < 0 or trial.load[left] <= trial.load[right] else right


def order_of(records: Ints, place: Ints, instances: int, value: Floats) -> Order:
    """The records by instance, to be sorted by `value` as needed."""
    start, grouped = group(records, place, instances)
    return Order(start, grouped, np.zeros(instances, np.uint8), value)


def resorted(order: Order, value: Floats) -> Order:
    """The same lists, for another value."""
    return Order(order.start, order.records.copy(), np.zeros_like(order.ready), value)
