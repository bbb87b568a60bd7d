"""Partial key grouping (PKG): a router that splits a key's records over two instances, and the merge that this needs.

Every record goes to the less loaded of the instances that its key's hash functions name: nothing ever moves, and no
table is needed. But each of these instances then holds part of the key's result, so results must be merged, and
operators whose results do not merge (joins) cannot be run so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.rebalance.compiling import compiled
from planners.rebalance.kernels import Floats, Ints

Values = NDArray[Any]  # a user's keys, or results


class PartialKeyGrouping:
    """Routes batches of records, remembering the load that it gave each instance. A record costs some nanoseconds."""

    def __init__(self, instances: int, choices: int = 2, seed: int = 0) -> None:
        if instances < 1 or choices < 1:
            raise ValueError(f"a router needs at least one instance and one choice, not {instances} and {choices}")
        self.instances = instances
        self.choices = choices
        self.loads: Floats = np.zeros(instances)
        self._seed = seed

    def candidates(self, key: int) -> list[int]:
        """The instances that a key's records may go to: `choices` of them, some perhaps the same."""
        value = np.uint64(key % 2**64)
        return [int(_candidate(value, choice, self._seed, self.instances)) for choice in range(self.choices)]

    def route(self, keys: ArrayLike, weights: ArrayLike | None = None) -> Ints:
        """The instance of each record, in order; keys are integers, and a record weighs 1 unless told."""
        array = np.ascontiguousarray(keys)
        if not np.issubdtype(array.dtype, np.integer) and array.size:
            raise TypeError(f"keys must be integers, not {array.dtype}: hash them first")
        amounts = np.ones(array.size) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        if amounts.shape != array.shape:
            raise ValueError(f"{array.size} keys and {amounts.size} weights: each record needs one")
        return _route(array.astype(np.uint64), amounts, self.loads, self.choices, self._seed)


def pkg(instances: int, *, choices: int = 2, seed: int = 0) -> PartialKeyGrouping:
    """Partial key grouping over so many instances.

    >>> router = pkg(4)
    >>> instances = router.route([7] * 1000)       # one hot key: half of it here, half of it there
    >>> sorted(np.bincount(instances, minlength=4).tolist())
    [0, 0, 500, 500]
    """
    return PartialKeyGrouping(instances, choices, seed)


def merge(keys: ArrayLike, partials: ArrayLike, combine: np.ufunc = np.add) -> tuple[Values, Values]:
    """The merge step: partial results of all instances, as they come, into one for each key (ascending).

    >>> merge([5, 9, 5], [10, 1, 7])
    (array([5, 9]), array([17,  1]))
    """
    unique, inverse = np.unique(np.asarray(keys), return_inverse=True)
    values = np.asarray(partials)
    order = np.argsort(inverse, kind="stable")
    if not unique.size:
        return unique, values[:0]
    starts = np.searchsorted(inverse[order], np.arange(unique.size))
    return unique, combine.reduceat(values[order], starts)


@compiled
def _candidate(key: np.uint64, choice: int, seed: int, instances: int) -> int:
    """The finaliser of splitmix64, from a different start for each choice."""
    value = key + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed * 64 + choice + 1)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return int((value >> np.uint64(32)) * np.uint64(instances) >> np.uint64(32))


@compiled
def _route(keys: NDArray[np.uint64], weights: Floats, loads: Floats, choices: int, seed: int) -> Ints:
    routed = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        best = _candidate(keys[i], 0, seed, loads.size)
        for choice in range(1, choices):
            other = _candidate(keys[i], choice, seed, loads.size)
            if loads[other] < loads[best]:
                best = other
        loads[best] += weights[i]
        routed[i] = best
    return routed
