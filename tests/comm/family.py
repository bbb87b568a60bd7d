"""A large family of values: those that must arrive alike, and those that must be refused by name."""

from __future__ import annotations

import array
import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import threading
import types
import typing
import uuid
from collections import Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo

import msgpack
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from dataflow.columns import Columns

T = TypeVar("T")


@dataclass
class Computed:
    """Sets an attribute that is no field."""

    price: float
    rest: float = field(init=False)

    def __post_init__(self) -> None:
        self.rest = self.price % 1
        self.cents = int(self.price * 100)


@dataclass
class Plain:
    a: int
    b: str = "b"


class Tagged(Plain):
    """A plain subclass of a dataclass, with an attribute of its own."""

    def __init__(self, a: int, tag: str) -> None:
        super().__init__(a)
        self.tag = tag


@dataclass(slots=True)
class Slots:
    a: int
    b: Any = None


@dataclass(frozen=True)
class Frozen:
    a: int


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    a: Any


@dataclass
class Unset:
    a: int
    b: int = field(init=False)


@dataclass(slots=True)
class UnsetSlot:
    a: int
    b: int = field(init=False)


class MixedBase:
    __slots__ = ("hidden",)


@dataclass
class Mixed(MixedBase):
    """Attributes in a slot and in a __dict__."""

    a: int

    def __post_init__(self) -> None:
        self.hidden = self.a * 2


class Wide(Slots):
    """A subclass of a dataclass with slots, which has a __dict__."""


@dataclass(kw_only=True)
class Keyword(Plain):
    c: float = 1.0


@dataclass
class Initialised:
    a: int
    _: KW_ONLY
    scale: InitVar[int] = 2
    b: int = 0

    def __post_init__(self, scale: int) -> None:
        self.b = self.a * scale


@dataclass
class Lazy:
    a: int

    @functools.cached_property
    def twice(self) -> int:
        return 2 * self.a


@dataclass
class Box(Generic[T]):
    item: T


class Doubling:
    """A field that is a descriptor, which keeps its value under another name."""

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return 0 if owner is None else owner._kept * 2

    def __set__(self, owner: Any, value: int) -> None:
        owner._kept = value


@dataclass
class Described:
    a: Doubling = Doubling()  # type: ignore[assignment]


@dataclass
class Holder:
    """Has something that cannot travel, in an attribute that nobody thinks of."""

    a: int

    def __post_init__(self) -> None:
        self.lock = threading.Lock()


@dataclass
class ListAndMore(list[int]):
    a: int = 1


@dataclass
class Wrong(Exception):
    code: int


Point = namedtuple("Point", "x y")


class NamedPoint(Point):
    """A named tuple that may have attributes."""


class Typed(typing.NamedTuple):
    a: int
    b: str = "b"


class Size(enum.Enum):
    SMALL = (1, "s")
    LARGE = (2, "l")

    def __init__(self, number: int, name: str) -> None:
        self.number = number


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


class Strict(enum.Flag):
    A = 1
    B = 2


class MyInt(int): ...


class MyFloat(float): ...


class MyText(str): ...


class MyList(list[Any]): ...


class MyDict(dict[Any, Any]): ...


class MySet(set[Any]): ...


class MyTuple(tuple[Any, ...]): ...


class MyBytes(bytes): ...


class MyDate(datetime.date): ...


class MyZone(datetime.tzinfo):
    def utcoffset(self, dt: Any) -> datetime.timedelta:
        return datetime.timedelta(hours=2)

    def dst(self, dt: Any) -> datetime.timedelta:
        return datetime.timedelta(0)


class MyArray(np.ndarray[Any, Any]): ...


class MyScalar(np.float64): ...


class MyNumpyText(np.str_): ...


def _named(value: Any, **attributes: Any) -> Any:
    for name, held in attributes.items():
        object.__setattr__(value, name, held)
    return value


def _without(value: Any, name: str) -> Any:
    delattr(value, name)
    return value


def _used(value: Lazy) -> Lazy:
    assert value.twice == 2 * value.a
    return value


Redefined = Plain


@dataclass
class Twice:
    a: int


First = Twice


@dataclass
class Twice:  # type: ignore[no-redef]
    """Another class of the same name."""

    a: int


BERLIN = ZoneInfo("Europe/Berlin")
CET = datetime.timezone(datetime.timedelta(hours=1), "CET")
AUTUMN = datetime.datetime(2026, 10, 25, 2, 30)
CONTAINERS: list[Any] = [
    bytearray(b"x"), bytearray(), [bytearray(b"x"), {"k": bytearray(b"y")}], {1: [bytearray(b"z")]},
    deque([1, (2,)]), deque([1, 2], maxlen=2), deque(),
    OrderedDict(b=1, a=(2,)), OrderedDict(), Counter("hello"), Counter(), Counter({"a": -1, "b": 0}),
    defaultdict(int, a=1), defaultdict(list, a=[1]), defaultdict(None, {(1,): 2}),
]  # fmt: skip
NUMBERS: list[Any] = [
    1 + 2j, complex(-0.0, float("nan")), complex(0.0, -0.0), 2**64, -(2**100), True, -0.0, float("nan"),
    decimal.Decimal("-0.00"), decimal.Decimal("sNaN123"), decimal.Decimal("1E+1000"), fractions.Fraction(-7, 3),
    uuid.UUID(int=7), uuid.UUID(int=7, is_safe=uuid.SafeUUID.safe),
    uuid.UUID("d5152cc0-e23e-11f1-a153-02fc00000001", is_safe=uuid.SafeUUID.unsafe),
]  # fmt: skip
MOMENTS: list[Any] = [
    datetime.datetime(2026, 3, 1, 12, tzinfo=BERLIN),
    datetime.datetime(2026, 3, 28, 12, tzinfo=BERLIN),
    AUTUMN.replace(tzinfo=BERLIN), AUTUMN.replace(tzinfo=BERLIN, fold=1), AUTUMN.replace(fold=1),
    AUTUMN.replace(tzinfo=datetime.UTC), AUTUMN.replace(tzinfo=datetime.UTC, fold=1),
    AUTUMN.replace(tzinfo=CET), AUTUMN.replace(tzinfo=datetime.timezone(datetime.timedelta(seconds=-1))),
    AUTUMN.replace(tzinfo=datetime.timezone(datetime.timedelta(0), "Z")),
    datetime.datetime.max, datetime.datetime.min, datetime.datetime(1, 1, 1, tzinfo=BERLIN),
    datetime.time(1, 2, 3, 4), datetime.time(1, fold=1), datetime.time(1, tzinfo=BERLIN), datetime.time(1, tzinfo=CET),
    datetime.time(1, tzinfo=datetime.UTC), datetime.date.max, datetime.timedelta.min, BERLIN, CET, datetime.UTC,
    ZoneInfo("UTC"), datetime.timezone(datetime.timedelta(hours=-3, minutes=-30)), ZoneInfo("Etc/GMT+5"),
]  # fmt: skip
ARRAYS: list[Any] = [
    np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.arange(10)[::3], np.asfortranarray(np.ones((2, 3))),
    np.array(5), np.array(5.0, ">f4"), np.array([1, 2], ">i4"), np.zeros((0, 3)), np.zeros((3, 0), "u1"),
    np.array(["a", "grün\0"]), np.array([b"a", b"\0"]), np.array([True, False]), np.array([1 + 2j], "c8"),
    np.array(["2026-03-01", "NaT"], "M8[D]"), np.array([1, 2], "M8[25s]"), np.array([1], "m8[123456us]"),
    np.array([1, 2], "m8"), np.arange(3, dtype="q"), np.arange(3, dtype="Q"), np.broadcast_to(np.float32(1), (2, 2)),
    np.array([1, np.nan], "f2"), np.array([np.longdouble(1) / 3]),
]  # fmt: skip
SCALARS: list[Any] = [
    *(np.dtype(code).type(7) for code in "?bBhHiIlLqQefdgFDG"), np.datetime64(5, "25s"), np.datetime64("NaT"),
    np.datetime64("2026-03-01"), np.timedelta64(5), np.timedelta64(7, "us"), np.timedelta64("NaT"), np.str_("x\0\0"),
    np.bytes_(b"x\0\0"), np.float64("nan"), np.array([3], ">i8")[0], np.str_(""),
]  # fmt: skip
OBJECTS: list[Any] = [
    Computed(2.5), Plain(1), Tagged(1, "t"), _named(Plain(1), extra=[1, (2,)]), Slots(1), Frozen(2),
    _named(Frozen(2), note="n"), FrozenSlots((1,)), Unset(1), UnsetSlot(1), Mixed(3), Wide(1),
    _named(Wide(1), extra=2), Keyword(a=1), Initialised(3, b=4), Lazy(1), _used(Lazy(2)), Box[int](3), Box("x"),
    Described(4), _without(Plain(1, "gone"), "b"), _named(_without(Plain(1), "b"), c=1), Redefined(5), Twice(1),
    Point(1, 2), NamedPoint(1, 2), Typed(1), Size.LARGE, Mode.READ | Mode.WRITE, Mode(0), Mode(8), Strict.A | Strict.B,
    Slots(Slots(1, Computed(1.5)), {"a": Tagged(2, "x")}),
]  # fmt: skip
ZONED = Columns({"at": [datetime.datetime(2026, 3, day, 12, tzinfo=BERLIN) for day in (28, 29)]})
COLUMNS: list[Any] = [
    Columns({"a": [1, 2], "word": ["x", None], "at": np.array([1, 2], "M8[ms]"), "big": np.array([1, 2], ">i2")}),
    Columns({"a": np.arange(10)[::2]}), Columns({}), Columns({"word": pa.array(["a", "b", "c"]).slice(1)}),
    Columns({"a": [1.5]}).slice(0, 0), ZONED, ZONED["at"],
]  # fmt: skip
ALIKE = [*CONTAINERS, *NUMBERS, *MOMENTS, *ARRAYS, *SCALARS, *OBJECTS, *COLUMNS]

# What must be refused, and the type that the refusal must name.
REFUSED: list[tuple[Any, str]] = [
    (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "MaskedArray"), (np.ma.array([1]), "MaskedArray"),
    (np.ma.masked, "MaskedConstant"), (np.array([[1, 2]]).view(np.matrix), "matrix"),
    (np.rec.array([(1, 2)]), "recarray"),
    (ZONED["at"].astype("i8"), "Zoned"),
    (np.array([1]).view(MyArray), "MyArray"), (np.array([1, "x"], object), "dtype object"),
    (np.zeros(2, [("a", "i4")]), r"dtype \[\('a'"), (np.zeros(1, [("a", "i4")])[0], "void"),
    (np.array(["x"], np.dtypes.StringDType()), "StringDType"), (np.char.array(["a"]), "chararray"),
    (MyScalar(1), "MyScalar"), (MyNumpyText("x"), "MyNumpyText"),
    *((kind(), kind.__name__) for kind in (MyInt, MyFloat, MyText, MyList, MyDict, MySet, MyTuple, MyBytes)),
    (MyDate(2026, 3, 1), "MyDate"), (datetime.datetime(2026, 3, 1, tzinfo=MyZone()), "MyZone"), (MyZone(), "MyZone"),
    (datetime.time(1, tzinfo=MyZone()), "MyZone"), (pd.Timestamp("2026-03-01"), "Timestamp"),
    (_named(OrderedDict(a=1), note=1), "OrderedDict"), (_named(Counter("a"), note=1), "Counter"),
    (defaultdict(lambda: 1), "defaultdict"), (defaultdict(Plain), "defaultdict"), (UserDict(a=1), "UserDict"),
    (_named(NamedPoint(1, 2), tag=3), "NamedPoint"), (Holder(1), "lock"), (ListAndMore(), "ListAndMore"),
    (Wrong(1), "Wrong"), (ValueError("x"), "ValueError"), (First(1), "Twice"), (memoryview(b"x"), "memoryview"),
    ({memoryview(b"x"): 1}, "memoryview"), (msgpack.ExtType(1, b"\x90"), "ExtType"), (range(3), "range"),
    (slice(1), "slice"), (pathlib.Path("x"), "Path"), (types.SimpleNamespace(a=1), "SimpleNamespace"),
    (..., "ellipsis"),
    (array.array("i", [1]), "array"), (pd.DataFrame({"a": [1]}), "DataFrame"), (pl.DataFrame({"a": [1]}), "DataFrame"),
    (pa.table({"a": [1]}), "Table"), (pa.array([1]), "Int64Array"), (int, "type"), (len, "builtin"), ("\ud800", "str"),
]  # fmt: skip
