"""Plain data as bytes, and back, with its types: msgpack, extended by what it loses.

msgpack knows None, bool, int, float, str, bytes, lists and dictionaries. Everything else that may travel between
workers is an extension here: tuples, sets, large integers, dates, decimals, numpy's scalars and arrays, and instances
of dataclasses, enums and named tuples. Those name their class, which is looked up among the modules that are already
imported; decoding never imports a module and never calls a constructor of the program's.

>>> decode(encode((1, [2.5, "x"], {3: (4, 2**80)}, {5})))
(1, [2.5, 'x'], {3: (4, 1208925819614629174706176)}, {5})
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import re
import sys
import uuid
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

_TUPLE, _DATACLASS, _ENUM, _NAMEDTUPLE, _SCALAR, _ARRAY, _TEXT = 1, 2, 3, 4, 5, 6, 7


_DTYPE = re.compile(r"[<>|=][biufcmMSU][1-9][0-9]{0,6}(\[[0-9]{0,4}[a-zA-Z]{1,2}\])?")
_DEEPEST = 64  # extensions within extensions: each is a call from C to Python and back, and the stack is finite


def encode(value: Any, depth: int = 0) -> bytes:
    """The bytes of a value made of plain data; TypeError names what cannot be encoded."""
    try:
        packed = msgpack.packb(value, default=_EXTENDERS[depth], strict_types=True)
    except IndexError:
        raise TypeError(f"a value nested more than {_DEEPEST} levels deep cannot be sent to another worker") from None
    except (UnicodeEncodeError, OverflowError, ValueError) as error:
        raise TypeError(f"a value cannot be sent to another worker: {error}") from None
    assert isinstance(packed, bytes)
    return packed


def decode(data: bytes | memoryview, depth: int = 0) -> Any:
    """The value that was encoded; ValueError if the bytes are not one."""
    if depth == _DEEPEST:
        raise ValueError(f"damaged data: nested more than {_DEEPEST} levels deep")
    try:
        return msgpack.unpackb(data, ext_hook=_RESTORERS[depth], strict_map_key=False)
    except Exception as error:  # whatever a peer's bytes make some library raise, they are to blame, and not we
        raise ValueError(f"damaged data: {error}") from None


# Types without a class of the program's: (code, type, to plain data, from plain data).

_TYPES: tuple[tuple[int, type, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (16, set, list, set),
    (17, frozenset, list, frozenset),
    (18, int, lambda i: i.to_bytes(i.bit_length() // 8 + 1, "little", signed=True), lambda b: _integer(b)),
    (19, complex, lambda c: [c.real, c.imag], lambda p: complex(*p)),
    (21, datetime.datetime, lambda d: d.isoformat(), datetime.datetime.fromisoformat),
    (22, datetime.date, lambda d: d.isoformat(), datetime.date.fromisoformat),
    (23, datetime.timedelta, lambda d: [d.days, d.seconds, d.microseconds], lambda p: datetime.timedelta(*p)),
    (24, decimal.Decimal, str, decimal.Decimal),
    (25, fractions.Fraction, lambda f: _small_fraction(f.numerator, f.denominator), lambda p: _fraction(*p)),
    (26, uuid.UUID, lambda u: u.bytes, lambda b: uuid.UUID(bytes=_bytes(b))),
)
_BY_TYPE = {kind: (code, to_plain) for code, kind, to_plain, _ in _TYPES}
_BY_CODE = {code: from_plain for code, _, _, from_plain in _TYPES}


def _integer(data: bytes) -> int:
    return int.from_bytes(_bytes(data), "little", signed=True)


def _bytes(data: Any) -> bytes:
    if type(data) is not bytes:
        raise ValueError(f"{type(data).__name__} where bytes belong")
    return data


def _small_fraction(*parts: int) -> list[int]:
    if max(part.bit_length() for part in parts) > 1 << 14:
        raise TypeError("a fraction of more than 16,384 bits cannot be sent to another worker")
    return list(parts)


def _fraction(*parts: int) -> fractions.Fraction:
    return fractions.Fraction(*_small_fraction(*parts))  # making one finds a common divisor, which takes its time


def _extend(depth: int, value: Any) -> Any:
    """Called by msgpack for what it does not know."""
    code, plain = _plain(value)
    return msgpack.ExtType(code, encode(plain, depth + 1))


def _plain(value: Any) -> tuple[int, Any]:
    """The code of an extension, and its content."""
    kind = type(value)
    if kind is tuple:
        return _TUPLE, list(value)
    if kind in _BY_TYPE:
        code, to_plain = _BY_TYPE[kind]
        return code, to_plain(value)
    if isinstance(value, np.str_ | np.bytes_):
        return _TEXT, str(value) if isinstance(value, np.str_) else bytes(value)
    if isinstance(value, np.generic):
        return _SCALAR, [dtype_name(value.dtype), value.tobytes()]
    if isinstance(value, np.ndarray):
        return _ARRAY, [dtype_name(value.dtype), list(value.shape), np.ascontiguousarray(value).tobytes()]
    if isinstance(value, enum.Enum):
        return _ENUM, [class_name(kind), value.value if isinstance(value, enum.Flag) else value.name]
    if is_record(kind):
        return _DATACLASS, [class_name(kind), list(field_values(value))]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _NAMEDTUPLE, [class_name(kind), list(value)]
    raise TypeError(
        f"a {kind.__name__} cannot be sent to another worker: {_brief(value)}. Send plain data: numbers, strings, "
        "bytes, lists, tuples, sets, dictionaries, dates, numpy scalars, dataclasses or enums."
    )


def _restore(depth: int, code: int, data: bytes) -> Any:
    """Called by msgpack for an extension. Whatever it raises becomes a ValueError."""
    plain = decode(data, depth + 1)
    if code == _TUPLE:
        return tuple(plain)
    if code in _BY_CODE:
        return _BY_CODE[code](plain)
    if code == _TEXT:
        return np.str_(plain) if type(plain) is str else np.bytes_(_bytes(plain))
    if code == _SCALAR:
        (scalar,) = np.frombuffer(_bytes(plain[1]), safe_dtype(plain[0]))
        return scalar
    if code == _ARRAY:
        name, shape, raw = plain
        return np.frombuffer(bytearray(_bytes(raw)), safe_dtype(name)).reshape(shape)
    if code == _ENUM:
        cls = find_class(plain[0], enum.Enum)
        return cls(plain[1]) if issubclass(cls, enum.Flag) else cls[plain[1]]
    if code == _DATACLASS:
        return make_dataclass(find_class(plain[0], None), plain[1])
    if code == _NAMEDTUPLE:
        return tuple.__new__(find_class(plain[0], tuple), plain[1])
    raise ValueError(f"unknown extension {code} in encoded data")


_EXTENDERS = [functools.partial(_extend, depth) for depth in range(_DEEPEST)]
_RESTORERS = [functools.partial(_restore, depth) for depth in range(_DEEPEST)]


# Classes of the program


def class_name(kind: type) -> str:
    """How a class is named in encoded data; TypeError if another process could not find it."""
    if "<locals>" in kind.__qualname__:
        raise TypeError(
            f"{kind.__qualname__} is defined inside a function, where another worker cannot find it: "
            "define the class at the top of its module"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def find_class(name: Any, base: type | None) -> Any:
    """The class of that name in the modules that are imported already: a subclass of `base`, or a dataclass."""
    module, _, path = str(name).partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # Not getattr: a module may import things when it is asked for what it does not have.
        found = getattr(found, "__dict__", {}).get(part)
    if not isinstance(found, type):
        raise ValueError(f"the class {name!r} is not known here: import its module before data arrives")
    if base is None and not is_record(found):
        raise ValueError(f"{name!r} is not a dataclass")
    if base is not None and not issubclass(found, base):
        raise ValueError(f"{name!r} is not a kind of {base.__name__}")
    if base is tuple and not hasattr(found, "_fields"):
        raise ValueError(f"{name!r} is not a named tuple")
    return found


def is_record(kind: type) -> bool:
    """Whether instances of a class travel as the values of their fields: dataclasses, but not enums made of one."""
    return dataclasses.is_dataclass(kind) and not issubclass(kind, enum.Enum)


def field_values(value: Any) -> tuple[Any, ...]:
    """The values of a dataclass instance's fields, in order."""
    return tuple(getattr(value, field.name) for field in dataclasses.fields(value))


def make_dataclass(kind: type, values: Any) -> Any:
    """An instance with these values in its fields. Its constructor is not called: it was, where the value was made."""
    fields = dataclasses.fields(kind)
    if len(fields) != len(values):
        raise ValueError(f"{kind.__name__} has {len(fields)} fields here and {len(values)} where it came from")
    made: Any = object.__new__(kind)
    for field, value in zip(fields, values, strict=True):
        object.__setattr__(made, field.name, value)
    return made


def dtype_name(dtype: np.dtype[Any]) -> str:
    """How a dtype is named in encoded data; TypeError for arrays of objects and records."""
    if dtype.kind not in "biufcmMSUV" or dtype.fields is not None or dtype.kind == "V":
        raise TypeError(f"numpy data of dtype {dtype} cannot be sent to another worker: use numbers, dates or strings")
    return dtype.str


def safe_dtype(name: Any) -> np.dtype[Any]:
    """The dtype of that name, if it is one that `dtype_name` could have written."""
    if type(name) is not str:
        raise ValueError(f"{_brief(name)} is not a dtype for data")
    return _dtype(name)


@functools.lru_cache(256)  # one is looked up for each column that is received
def _dtype(name: str) -> np.dtype[Any]:
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"{_brief(name)} is not a dtype for data")
    return np.dtype(name)


def _brief(value: Any) -> str:
    """A value as a person can read it in an error: not a whole book."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
