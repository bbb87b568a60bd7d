"""Plain data as bytes, and back, with its types: msgpack, extended by what it loses.

No code is ever run by decoding. msgpack knows None, bool, int, float, str, bytes, lists and dictionaries; tuples,
sets and integers beyond 64 bits are added here, so that they come back as what they were.

>>> decode(encode((1, [2.5, "x"], {3: (4, 2**80)}, {5})))
(1, [2.5, 'x'], {3: (4, 1208925819614629174706176)}, {5})
"""

from __future__ import annotations

from typing import Any

import msgpack

_TUPLE, _SET, _FROZENSET, _INTEGER = 1, 2, 3, 4


def encode(value: Any) -> bytes:
    """The bytes of a value made of plain data; TypeError names what cannot be encoded."""
    packed = msgpack.packb(value, default=_extend, strict_types=True, use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def decode(data: bytes) -> Any:
    """The value that was encoded; ValueError if the bytes are not one."""
    return msgpack.unpackb(data, ext_hook=_restore, strict_map_key=False, raw=False)


def _extend(value: Any) -> Any:
    if type(value) is tuple:
        return msgpack.ExtType(_TUPLE, encode(list(value)))
    if type(value) is set:
        return msgpack.ExtType(_SET, encode(list(value)))
    if type(value) is frozenset:
        return msgpack.ExtType(_FROZENSET, encode(list(value)))
    if type(value) is int:
        size = value.bit_length() // 8 + 1
        return msgpack.ExtType(_INTEGER, value.to_bytes(size, "little", signed=True))
    raise TypeError(f"a {type(value).__name__} is not plain data and cannot be encoded: {value!r}")


def _restore(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(decode(data))
    if code == _SET:
        return set(decode(data))
    if code == _FROZENSET:
        return frozenset(decode(data))
    if code == _INTEGER:
        return int.from_bytes(data, "little", signed=True)
    raise ValueError(f"unknown extension {code} in encoded data")
