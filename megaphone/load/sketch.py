"""Heavy keys of a stream: space-saving, over batches, compiled.

A counter for each of `capacity` keys, and more until there are four times as many; then only the largest `capacity`
stay, and the largest that went is the `floor`. A key that comes new starts at the floor, for it may have had that much
before. That is space-saving with its evictions put off, so that a record costs one probe of a small hash table.

What is certain, for a total weight W:

- every key's true weight is at most its `estimate`, and at least `estimate - error`;
- a key that is not in the sketch weighs at most `floor`, and so does every error;
- `floor <= W / (capacity + 1)`.

Why the last: take `estimate - floor` as a counter. Raising the floor by s lowers by s every counter that stays, and the
largest that goes: capacity + 1 counters at least, whose sum is never above the weight that came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dataflow.compiled.kernel import kernel

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compiles a function over arrays and scalars when it is first called, and keeps the result on disk."""
    return kernel(error_model="numpy", nogil=True)(function)


Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]
Slots = NDArray[np.int32]

ROOM = 4  # counters for each key of the capacity, before the smallest go


@dataclass(frozen=True, eq=False)
class Heavy:
    """Keys, the heaviest first."""

    keys: Keys
    estimates: Floats  # not below the true weight
    errors: Floats  # by how much an estimate may be above it

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.keys.size)


class SpaceSaving:
    """The heavy keys of a stream of integer keys, with weights.

    Costs: O(1) per record, amortised (a purge is linear in the capacity, and frees three times as many places); memory
    of about 140 bytes for each key of the capacity.

    >>> sketch = SpaceSaving(2)
    >>> sketch.update([7, 7, 7, 8, 7, 9])
    >>> heavy = sketch.heavy(share=0.5)
    >>> heavy.keys, heavy.estimates, sketch.total
    (array([7], dtype=uint64), array([4.]), 6.0)
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a sketch needs room for at least one key, not {capacity}")
        self.capacity = capacity
        self.total = 0.0  # W, the weight of all records
        self.floor = 0.0
        self._size = 0
        slots = 16
        while slots < 2 * ROOM * capacity + 4:
            slots *= 2
        self._slots: Slots = np.full(slots, -1, np.int32)  # an open-addressing table of counters
        self._keys: Keys = np.empty(ROOM * capacity + 1, np.uint64)
        self._counts: Floats = np.empty(ROOM * capacity + 1)
        self._errors: Floats = np.empty(ROOM * capacity + 1)

    @property
    def bound(self) -> float:
        """What no error is ever above: W / (capacity + 1). `floor` is how large an error is in fact."""
        return self.total / (self.capacity + 1)

    def update(self, keys: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Counts a batch of records; a record weighs 1 unless told, each for itself or all alike."""
        array = np.ascontiguousarray(keys)
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"keys must be integers, not {array.dtype}: hash them first")
        array = array.view(np.uint64) if array.dtype.itemsize == 8 and array.size else array.astype(np.uint64)
        if weights is None or isinstance(weights, float):
            each = 1.0 if weights is None else weights
            if not 0 <= each < np.inf:
                raise ValueError("weights must be finite and not negative")
            self._fold(array, np.full(1, each))
            self.total += each * array.size
            return
        amounts = np.ascontiguousarray(weights, dtype=np.float64)
        if amounts.shape != array.shape:
            raise ValueError(f"{array.size} keys and {amounts.size} weights: each record needs one")
        if amounts.size:
            if not (amounts.min() >= 0 and amounts.max() < np.inf):
                raise ValueError("weights must be finite and not negative")
            self._fold(array, amounts)
            self.total += float(amounts.sum())

    def merge(self, other: SpaceSaving) -> None:
        """Takes in what another sketch saw (another worker's): the bound then holds for both totals together.

        Each side charges its floor for the keys that only the other one has.
        """
        if other.capacity != self.capacity:
            raise ValueError(f"sketches of capacity {self.capacity} and {other.capacity} do not merge")
        mine, theirs = self._all(), other._all()
        keys = np.union1d(mine.keys, theirs.keys)
        counts, errors = np.zeros(keys.size), np.zeros(keys.size)
        for part, floor in ((mine, self.floor), (theirs, other.floor)):
            count, error = np.full(keys.size, floor), np.full(keys.size, floor)
            at = np.searchsorted(keys, part.keys)
            count[at], error[at] = part.estimates, part.errors
            counts += count
            errors += error
        floor = self.floor + other.floor
        order = np.argsort(-counts, kind="stable")
        if keys.size > self.capacity:
            floor = max(floor, float(counts[order[self.capacity]]))
        self._install(keys, counts, errors, order[: self.capacity], floor)
        self.total += other.total

    def heavy(self, share: float | None = None) -> Heavy:
        """The keys whose estimate is at least that share of the total (none that reaches it is missing), or the
        `capacity` heaviest."""
        found = self._all()
        if share is None:
            stop = min(found.size, self.capacity)
        else:
            stop = int((found.estimates >= share * self.total).sum())
        return Heavy(found.keys[:stop], found.estimates[:stop], found.errors[:stop])

    def estimate(self, key: int) -> float:
        """At least the true weight of a key, and at most `floor` more."""
        at = np.flatnonzero(self._keys[: self._size] == np.uint64(key % 2**64))
        return float(self._counts[at[0]]) if at.size else self.floor

    def clear(self) -> None:
        """Forgets everything: a new interval."""
        self._slots[:] = -1
        self._size = 0
        self.total = self.floor = 0.0

    def _fold(self, keys: Keys, weights: Floats) -> None:
        self._size, self.floor = _fold(
            keys,
            weights,
            self._slots,
            self._keys,
            self._counts,
            self._errors,
            self._size,
            self.floor,
            self.capacity,
        )

    def _all(self) -> Heavy:
        counts = self._counts[: self._size]
        order = np.lexsort((self._keys[: self._size], -counts))
        return Heavy(self._keys[order], counts[order], self._errors[order])

    def _install(self, keys: Keys, counts: Floats, errors: Floats, chosen: NDArray[np.int64], floor: float) -> None:
        self._size, self.floor = chosen.size, floor
        self._keys[: self._size] = keys[chosen]
        self._counts[: self._size] = counts[chosen]
        self._errors[: self._size] = errors[chosen]
        _index(self._slots, self._keys, self._size)


@compiled
def _fold(
    keys: Keys,
    weights: Floats,
    slots: Slots,
    held: Keys,
    counts: Floats,
    errors: Floats,
    size: int,
    floor: float,
    capacity: int,
) -> tuple[int, float]:
    """Counts records; `weights` has one for all of them or one for each. Returns the number of counters, and the
    floor."""
    each = 0 if weights.size == 1 else 1
    for i in range(keys.size):
        slot = _slot(slots, held, keys[i])
        at = slots[slot]
        if at < 0:
            if size == ROOM * capacity:
                size, floor = _purge(slots, held, counts, errors, size, floor, capacity)
                slot = _slot(slots, held, keys[i])
            at = size
            slots[slot], held[at], counts[at], errors[at] = at, keys[i], floor, floor
            size += 1
        counts[at] += weights[i * each]
    return size, floor


@compiled
def _slot(slots: Slots, held: Keys, key: np.uint64) -> int:
    """Where a key's counter is named, or would be."""
    mask = slots.size - 1
    scattered = key * np.uint64(0x9E3779B97F4A7C15)
    slot = int((scattered ^ (scattered >> np.uint64(32))) >> np.uint64(16)) & mask
    while slots[slot] >= 0 and held[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def _smallest(values: Floats, rank: int) -> float:
    """The value that has `rank` others before it in order: Hoare's selection. Reorders `values`.

    `np.partition` says the same, but numba takes three seconds to compile it, a quarter of all kernels' time.
    """
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left, right = left + 1, right - 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    found: float = values[rank]
    return found


@compiled
def _purge(
    slots: Slots, held: Keys, counts: Floats, errors: Floats, size: int, floor: float, capacity: int
) -> tuple[int, float]:
    """Keeps the `capacity` largest counters; the largest that goes is the new floor."""
    largest_gone = _smallest(counts[:size].copy(), size - capacity - 1)
    above = 0
    for at in range(size):
        above += counts[at] > largest_gone
    equal = capacity - above  # of those at the floor, so many can stay
    kept = 0
    for at in range(size):
        stays = counts[at] > largest_gone
        if counts[at] == largest_gone and equal > 0:
            stays = True
            equal -= 1
        if stays:
            held[kept], counts[kept], errors[kept] = held[at], counts[at], errors[at]
            kept += 1
    _index(slots, held, kept)
    return kept, max(floor, largest_gone)


@compiled
def _index(slots: Slots, held: Keys, size: int) -> None:
    slots[:] = -1
    for at in range(size):
        slots[_slot(slots, held, held[at])] = at
