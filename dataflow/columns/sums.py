"""Sums of integers by group that never wrap around: right as long as they fit into 64 bits, and an error where not.

The sum of a part may be too large where that of all parts is not: 2^63 - 1 and 1 here, and -1 there. So what is kept of
a part is a number of 64 bits where that suffices, which is nearly always, and otherwise two: a sum of upper halves and
one of lower halves. Which workers had which rows then makes no difference.

Costs: one look at the extremes of the values, beside sorting them; halves are added only where these allow an overflow.
"""

from __future__ import annotations

import numpy as np

from dataflow.columns.column import Array

_HALF = np.int64(32)
_LOWER = (1 << 32) - 1
_LIMITS = {"i": (-(1 << 63), (1 << 63) - 1), "u": (0, (1 << 64) - 1)}


def sums(values: Array, starts: Array) -> tuple[Array, Array | None]:
    """The sum of each group of integers, which begin at `starts`: sums, or (lower halves, upper halves) of them."""
    if not len(starts):
        return values[:0], None
    if _cannot_overflow(values):
        return np.add.reduceat(values, starts), None
    return halves(values & values.dtype.type(_LOWER), values >> values.dtype.type(_HALF), starts)


def halves(lower: Array, upper: Array, starts: Array) -> tuple[Array, Array | None]:
    """The same where the halves of the values are known already."""
    kind = upper.dtype
    low = np.add.reduceat(lower, starts)
    high = np.add.reduceat(upper, starts) + (low >> kind.type(_HALF))
    low &= kind.type(_LOWER)
    least, most = np.iinfo(kind).min >> 32, np.iinfo(kind).max >> 32
    if ((high >= least) & (high <= most)).all():
        return (high << kind.type(_HALF)) | low, None
    return low, high


def split(values: Array) -> tuple[Array, Array]:
    """The lower and upper halves of sums that fit."""
    return values & values.dtype.type(_LOWER), values >> values.dtype.type(_HALF)


def exact(lower: Array, upper: Array, row: int) -> int:
    """The sum in a row, however large."""
    return (int(upper[row]) << 32) + int(lower[row])


def _cannot_overflow(values: Array) -> bool:
    least, most = _LIMITS[values.dtype.kind]
    count = len(values)  # ufuncs rather than methods, which are Python around them: batches may be small
    return int(np.maximum.reduce(values)) * count <= most and int(np.minimum.reduce(values)) * count >= least


def out_of_range(upper: Array) -> Array:
    """The rows whose sums do not fit into 64 bits."""
    limits = np.iinfo(upper.dtype)
    return np.flatnonzero((upper < limits.min >> 32) | (upper > limits.max >> 32))
