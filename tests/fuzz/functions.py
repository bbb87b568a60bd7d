"""The programs' own functions of records. They are arithmetic, so that one text serves numbers and arrays of them."""

from __future__ import annotations

from typing import Any

from tests.fuzz.description import PRIME

Pair = tuple[Any, Any]


def _scale(k: Any, v: Any) -> Pair:
    return k, (v * 3 + 1) % PRIME


def _swap(k: Any, v: Any) -> Pair:
    return v % 11 - 3, k % PRIME


def _spread(k: Any, v: Any) -> Pair:
    return (k * 5 + v) % 13 - 2, v


def _merge(k: Any, v: Any) -> Pair:
    return k % 2, v // 2


def _same(k: Any, v: Any) -> Pair:
    return k, v


MAPS = (_scale, _swap, _spread, _merge, _same)


def _third(k: Any, v: Any) -> Any:
    return (v + k) % 3 != 0


def _even(k: Any, v: Any) -> Any:
    return v % 2 == 0


def _positive(k: Any, v: Any) -> Any:
    return k >= 0


def _high(k: Any, v: Any) -> Any:
    return v >= 5


FILTERS = (_third, _even, _positive, _high)

# What records are exchanged by, on rows: keys of several kinds.
ROUTES = (
    lambda record: record[0],
    lambda record: record,
    lambda record: f"key {record[0]}",
    lambda record: (None, float(record[0])),
    lambda record: record[1] % 4,
)


def copies(v: Any) -> Any:
    """How many records a flat_map makes of one."""
    return v % 3


def lateness(variant: int, v: int) -> int:
    """How much later a delay moves a record."""
    return (v % 4, 0, 2, 7 * (v % 2))[variant]


def paired(left: Any, right: Any) -> Any:
    """The value of a pair of records."""
    return (left * 31 + right) % PRIME


def event_time(time: Any, v: Any) -> Any:
    """When a record happened, for windows: not before the time that it bears."""
    return time + v % 3


def when_back(time: int, v: int) -> int | None:
    """When a stateful operator sees a record again, if it does."""
    return time + v % 4 + 1 if v % 3 == 0 else None
