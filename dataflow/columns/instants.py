"""Dates, moments and time spans of numpy as whole numbers of a unit, and from one unit to another: exactly, or not.

numpy's own conversions wrap around where a number grows too large, and cut off where it was too fine. These say so.
"""

from __future__ import annotations

import numpy as np

from dataflow.columns.column import Array, DType, Integers, Words
from dataflow.columns.zones import plain, with_zone, zone_of
from dataflow.time.durations import NANOSECONDS

_NOT_A_TIME = np.int64(np.iinfo(np.int64).min)  # the number that numpy keeps for it


def length_of(kind: DType) -> int | None:
    """The nanoseconds of a type's unit; None for those without a fixed length."""
    unit, multiple = np.datetime_data(kind)
    unit, multiple = ("D", 7 * multiple) if unit == "W" else (unit, multiple)
    return NANOSECONDS[unit] * multiple if unit in NANOSECONDS else None


def finest(kinds: list[DType]) -> DType:
    """Of several types of datetimes, or of time spans, the one that holds the values of all."""
    found = kinds[0]
    for kind in kinds[1:]:
        found = np.promote_types(found, kind)
    return found


def to_kind(array: Array, kind: DType, what: str) -> Array:
    """The same moments or time spans in another unit; ValueError if they are too far away, or between two.

    `what` begins the error: "column 't'". Not-a-time stays.
    """
    if array.dtype == kind:
        return array
    if length_of(array.dtype) is None and array.dtype.kind == "m":
        raise ValueError(f"{what} is {array.dtype}, a unit of no fixed length: give it one, such as .astype('m8[s]')")
    given = plain(array)
    converted = given.astype(kind)
    back = converted.astype(given.dtype)
    if not np.array_equal(back, given, equal_nan=True):
        at = int(np.flatnonzero((back != given) & ~np.isnat(given))[0])
        raise ValueError(f"{what} is {given.dtype}, and {given[at]} cannot be told as {kind}: {_reason(given, kind)}")
    return with_zone(converted, zone_of(array))


def _reason(given: Array, kind: DType) -> str:
    ours, theirs = length_of(given.dtype), length_of(kind)
    if ours is not None and theirs is not None and ours < theirs:
        return "it is between two of these"
    return f"64 bits of {np.datetime_data(kind)[0]} do not reach that far"


def counts(array: Array, unit: str, what: str) -> Integers:
    """Moments (since 1970, UTC) or time spans as whole numbers of a unit. ValueError where that is impossible."""
    kind = np.dtype(f"{array.dtype.kind}8[{unit}]")
    numbers = np.ascontiguousarray(plain(to_kind(array, kind, what))).view(np.int64)
    if numbers.size and numbers.min() == _NOT_A_TIME:
        raise ValueError(f"{what} has values that are not a time (NaT), and no number stands for these: leave them out")
    return numbers


def words(array: Array) -> Words:
    """A word for each value, equal for equal values whatever their unit: nanoseconds, modulo 2^64.

    It serves to choose a worker only: moments that are centuries apart may have the same word.
    """
    numbers = np.ascontiguousarray(plain(array)).astype(array.dtype.newbyteorder("="), copy=False).view(np.uint64)
    length = length_of(array.dtype)
    if length is None:
        return words(plain(array).astype("M8[D]")) if array.dtype.kind == "M" else numbers
    if length == 1:
        return numbers
    scaled = numbers * np.uint64(length)
    scaled[np.isnat(plain(array))] = numbers.dtype.type(1 << 63)  # whatever the unit
    return scaled
