"""HLHE: half-linear-half-exponential discretisation of values (section IV-B).

Representatives are the multiples of R = 2^r, and below R the powers of two. A value takes the representative below it
or the one above it, whichever leaves the smaller accumulated deviation (ties to the lower), in descending order of
values.

Values between the same two representatives have the same choice to make, so how many of them go up depends on their
number and sum only. Hence two passes over the values as they come, and no sorting: the first counts and sums by
level, the second chooses. Only the few values far up, where levels are many, are handled one by one. The deviation of
each group of values (here: the keys at one instance) is kept by itself, so that the load of every instance is right,
and not just the total: it ends within half the finest gap that the group has enough values in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.rebalance.compiling import compiled
from planners.rebalance.kernels import Floats, Ints

TABLED = 4096  # multiples of R whose values are counted in a table; what is above is sorted
FINEST = 2.0**30  # the largest value is at most so many units
LEAST_UNIT = 2.0**-1000  # its inverse must be finite


@dataclass(frozen=True, eq=False)
class Discretised:
    """Values, each by the number of its representative."""

    chosen: Ints  # by value, the number of its representative: 0 is 0, 1 to r are 1, 2, 4, ..., r + i is i * R
    deviation: Floats  # by group, the sum of value - representative
    unit: float
    r: int

    @property
    def values(self) -> Floats:
        """φ(x) for each x."""
        return self.of(self.chosen)

    def of(self, numbers: Ints) -> Floats:
        """The representatives of those numbers."""
        low = np.ldexp(0.5, np.minimum(numbers, self.r)) * (numbers > 0)
        return self.unit * np.where(numbers <= self.r, low, (numbers - self.r) * 2.0**self.r)


def hlhe(values: ArrayLike, r: int, *, group: ArrayLike | None = None, groups: int = 1) -> Discretised:
    """Discretises values that are not negative, those of each group by themselves.

    Values are measured in units (the paper normalises them to at least 1): the greatest power of two that is not above
    the least positive value, or the largest over 2^30 if that is more. 0 stays 0.

    >>> found = hlhe([8, 6, 3, 2, 2, 1, 1, 1, 1, 1], r=2)
    >>> found.values, found.deviation
    (array([8., 4., 4., 2., 2., 2., 1., 1., 1., 1.]), array([0.]))
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    of = np.zeros(array.size, np.int32) if group is None else np.ascontiguousarray(group, dtype=np.int32)
    unit, largest = _scale(array, r)
    top = _level(largest / unit, r)
    tabled = min(top, r + TABLED)
    chosen = _levels(array, 1 / unit, r)
    counts, sums, heavy = _survey(array, of, groups, 1 / unit, chosen, tabled)
    heavy = heavy[np.argsort(-array[heavy], kind="stable")]
    deviation = _choose_heavy(array, of, groups, 1 / unit, r, top, heavy, chosen)
    start = _carry(counts, sums, r, top, deviation)
    _choose(array, of, chosen, start, 1 / unit, r, top, tabled)
    return Discretised(chosen, deviation * unit, unit, r)


def levels(values: Floats, r: int) -> Ints:
    """By value, the number of the highest representative at or below it: the first step of HLHE alone."""
    unit, _ = _scale(values, r)
    return _levels(values, 1 / unit, r)


def _scale(values: Floats, r: int) -> tuple[float, float]:
    """The unit, and the largest value. A power of two is exact to divide by."""
    if not 0 <= r <= 30:
        raise ValueError(f"R = 2^r with r from 0 to 30, not r = {r}; the paper's r are 0 to 8")
    least, largest = _extremes(values)
    return 2.0 ** math.floor(math.log2(max(least, largest / FINEST, LEAST_UNIT))) if largest else 1.0, largest


@compiled
def _extremes(values: Floats) -> tuple[float, float]:
    """The least positive value and the largest."""
    least, largest = np.inf, 0.0
    for value in values:
        largest = max(largest, value)
        if 0.0 < value < least:
            least = value
    return least, largest


@compiled
def _level(x: float, r: int) -> int:
    """The number of the highest representative at or below x."""
    scaled = x * 2.0**-r
    if scaled >= 1.0:
        return r + int(scaled)
    level, power = 0, 1.0
    while power <= x:
        power *= 2.0
        level += 1
    return level


@compiled
def _representative(level: int, r: int) -> float:
    if level > r:
        return (level - r) * 2.0**r
    return 2.0 ** (level - 1) if level else 0.0


@compiled
def _levels(values: Floats, scale: float, r: int) -> Ints:
    found = np.empty(values.size, np.int32)
    small = np.array([_level(x, r) for x in range(256)], np.int32)
    step = 2.0**-r
    for i in range(values.size):
        x = values[i] * scale
        if x < 256.0:
            found[i] = small[int(x)]
        elif x * step >= 1.0:
            found[i] = r + int(x * step)
        else:
            found[i] = _level(x, r)
    return found


@compiled
def _survey(
    values: Floats, group: Ints, groups: int, scale: float, levels: Ints, tabled: int
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """By group and level how many values, and their sum; and the values above the table, which are not in it."""
    counts, sums = np.zeros((groups, tabled + 1), np.int64), np.zeros((groups, tabled + 1))
    for i in range(values.size):
        level = levels[i]
        if level <= tabled and values[i] > 0.0:
            counts[group[i], level] += 1
            sums[group[i], level] += values[i] * scale
    return counts, sums, np.flatnonzero(levels > tabled)


@compiled
def _choose_heavy(
    values: Floats,
    group: Ints,
    groups: int,
    scale: float,
    r: int,
    top: int,
    heavy: NDArray[np.int64],
    levels: Ints,
) -> Floats:
    """Chooses for values in descending order, one by one, in `levels`; by group, the deviation that this leaves."""
    deviation = np.zeros(groups)
    for i in heavy:
        level = levels[i]
        low = deviation[group[i]] + values[i] * scale - _representative(level, r)
        high = low - 2.0**r
        if level < top and abs(high) < abs(low):
            levels[i] = level + 1
            low = high
        deviation[group[i]] = low
    return deviation


@compiled
def _carry(counts: NDArray[np.int64], sums: Floats, r: int, top: int, deviation: Floats) -> Floats:
    """By group and level, the deviation with which the level is entered. `deviation` becomes that at the end."""
    groups, levels = counts.shape
    start = np.zeros((groups, levels))
    for g in range(groups):
        for level in range(levels - 1, -1, -1):
            start[g, level] = deviation[g]
            if counts[g, level] == 0:
                continue
            low = _representative(level, r)
            deviation[g] += sums[g, level] - counts[g, level] * low
            if level < top:
                gap = _representative(level + 1, r) - low
                ups = min(float(counts[g, level]), max(0.0, math.ceil(deviation[g] / gap - 0.5)))
                deviation[g] -= ups * gap
    return start


@compiled
def _choose(
    values: Floats, group: Ints, levels: Ints, deviation: Floats, scale: float, r: int, top: int, tabled: int
) -> None:
    """Chooses for the values in the table, one after the other within each group and level, in `levels`."""
    ladder = np.array([_representative(level, r) for level in range(tabled + 2)])
    for i in range(values.size):
        g, level = group[i], levels[i]
        if level > tabled or values[i] == 0.0:
            continue
        low = deviation[g, level] + values[i] * scale - ladder[level]
        if level < top:
            high = low + ladder[level] - ladder[level + 1]
            if abs(high) < abs(low):
                levels[i] = level + 1
                low = high
        deviation[g, level] = low
