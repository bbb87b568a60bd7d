"""Rows of every plain type, and a comparison that looks at types as well."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import typing
import uuid
from typing import Any

import numpy as np


@dataclasses.dataclass
class Bid:
    auction: int
    price: float
    tags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    key: str
    inner: Bid | None = None


@dataclasses.dataclass(slots=True)
class Checked:
    """Its constructor would refuse what was changed since: it must not be called again."""

    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("a constructor was called where none should be")


@dataclasses.dataclass
class Empty:
    """Without a field."""


class Pair(typing.NamedTuple):
    left: int
    right: str = "x"


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Kind(enum.StrEnum):
    A = "a"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Planet(Bid, enum.Enum):
    """An enum whose members are instances of a dataclass."""

    EARTH = (3, 1.0)


def changed() -> Checked:
    """An instance that its constructor would not make."""
    made = Checked(1)
    made.value = -1
    return made


UTC = datetime.UTC
HOUR = datetime.timezone(datetime.timedelta(hours=1))

SCALARS: list[Any] = [
    *(np.dtype(code).type(7) for code in "bBhHiIlLefdFD"),  # integers, floats and complex numbers of every size
    np.longdouble(1) / 3,
    np.bool_(True),
    np.float64("nan"),
    np.float32("-inf"),
    np.uint64(2**64 - 1),
    np.str_("grün"),
    np.str_(""),
    np.bytes_(b"raw"),
    np.bytes_(b""),
    np.datetime64("2026-03-01T12:00:00", "ms"),
    np.datetime64("NaT"),
    np.timedelta64(5, "D"),
]

ROWS: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    -(2**63),
    2**64 - 1,
    2**64,
    -(2**200),
    0.5,
    -0.0,
    math.inf,
    math.nan,
    "",
    "grün \0 \U0001f600",
    b"",
    b"\x00\xff",
    (),
    (1,),
    (1, "two", (3.0, (None, b"4"))),
    [1, [2, (3,)]],
    {"a": 1, 2: [3], (4, 5): {6: 7}},
    {1, 2},
    frozenset({(1, 2)}),
    1 + 2j,
    datetime.datetime(2026, 3, 1, 12, 30, 15, 123456),
    datetime.datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime.datetime(2026, 3, 1, 12, tzinfo=HOUR),
    datetime.date(1, 1, 1),
    datetime.timedelta(days=-1, seconds=1, microseconds=2),
    decimal.Decimal("1.10"),
    decimal.Decimal("NaN"),
    fractions.Fraction(-1, 3),
    uuid.UUID(int=12345),
    Bid(1, 2.5, ("a", "b")),
    Frozen("k", Bid(1, 2.0)),
    Frozen("none"),
    changed(),
    Empty(),
    Pair(1),
    Pair(2, "y"),
    Color.RED,
    Color.BLUE,
    Level.HIGH,
    Kind.A,
    Planet.EARTH,
    Access.READ,
    Access.READ | Access.WRITE,
    Access(0),
    *SCALARS,
]

BATCHES: list[list[Any]] = [
    [],
    ROWS,
    *([row] * 3 for row in ROWS),  # one shape: transposed
    [(1, "a"), (2, "b")],
    [(1, "a"), (2,)],
    [(Bid(i, i / 2), Frozen(str(i), Bid(i, 0.0)), np.int32(i)) for i in range(5)],
    [(i, np.float32(i), Color.RED if i % 2 else Color.BLUE) for i in range(5)],
    [Bid(1, 1.0), Frozen("x"), Bid(2, 2.0)],
    [((1, (2, (3,))), [4]), ((5, (6, (7,))), [8, 9])],
    [np.int64(1), np.int32(2), 3],
    [np.str_("a"), np.str_("long")],
    [True, 1, 1.0],
    [1, 2**70, 3],
]


def same(a: Any, b: Any) -> bool:
    """Equal in value and type, all the way down; NaN is the same as NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and all(map(same, a.ravel(), b.ravel()))
    if isinstance(a, np.generic) and a.dtype != b.dtype:
        return False
    if isinstance(a, enum.Enum):
        return a is b
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(map(same, a.items(), b.items()))  # not by key: nobody finds a NaN again
    if isinstance(a, set | frozenset):
        return _same_members(list(a), list(b))
    if isinstance(a, datetime.datetime):
        return a == b and a.utcoffset() == b.utcoffset()
    return bool(a == b) or (a != a and b != b)


def _same_members(a: list[Any], b: list[Any]) -> bool:
    """Whether each of `a` has its like among `b`, and none of `b` is left."""
    for x in a:
        match = next((i for i, y in enumerate(b) if same(x, y)), None)
        if match is None:
            return False
        del b[match]
    return not b
