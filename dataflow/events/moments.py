"""The time of a record: what a user's function or column gives, as a time of the dataflow, rounded down to its unit."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime
from typing import TypeAlias

import numpy as np

from dataflow.channels.blame import name_last
from dataflow.columns.arrow import type_name
from dataflow.columns.batch import Columns
from dataflow.columns.column import Integers
from dataflow.columns.zones import plain
from dataflow.errors import ConstructionError, TimeError
from dataflow.time.durations import NANOSECONDS, Duration, is_duration, is_moment, moment, nanoseconds, written
from dataflow.values import Record

TimeOf: TypeAlias = str | Callable[[Record], int | float | date | np.datetime64 | str]
"""The name of a column (or of a field, where records are dictionaries), or a function of a record."""

_MOST = np.iinfo(np.int64).max


def ticks(duration: int | Duration, unit: str, what: str, *, least: int = 0) -> int:
    """A duration, or a number of the dataflow's own times, in these; rounded up. ConstructionError says `what`."""
    try:
        if isinstance(duration, int | np.integer) and not is_duration(duration):  # numpy has timedeltas as integers
            count = operator.index(duration)
        else:
            count = -(-nanoseconds(duration) // NANOSECONDS[unit])
    except (TypeError, ValueError) as error:
        raise ConstructionError(f"{what}: {error}") from None
    if count < least:
        raise ConstructionError(f"{what} is at least {least}, not {duration!r}")
    return count


def time_of(value: object, unit: str) -> int:
    """A moment, or a number of the dataflow's own times, as such a time.

    >>> from datetime import datetime
    >>> time_of(datetime(1970, 1, 1, 0, 0, 1, 999), "s"), time_of(7, "s"), time_of(7.9, "s")
    (1, 7, 7)
    >>> time_of("1970-01-01T02:00:07+02:00", "s")
    7
    """
    if type(value) is int:
        return value
    if isinstance(value, str):  # as JSON has it
        value = _read(value)
    if is_moment(value):
        assert isinstance(value, date | np.datetime64)
        return moment(value) // NANOSECONDS[unit]
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return math.floor(value)
    try:
        return operator.index(value)  # type: ignore[arg-type]  # whatever has a number
    except TypeError:
        raise TimeError(f"{value!r} is no time: give an integer, a datetime or a datetime64") from None


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise TimeError(
            f"{text!r} is no time: text is read as ISO 8601 has it (2026-11-18T08:30:00+01:00); of other forms make a "
            "datetime, in a function of the record"
        ) from None


class Moments:
    """The times of the records of a batch, rows or columns."""

    def __init__(self, name: str, time: TimeOf, unit: str) -> None:
        if not isinstance(time, str) and not callable(time):
            raise ConstructionError(f"{name} needs the name of a column or a function of a record, not {time!r}")
        self._name = name
        self._time = time
        self._unit = unit
        self._calendar = False  # whether a time was a moment: then people are told durations and moments
        self._of: Callable[[Record], object] = operator.itemgetter(time) if isinstance(time, str) else time

    def length(self, count: int) -> str:
        """So many of the dataflow's times, for people."""
        return written(count * NANOSECONDS[self._unit]) if self._calendar else f"{count} units of time"

    def at(self, time: int) -> str:
        """A time, for people."""
        return f"{np.array(time, f'M8[{self._unit}]')} (UTC)" if self._calendar else str(time)

    def of_rows(self, batch: list[Record]) -> list[int]:
        """One by one."""
        records = iter(batch)
        try:
            given = [self._of(record) for record in records]
            self._calendar = self._calendar or bool(given and (is_moment(given[0]) or isinstance(given[0], str)))
            records = iter(batch)
            times = [time_of(value, self._unit) for value, _ in zip(given, records, strict=True)]
            if times and min(times) < 0:
                raise TimeError(f"{self._name}: a record is before 1970 (or 0), where the times of a dataflow begin")
        except Exception as error:
            name_last(error, batch, records)
            raise
        return times

    def of_columns(self, batch: Columns) -> Integers:
        """All at once."""
        if not isinstance(self._time, str):
            raise TypeError(f"{self._name}: columns came, and the time is a function of a record: name a column")
        column = batch[self._time]
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iufmM":
            raise TypeError(
                f"{self._name}: column {self._time!r} holds {type_name(column)}; times are integers, dates or moments"
            )
        if column.dtype.kind in "mM":
            self._calendar = True
            times = plain(column).astype(f"{column.dtype.kind}8[{self._unit}]")  # rounds down
            if np.isnat(times).any():
                raise ValueError(f"{self._name}: column {self._time!r} has values that are not a time (NaT)")
            numbers: Integers = times.view(np.int64)
        else:
            whole = np.floor(column) if column.dtype.kind == "f" else column
            if len(whole) and not (whole.min() >= -_MOST and whole.max() < _MOST):  # false for what is not a number
                raise ValueError(f"{self._name}: column {self._time!r} has values that are no times")
            numbers = whole.astype(np.int64, copy=False)
        if len(numbers) and numbers.min() < 0:
            raise TimeError(f"{self._name}: a record is before 1970 (or 0), where the times of a dataflow begin")
        return numbers
