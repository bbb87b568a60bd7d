"""Zipf over a finite domain: any exponent from 0 (uniform), which numpy's `zipf` (above 1 only) does not do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]


def zipf(keys: int, z: float) -> Floats:
    """The probability of each rank: proportional to 1 / rank^z.

    >>> zipf(4, 0.0)
    array([0.25, 0.25, 0.25, 0.25])
    >>> zipf(2, 1.0)
    array([0.66666667, 0.33333333])
    """
    if keys < 1:
        raise ValueError(f"a domain needs at least one key, not {keys}")
    if not 0 <= z < np.inf:
        raise ValueError(f"the skew z is 0 (uniform) or more, not {z}; the paper's are 0 to 1")
    weights = np.arange(1, keys + 1, dtype=float) ** -z
    return np.asarray(weights / weights.sum())


def frequencies(keys: int, z: float, records: float, rng: np.random.Generator) -> Floats:
    """How often each key occurs among so many records: the expected numbers, given to keys in a random order."""
    return np.asarray(rng.permutation(zipf(keys, z) * records))


def sample(frequency: Floats, records: int, rng: np.random.Generator) -> Keys:
    """The keys of so many records, independent, with probabilities in proportion to `frequency`."""
    cumulative = np.cumsum(frequency)
    drawn = np.searchsorted(cumulative, rng.random(records) * cumulative[-1], side="right")
    return np.asarray(np.minimum(drawn, frequency.size - 1))


def hashed(keys: int, instances: int, seed: int = 0) -> NDArray[np.int32]:
    """The hash function h: an instance for each key, uniform and independent of everything else."""
    value = _mixed(np.arange(keys, dtype=np.uint64), seed)
    return ((value >> np.uint64(32)) * np.uint64(instances) >> np.uint64(32)).astype(np.int32)


def consistent(keys: int, instances: int, seed: int = 0, points: int = 100) -> NDArray[np.int32]:
    """Consistent hashing as h, which is what the paper has: a ring with so many points of each instance.

    >>> before, after = consistent(1_000, 4), consistent(1_000, 5)
    >>> set(after[before != after].tolist())
    {4}
    """
    owners = np.repeat(np.arange(instances, dtype=np.int32), points)
    places = _mixed((np.arange(instances * points) + (1 << 40)).astype(np.uint64), seed)
    order = np.argsort(places)
    found = np.searchsorted(places[order], _mixed(np.arange(keys, dtype=np.uint64), seed))
    return np.asarray(owners[order][found % len(order)])


def _mixed(value: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    value = value + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15 & (2**32 - 1))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    value ^= value >> np.uint64(31)
    return value
