"""Durations and moments as whole numbers: what "250ms", a timedelta or a datetime is to a dataflow, whose times count.

A dataflow's integer times count nanoseconds since 1970 (UTC) wherever they meet the calendar, unless it was built with
another unit: `worker.dataflow(time="ms")`. A moment without a time zone is taken for one in UTC, as numpy does.

>>> from datetime import datetime, timedelta
>>> nanoseconds("1m30s"), nanoseconds(timedelta(milliseconds=2)), moment(datetime(1970, 1, 1, 0, 0, 2), "ms")
(90000000000, 2000000, 2000)
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import TypeAlias, TypeGuard

import numpy as np

Duration: TypeAlias = "timedelta | np.timedelta64 | str"
"""How long: a timedelta of Python's or numpy's, or text such as "10s", "5m", "250ms" or "1h30m"."""

NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "D": 86400 * 10**9}
"""How many nanoseconds a unit has, by numpy's names. Months and years have no fixed length."""

_WRITTEN = {**{name: NANOSECONDS[name] for name in ("ns", "us", "ms", "s", "m", "h")}, "d": NANOSECONDS["D"]}
_WRITTEN |= {"µs": 10**3, "min": _WRITTEN["m"]}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_duration(value: object) -> TypeGuard[Duration]:
    """Whether something says how long by itself; a plain number does not."""
    return isinstance(value, timedelta | np.timedelta64 | str)


def is_moment(value: object) -> TypeGuard[date | np.datetime64]:
    """Whether something is a moment of the calendar."""
    return isinstance(value, date | np.datetime64)


def nanoseconds(duration: Duration) -> int:
    """A duration in nanoseconds; ValueError or TypeError say what is wrong with it."""
    if isinstance(duration, str):
        return _parsed(duration)
    if isinstance(duration, timedelta):  # of pandas as well, which have nanoseconds besides
        return duration // timedelta(microseconds=1) * 1000 + int(getattr(duration, "nanoseconds", 0))
    if not isinstance(duration, np.timedelta64):
        raise TypeError(f"{duration!r} is not a duration: say a timedelta, or text such as '10s', '5m' or '250ms'")
    return _counted(duration, "a duration")


def moment(when: date | np.datetime64, unit: str = "ns") -> int:
    """A moment as a time of a dataflow: how many of its units since 1970, UTC. ValueError if it is between two."""
    if isinstance(when, np.datetime64):
        since = _counted(when, "a moment")
    else:
        whole = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)
        aware = whole if whole.tzinfo is not None else whole.replace(tzinfo=UTC)
        since = nanoseconds(aware - _EPOCH)
    count, rest = divmod(since, NANOSECONDS[unit])
    if rest:
        raise ValueError(f"{when!r} is between two times of a dataflow that counts {unit}")
    return count


def seconds(duration: float | Duration) -> float:
    """A duration in seconds; a number is one already."""
    if isinstance(duration, timedelta | np.timedelta64 | str):
        return nanoseconds(duration) / 1e9
    return float(duration)


def written(nanoseconds: int) -> str:
    """A duration for people, as they would write it, to about a hundredth.

    >>> written(0), written(1_500_000), written(780 * 10**9), written(93_784 * 10**9)
    ('0s', '1ms500us', '13m', '1d2h')
    """
    parts: list[str] = []
    rest = nanoseconds
    for name in ("d", "h", "m", "s", "ms", "us", "ns"):
        count, rest = divmod(rest, _WRITTEN[name])
        if count:
            parts.append(f"{count}{name}")
        elif parts:
            break  # "1d0h3m" is a day
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def _parsed(text: str) -> int:
    total, at = Fraction(0), 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _WRITTEN:
            break
        total, at = total + Fraction(part[1]) * _WRITTEN[part[2]], part.end()
    if not text or at < len(text):
        raise ValueError(f"{text!r} is not a duration: say '10s', '5m', '250ms' or '1h30m' ({', '.join(_WRITTEN)})")
    if total.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of nanoseconds")
    return int(total)


def _counted(value: np.timedelta64 | np.datetime64, what: str) -> int:
    """numpy's count of its unit, in nanoseconds. In Python's integers: numpy's own conversion wraps around."""
    unit, multiple = np.datetime_data(value.dtype)
    if np.isnat(value):
        raise ValueError(f"{value!r} is not {what}")
    count = int(value.astype(np.int64))
    if unit in ("Y", "M") and value.dtype.kind == "M":  # a moment all the same: the first day
        return _counted(value.astype("M8[D]"), what)
    if unit == "W":
        unit, multiple = "D", 7 * multiple
    if unit not in NANOSECONDS:
        raise ValueError(f"{value!r} is not {what} of fixed length in nanoseconds: its unit is {unit}")
    return count * multiple * NANOSECONDS[unit]
