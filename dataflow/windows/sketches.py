"""Sketches: quantiles and numbers of distinct values in little memory, as plain data that can be merged.

Quantiles: DDSketch (Masson, Rim and Lee, VLDB 2019). A value is counted in the bucket of its logarithm, so any quantile
is within `ALPHA` of a value of that rank, relatively. Distinct values: HyperLogLog (Flajolet et al. 2007) with 2^12
registers, kept sparsely: a standard error of 1.6 %, and exact-ish small numbers by linear counting.
"""

from __future__ import annotations

import math

import numpy as np

from dataflow.channels.hashing import stable_hash
from dataflow.columns.column import Array, Integers

ALPHA = 0.01
_LOG = math.log((1 + ALPHA) / (1 - ALPHA))
_ZERO = 0
_SHIFT = 1 << 20  # of the buckets of positive values: 0 is zero's, negative values have negative ones
_REGISTERS = 1 << 12
_MASK = (1 << 64) - 1

Buckets = dict[int, int]
"""By bucket how many values; by register the greatest rank."""


def bucket(value: float) -> int:
    """The bucket of a value: the order of buckets is that of values."""
    if value == 0:
        return _ZERO
    if not math.isfinite(value):
        raise ValueError(f"{value!r} has no place among quantiles: leave it out")
    place = math.ceil(math.log(abs(value)) / _LOG) + _SHIFT
    return place if value > 0 else -place


def buckets(values: Array) -> Integers:
    """The same of many values at once.

    >>> buckets(np.array([0.0, 1.0, -1.0, 100.0])).tolist() == [bucket(value) for value in (0, 1, -1, 100)]
    True
    """
    if not np.isfinite(values).all():
        raise ValueError(f"{values[~np.isfinite(values)][0]} has no place among quantiles: leave it out")
    places = np.full(len(values), _ZERO, np.int64)
    some = values != 0
    sizes = np.ceil(np.log(np.abs(values[some])) / _LOG).astype(np.int64) + _SHIFT
    places[some] = np.where(values[some] > 0, sizes, -sizes)
    return places


def value_of(place: int) -> float:
    """A value that is within ALPHA of all of a bucket."""
    if place == _ZERO:
        return 0.0
    middle = 2 * math.exp((abs(place) - _SHIFT) * _LOG) / (math.exp(_LOG) + 1)
    return middle if place > 0 else -middle


def quantile(buckets: Buckets, share: float) -> float:
    """The value of rank `share` (0 to 1) among all, about.

    >>> from collections import Counter
    >>> abs(quantile(Counter(bucket(float(n)) for n in range(1, 101)), 0.5) - 50) < 1.5
    True
    """
    rank = share * (sum(buckets.values()) - 1)
    seen = 0
    for place in sorted(buckets):
        seen += buckets[place]
        if seen > rank:
            return value_of(place)
    raise AssertionError("a rank beyond all values")


def _mixed(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def register(value: object) -> tuple[int, int]:
    """The register of a value, and its rank: one more than the zeros that the rest of its hash begins with."""
    word = _mixed(stable_hash(value) & _MASK)
    rest = word >> 12
    return word & (_REGISTERS - 1), 53 - rest.bit_length()


def cardinality(ranks: Buckets) -> int:
    """About how many distinct values there were.

    >>> ranks = {}
    >>> for n in range(1000):
    ...     place, rank = register(n)
    ...     ranks[place] = max(rank, ranks.get(place, 0))
    >>> 960 < cardinality(ranks) < 1040
    True
    """
    empty = _REGISTERS - len(ranks)
    total = empty + math.fsum(2.0**-rank for rank in ranks.values())
    estimate = 0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS * _REGISTERS / total
    if estimate <= 2.5 * _REGISTERS and empty:
        estimate = _REGISTERS * math.log(_REGISTERS / empty)
    return round(estimate)
