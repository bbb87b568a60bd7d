"""Moments with a time zone: numpy's datetimes in UTC that know the zone they are to be read in.

numpy has no type for these. `Zoned` is an array of datetime64 like any other (it compares, subtracts and sorts) whose
zone stays with it through slices, `take`, arithmetic and copies, and is gone where values are no moments any more: a
difference is a plain time span, a comparison a plain mask, and a day of UTC is no day of the zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import numpy as np

from dataflow.columns.column import Array, DType

UNITS = ("s", "ms", "us", "ns")  # in which there are moments with a zone, as in Arrow
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,47}|[+-]\d\d:\d\d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Zoned(np.ndarray[tuple[int, ...], DType]):
    """An array of moments, UTC, with the name of a time zone. Made by `with_zone`."""

    _zone: str | None

    def __array_finalize__(self, source: object) -> None:
        """Whatever is made of an array has its zone."""
        self._zone = getattr(source, "_zone", None)

    def __array_wrap__(  # type: ignore[override]  # numpy declares one shape and type for what comes in and goes out
        self, array: Array, context: object = None, return_scalar: bool = False
    ) -> object:
        """What a function of numpy's gives: moments with the zone, and anything else plain."""
        if return_scalar:
            return array[()]
        return with_zone(np.asarray(array), self._zone)

    def __reduce__(self) -> tuple[Callable[[Array, str | None], Array], tuple[Array, str | None]]:
        return with_zone, (np.asarray(self), self._zone)


def zone_of(column: object) -> str | None:
    """The time zone of a column, if it is one of moments that have one."""
    return column._zone if isinstance(column, Zoned) and _has_unit(column.dtype) else None


def with_zone(array: Array, zone: str | None) -> Array:
    """An array with a zone, without copying; as it is where there is none, or where it holds no moments."""
    if zone is None or not _has_unit(array.dtype):
        return array
    made = array.view(Zoned)
    made._zone = zone
    return made


def plain(array: Array) -> Array:
    """An array without a zone, without copying: for compiled code, and for functions that would lose the zone."""
    return array.view(np.ndarray) if isinstance(array, Zoned) else array


def checked_zone(name: object) -> str:
    """A zone's name that came from somewhere else; ValueError if it cannot be one."""
    if type(name) is not str or not _NAME.fullmatch(name):
        raise ValueError(f"{str(name)[:60]!r} is not the name of a time zone")
    return name


def to_datetimes(array: Array, zone: str) -> list[datetime | None]:
    """Python's own values. They have microseconds: ValueError where there is more to lose."""
    counts = plain(array).astype("M8[us]", copy=False)
    if array.dtype == np.dtype("M8[ns]") and not np.array_equal(counts, plain(array), equal_nan=True):
        raise ValueError(
            f"nanoseconds in {zone} are no datetimes of Python, which have microseconds: take .astype('M8[us]') first, "
            "or use to_arrow, to_pandas or to_polars"
        )
    to = zone_info(zone)
    return [
        None if np.isnat(value) else (_EPOCH + timedelta(microseconds=int(value.astype(np.int64)))).astimezone(to)
        for value in counts
    ]


def zone_info(zone: str) -> tzinfo:
    """A zone as Python has it, by its name."""
    if zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        return timezone((1 if zone[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    from zoneinfo import ZoneInfo

    return ZoneInfo(zone)


def _has_unit(kind: DType) -> bool:
    return kind.kind == "M" and np.datetime_data(kind)[0] in UNITS
