"""Fluctuation between intervals (section V): frequencies are swapped between keys of different instances, until some
instance's load has changed by f times the mean.

Swaps of random keys alone would wander, and mostly cancel out. So one instance is drawn and a direction, and of the
random swaps those are made that push its load that way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.skew.zipf import Floats, Keys, frequencies
from planners.rebalance.compiling import compiled

Ints = NDArray[np.int32]


def fluctuate(frequency: Floats, assignment: Ints, instances: int, f: float, rng: np.random.Generator) -> Floats:
    """The next interval's frequencies; f = 0 leaves them as they are.

    If no load can change that much (all keys at one instance, or f too large), it has changed as much as swaps allow.
    """
    if not f >= 0:
        raise ValueError(f"the fluctuation f is 0 or more, not {f}")
    changed = np.array(frequency, dtype=np.float64)
    there = np.asarray(assignment) == assignment[rng.integers(changed.size)] if changed.size else np.zeros(0, bool)
    inside, outside = np.flatnonzero(there), np.flatnonzero(~there)
    if f > 0 and instances > 1 and inside.size and outside.size:
        target = f * float(changed.sum()) / instances
        grows = _grows(changed, inside, target, rng)
        _swap(changed, inside, outside, target, 1.0 if grows else -1.0, int(rng.integers(2**31)))
    return changed


def _grows(frequency: Floats, inside: Keys, target: float, rng: np.random.Generator) -> bool:
    """Whether the load of those keys grows, and does not shrink: at random if both ways have ample room, else the way
    that has more."""
    load, ordered = float(frequency[inside].sum()), np.sort(frequency)
    up, down = float(ordered[-inside.size :].sum()) - load, load - float(ordered[: inside.size].sum())
    if min(up, down) > 1.5 * target:
        return bool(rng.integers(2))
    return up >= down


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
def _swap(frequency: Floats, inside: Keys, outside: Keys, target: float, sign: float, seed: int) -> None:
    """Swaps until the load of the keys `inside` has changed by `target`, or after twenty draws for each key."""
    np.random.seed(seed)
    change = 0.0
    for _ in range(20 * frequency.size + 1000):
        k, other = inside[np.random.randint(inside.size)], outside[np.random.randint(outside.size)]
        gain = sign * (frequency[other] - frequency[k])
        if gain > 0.0:
            frequency[k], frequency[other] = frequency[other], frequency[k]
            change += gain
            if change >= target:
                break
