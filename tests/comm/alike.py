"""The judge of values that travelled: whether two are alike in type, value, attributes, dtype and zone, all the way
down.

It shares no code with the codec: what an object is made of it learns from `__reduce_ex__`, Python's own account.
"""

from __future__ import annotations

import struct
import types
from typing import Any

import numpy as np

from dataflow.columns import Columns

_NAMES = (type, types.FunctionType, types.BuiltinFunctionType)


def alike(a: Any, b: Any) -> bool:
    """Whether a value could be put in the place of the other, and nobody would notice."""
    if type(a) is not type(b):
        return False
    if a is b or isinstance(a, _NAMES):
        return a is b
    if type(a) in (int, str, bytes, bytearray):
        return bool(a == b)
    if type(a) is float:
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, np.ndarray) and type(a) is np.ndarray:
        return _same_type(a, b) and a.shape == b.shape and _same_bytes(a, b)
    if isinstance(a, np.generic) and type(a).__module__ == "numpy":
        return _same_type(a, b) and _same_bytes(a, b) and repr(a) == repr(b)
    if isinstance(a, Columns):
        pairs = list(zip(a.columns.values(), b.columns.values(), strict=False))
        return a.names == b.names and len(a) == len(b) and all(_alike_columns(x, y) for x, y in pairs)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if type(a) is dict:
        return len(a) == len(b) and all(map(alike, a.items(), b.items()))
    if type(a) in (set, frozenset):
        return _alike_members(list(a), list(b))
    return _alike_parts(a.__reduce_ex__(4), b.__reduce_ex__(4)) and getattr(a, "fold", 0) == getattr(b, "fold", 0)


def _alike_parts(a: Any, b: Any) -> bool:
    """Of what `__reduce_ex__` says: how it is made, its attributes, its items."""
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    (make, *a), (other, *b) = a, b
    if make is not other and getattr(make, "__qualname__", 0) != getattr(other, "__qualname__", 1):
        return False
    plain = [[list(part) if hasattr(part, "__next__") else part for part in parts] for parts in (a, b)]
    return alike(_stripped(plain[0]), _stripped(plain[1]))


def _stripped(parts: list[Any]) -> list[Any]:
    """Without the note of typing's that an instance was made as Box[int]: it is not kept, and documented so."""
    return [
        {k: v for k, v in part.items() if k != "__orig_class__"} or None if type(part) is dict else part
        for part in parts
    ]


def _same_type(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype) and a.dtype.char == b.dtype.char and a.dtype.str == b.dtype.str


def _same_bytes(a: Any, b: Any) -> bool:
    if a.dtype.char in "gG":
        return bool(np.array_equal(a, b, equal_nan=True))  # long doubles have bytes that mean nothing
    return a.tobytes() == b.tobytes()  # type: ignore[no-any-return]


def _alike_columns(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return alike(a, b)
    return bool(str(a.type) == str(b.type)) and a.to_pylist() == b.to_pylist()


def _alike_members(a: list[Any], b: list[Any]) -> bool:
    for x in a:
        match = next((i for i, y in enumerate(b) if alike(x, y)), None)
        if match is None:
            return False
        del b[match]
    return not b
