"""Plain data as bytes, and back, with its types: msgpack, extended by what it loses.

msgpack knows None, bool, int, float, str, bytes, lists and dictionaries. Everything else that may travel between
workers is an extension here (see `dataflow.comm.values`): tuples, sets, large integers, dates, decimals, numpy's
scalars and arrays, the containers of `collections`, and instances of dataclasses, enums and named tuples. A value
arrives alike, or a TypeError says which type cannot travel and what to send instead.

>>> decode(encode((1, [2.5, "x"], {3: (4, 2**80)}, {5})))
(1, [2.5, 'x'], {3: (4, 1208925819614629174706176)}, {5})
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgpack
import numpy as np

from dataflow.comm.values import arrays, containers, moments, objects, pretenders
from dataflow.comm.values.arrays import dtype_name, safe_dtype
from dataflow.comm.values.objects import is_record
from dataflow.comm.values.refusal import Refusal, refuse
from dataflow.comm.values.shapes import require_bytes, require_list, require_mapping, require_text
from dataflow.values import Value

__all__ = [
    "decode",
    "dtype_name",
    "encode",
    "is_record",
    "pack",
    "register",
    "require_list",
    "require_mapping",
    "require_text",
    "safe_dtype",
]

T = TypeVar("T")

_TUPLE, _DATACLASS, _ENUM, _NAMEDTUPLE, _SCALAR, _ARRAY, _TEXT = 1, 2, 3, 4, 5, 6, 7
_DEEPEST = 64  # extensions within extensions: each is a call from C to Python and back, and the stack is finite
_BUFFER = 512  # bytes that are taken at first: msgpack's own 256 KiB for each level are slow to get from the system


def encode(value: object, depth: int = 0) -> bytes:
    """The bytes of a value made of plain data; TypeError names what cannot be encoded."""
    packed = pack(value, depth)
    values = value if type(value) is list else (value,)
    if not pretenders.SUSPECTS.isdisjoint(map(type, values)) and pretenders.hides(values):
        return pack(pretenders.reveal(value), depth)
    return packed


def pack(value: object, depth: int = 0) -> bytes:
    """As `encode`, for values that are known to have no `pretenders` in their lists and dictionaries."""
    if depth == _DEEPEST:
        raise TypeError(f"a value nested more than {_DEEPEST} levels deep cannot be sent to another worker")
    try:
        packed = msgpack.packb(value, default=_EXTENDERS[depth], strict_types=True, buf_size=_BUFFER)
    except UnicodeEncodeError as error:
        refusal = Refusal(error.object, f"It is no Unicode text ({error.reason}): send bytes.")
        raise refusal if depth else TypeError(str(refusal)) from None
    except Refusal as refusal:
        if depth:
            raise
        raise TypeError(str(refusal)) from None  # an exception that can itself travel: it has nothing but its text
    except (OverflowError, ValueError) as error:
        raise TypeError(f"a {type(value).__name__} cannot be sent to another worker: {error}") from None
    assert isinstance(packed, bytes)
    return packed


def decode(data: bytes | memoryview, depth: int = 0) -> Value:
    """The value that was encoded; ValueError if the bytes are not one."""
    if depth == _DEEPEST:
        raise ValueError(f"damaged data: nested more than {_DEEPEST} levels deep")
    try:
        return msgpack.unpackb(data, ext_hook=_RESTORERS[depth], strict_map_key=False)
    except Exception as error:  # whatever a peer's bytes make some library raise, they are to blame, and not we
        raise ValueError(f"damaged data: {error}") from None


# What becomes of each type: (code, to plain data, from plain data).

_Convert = Callable[..., object]  # of one argument: a value of the type that stands beside it, or plain data
_TYPES: tuple[tuple[int, type, _Convert, _Convert], ...] = (
    (_TUPLE, tuple, list, tuple),
    (_ARRAY, np.ndarray, arrays.of_array, arrays.to_array),
    (16, set, list, set),
    (17, frozenset, list, frozenset),
    (18, int, lambda i: i.to_bytes(i.bit_length() // 8 + 1, "little", signed=True), lambda b: _integer(b)),
    (19, complex, lambda c: [c.real, c.imag], lambda p: complex(*p)),
    (21, datetime.datetime, moments.of_moment, moments.to_datetime),
    (22, datetime.date, lambda d: d.isoformat(), datetime.date.fromisoformat),
    (23, datetime.timedelta, lambda d: [d.days, d.seconds, d.microseconds], lambda p: datetime.timedelta(*p)),
    (24, decimal.Decimal, str, decimal.Decimal),
    (25, fractions.Fraction, lambda f: _small_fraction(f.numerator, f.denominator), lambda p: _fraction(*p)),
    (26, uuid.UUID, lambda u: _of_uuid(u), lambda p: _to_uuid(p)),
    (27, pretenders.Revealed, pretenders.of_revealed, pretenders.to_bytearray),
    (28, datetime.time, moments.of_moment, moments.to_time),
    (29, datetime.timezone, moments.of_offset, moments.to_offset),
    (30, ZoneInfo, moments.of_zone, moments.to_zone),
    (31, deque, containers.of_deque, containers.to_deque),
    (32, OrderedDict, containers.of_mapping, OrderedDict),
    (33, defaultdict, containers.of_default, containers.to_default),
    (34, Counter, containers.of_mapping, containers.to_counter),
)
_BY_TYPE: dict[type, tuple[int, _Convert]] = {kind: (code, to_plain) for code, kind, to_plain, _ in _TYPES}
_BY_CODE: dict[int, _Convert] = {code: from_plain for code, _, _, from_plain in _TYPES} | {
    _DATACLASS: objects.to_record,
    _ENUM: objects.to_enum,
    _NAMEDTUPLE: objects.to_named_tuple,
    _SCALAR: arrays.to_scalar,
    _TEXT: arrays.to_text,
}


_HOLDERS = {_TUPLE, _DATACLASS, _NAMEDTUPLE, *(_BY_TYPE[kind][0] for kind in (set, frozenset, deque, defaultdict))}
_HOLDERS |= {_BY_TYPE[OrderedDict][0], _BY_TYPE[Counter][0]}  # what has values of the program's in it


def register(code: int, kind: type[T], to_plain: Callable[[T], object], from_plain: Callable[[object], T]) -> None:
    """Teaches the codec a type of a layer above this one. Its instances travel as `to_plain(value)`."""
    if code in _BY_CODE:
        raise AssertionError(f"the code {code} is taken")
    _BY_TYPE[kind] = code, to_plain
    _BY_CODE[code] = from_plain


def _integer(data: object) -> int:
    return int.from_bytes(require_bytes(data), "little", signed=True)


def _small_fraction(*parts: int) -> list[int]:
    if max(part.bit_length() for part in parts) > 1 << 14:
        raise TypeError("a fraction of more than 16,384 bits cannot be sent to another worker")
    return list(parts)


def _fraction(*parts: int) -> fractions.Fraction:
    return fractions.Fraction(*_small_fraction(*parts))  # making one finds a common divisor, which takes its time


def _of_uuid(value: uuid.UUID) -> bytes | list[object]:
    return value.bytes if value.is_safe is uuid.SafeUUID.unknown else [value.bytes, value.is_safe.value]


def _to_uuid(plain: object) -> uuid.UUID:
    if type(plain) is list:
        return uuid.UUID(bytes=require_bytes(plain[0]), is_safe=uuid.SafeUUID(plain[1]))
    return uuid.UUID(bytes=require_bytes(plain))


def _extend(depth: int, value: object) -> object:
    """Called by msgpack for what it does not know."""
    kind = type(value)
    code, to_plain = _BY_TYPE.get(kind) or _by_base(value, kind)
    try:
        return msgpack.ExtType(code, (encode if code in _HOLDERS else pack)(to_plain(value), depth + 1))
    except Refusal as refusal:
        if code == _DATACLASS:
            _say_where(value, refusal)
        raise


def _by_base(value: object, kind: type) -> tuple[int, _Convert]:
    """The code of an extension for a type that is not in the table, and how its instances become plain."""
    if issubclass(kind, np.str_ | np.bytes_):
        return _TEXT, arrays.of_text
    if arrays.is_scalar(kind):
        return _SCALAR, arrays.of_scalar
    if issubclass(kind, enum.Enum):
        return _ENUM, objects.of_enum
    if is_record(kind):
        return _DATACLASS, objects.of_record
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _NAMEDTUPLE, objects.of_named_tuple
    raise refuse(value)


def _say_where(holder: object, refusal: Refusal) -> None:
    """Names the attribute that cannot be sent: `__post_init__` may have set it, and nobody thinks of it."""
    for attributes in objects.attributes_of(holder):
        for name, value in attributes.items():
            if value is refusal.culprit:
                refusal.held_by(name, holder)
                return


def _restore(depth: int, code: int, data: bytes) -> object:
    """Called by msgpack for an extension. Whatever it raises becomes a ValueError."""
    if code not in _BY_CODE:
        raise ValueError(f"unknown extension {code} in encoded data")
    return _BY_CODE[code](decode(data, depth + 1))


_EXTENDERS = [functools.partial(_extend, depth) for depth in range(_DEEPEST)]
_RESTORERS = [functools.partial(_restore, depth) for depth in range(_DEEPEST)]
