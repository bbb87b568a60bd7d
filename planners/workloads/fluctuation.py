"""Fluctuation between intervals (section V): frequencies are swapped between keys of different instances, until some
instance's load has changed by f times the mean.

Swaps of random keys alone would wander, and mostly cancel out. So one instance is drawn and a direction, and of the
random swaps those are made that push its load that way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planners.rebalance.compiled import compiled
from planners.workloads.zipf import Floats, Keys, frequencies

Ints = NDArray[np.int32]


def fluctuate(frequency: Floats, assignment: Ints, instances: int, f: float, rng: np.random.Generator) -> Floats:
    """The next interval's frequencies; f = 0 leaves them as they are.

    If no load can change that much (all keys at one instance, or f too large), it has changed as much as swaps allow.
    """
    if not f >= 0:
        raise ValueError(f"the fluctuation f is 0 or more, not {f}")
    changed = np.array(frequency, dtype=np.float64)
    if f > 0 and instances > 1 and changed.size:
        target = f * float(changed.sum()) / instances
        there = np.asarray(assignment) == assignment[rng.integers(changed.size)]
        _swap(changed, np.flatnonzero(there), np.flatnonzero(~there), target, int(rng.integers(2**31)))
    return changed


def intervals(
    keys: int,
    z: float,
    f: float,
    *,
    assignment: Ints,
    instances: int,
    records: float,
    seed: int = 0,
) -> Iterator[Floats]:
    """Frequencies by interval, without end: Zipf with skew z, fluctuating with f."""
    rng = np.random.default_rng(seed)
    frequency = frequencies(keys, z, records, rng)
    while True:
        yield frequency
        frequency = fluctuate(frequency, assignment, instances, f, rng)


@compiled
def _swap(frequency: Floats, inside: Keys, outside: Keys, target: float, seed: int) -> None:
    """Swaps until the load of the keys `inside` has grown by `target`, or shrunk by it: on even seeds, if it can."""
    if inside.size == 0 or outside.size == 0:
        return
    np.random.seed(seed)
    sign = -1.0 if seed % 2 == 0 and frequency[inside].sum() > target else 1.0
    change = 0.0
    in_vain = 0
    while change < target and in_vain < 20 * frequency.size + 1000:
        k, other = inside[np.random.randint(inside.size)], outside[np.random.randint(outside.size)]
        gain = sign * (frequency[other] - frequency[k])
        in_vain += 1
        if gain > 0.0:
            frequency[k], frequency[other] = frequency[other], frequency[k]
            change += gain
            in_vain = 0
