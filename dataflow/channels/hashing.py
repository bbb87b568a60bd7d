"""Hashes of keys that are alike in every process and on every host.

Python's own `hash` is salted for strings, so two processes would route one key to two workers. Numbers are safe: their hash is
defined by their value, and equal numbers of different types hash alike, as keys that are equal must.
"""

from __future__ import annotations

import datetime
import enum
import numbers
import uuid
import zlib
from collections.abc import Callable
from typing import Any

from dataflow.errors import UnstableKey

_MASK = (1 << 64) - 1
_PRIME = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: consecutive integers end far apart


def stable_hash(key: Any) -> int:
    """A non-negative hash of 64 bits, the same in every process; equal keys hash alike.

    >>> stable_hash(3), stable_hash(3.0), stable_hash(True) == stable_hash(1)
    (3, 3, True)
    >>> stable_hash("fox"), stable_hash(("fox", 1)) == stable_hash(("fox", 1.0))
    (3562863110, True)
    """
    hasher = _HASHERS.get(type(key))
    if hasher is None:
        hasher = _find_hasher(key)
    return hasher(key) & _MASK


def _hash_tuple(key: tuple[Any, ...]) -> int:
    total = len(key)
    for item in key:
        total = ((total ^ stable_hash(item)) * _PRIME + 1) & _MASK
    return total


def _hash_frozenset(key: frozenset[Any]) -> int:
    return sum(stable_hash(item) * _PRIME for item in key)  # a sum: sets have no order


def _hash_bytes(key: bytes) -> int:
    return zlib.crc32(key)


def _hash_str(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def _hash_datetime(key: datetime.datetime) -> int:
    if key.tzinfo is None:
        return _hash_str(key.isoformat())
    return hash(key.timestamp())  # equal instants in different zones are equal keys


def _hash_enum(key: enum.Enum) -> int:
    return _hash_str(f"{type(key).__qualname__}.{key.name}")


_HASHERS: dict[type, Callable[[Any], int]] = {
    int: hash,
    bool: hash,
    float: hash,
    str: _hash_str,
    bytes: _hash_bytes,
    tuple: _hash_tuple,
    frozenset: _hash_frozenset,
    type(None): lambda _: 0,
}

_BASES: tuple[tuple[type, Callable[[Any], int]], ...] = (
    (
        numbers.Number,
        hash,
    ),  # Fraction, Decimal, numpy's integers and floats (in this order before Enum: IntEnum == int)
    (str, _hash_str),
    (bytes, _hash_bytes),
    (tuple, _hash_tuple),
    (frozenset, _hash_frozenset),
    (enum.Enum, _hash_enum),
    (datetime.datetime, _hash_datetime),
    (datetime.date, lambda d: d.toordinal()),
    (uuid.UUID, lambda u: hash(u.int)),
)


def _find_hasher(key: Any) -> Callable[[Any], int]:
    for base, hasher in _BASES:
        if isinstance(key, base):
            _HASHERS[type(key)] = hasher
            return hasher
    raise UnstableKey(
        f"a key of type {type(key).__name__} has no hash that is alike in every process: {key!r}. "
        "Use numbers, strings, bytes, tuples or frozensets of them, dates or enums as keys."
    )
