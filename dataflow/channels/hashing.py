"""Hashes of keys that are alike in every process and on every host.

Python's own `hash` is salted for strings, so two processes would route one key to two workers. Keys that are equal hash
alike, whatever their types: 1, 1.0, True and numpy's 1 are one key. An integer is its own hash, so that the most
frequent key costs nothing; a hash may therefore be negative or large, and is used modulo something.
"""

from __future__ import annotations

import datetime
import enum
import numbers
import uuid
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dataflow.errors import UnstableKey

_Hasher: TypeAlias = Callable[[Any], int]  # of keys of the one type that it is for

_MASK = (1 << 64) - 1
_PRIME = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: consecutive integers end far apart


def stable_hash(key: object) -> int:
    """An integer, the same in every process; equal keys hash alike.

    >>> stable_hash(3), stable_hash(3.0), stable_hash(True)
    (3, 3, 1)
    >>> stable_hash("fox"), stable_hash(("fox", 1)) == stable_hash(("fox", 1.0))
    (262201574, True)
    """
    hasher = _HASHERS.get(type(key))
    if hasher is None:
        hasher = _find_hasher(key)
    return hasher(key)


def hash_strings(keys: Sequence[str]) -> list[int]:
    """The hashes of many strings, whose type is `str` alone.

    >>> hash_strings(["fox", "dog"]) == [stable_hash("fox"), stable_hash("dog")]
    True
    """
    try:
        return list(map(zlib.crc32, map(str.encode, keys)))
    except UnicodeEncodeError:  # half of a pair of surrogates
        return list(map(_hash_str, keys))


def _hash_tuple(key: tuple[object, ...]) -> int:
    total = len(key)
    for item in key:
        total = ((total ^ stable_hash(item)) * _PRIME + 1) & _MASK
    return total >> 16  # the low bits of a product are the weak ones, and modulo looks at them


def _hash_frozenset(key: frozenset[object]) -> int:
    return sum(_hash_tuple((item,)) for item in key) & _MASK  # a sum: sets have no order


def _hash_bytes(key: bytes) -> int:
    return zlib.crc32(key)


def _hash_str(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def _hash_float(key: float) -> int:
    if key.is_integer():
        return int(key)
    return hash(key) if key == key else 0  # not-a-number hashes by identity


def _hash_number(key: Any) -> int:
    """Fraction, Decimal, complex, numpy's numbers: a whole number hashes as the integer that it is equal to."""
    if isinstance(key, complex):
        return _hash_number(key.real) if key.imag == 0 else hash(key)
    try:
        whole = int(key)
    except (TypeError, ValueError, OverflowError):
        return hash(key) if key == key else 0
    return whole if whole == key else hash(key)


def _hash_datetime(key: datetime.datetime) -> int:
    if key.tzinfo is None:
        return _hash_str(key.isoformat())
    return _hash_float(key.timestamp())  # equal instants in different zones are equal keys


def _hash_enum(key: enum.Enum) -> int:
    return _hash_str(f"{type(key).__qualname__}.{key.name}")


_HASHERS: dict[type, _Hasher] = {
    int: int,
    bool: int,
    float: _hash_float,
    str: _hash_str,
    bytes: _hash_bytes,
    tuple: _hash_tuple,
    frozenset: _hash_frozenset,
    type(None): lambda _: 0,
}

_BASES: tuple[tuple[type, _Hasher], ...] = (
    (numbers.Number, _hash_number),  # Enum comes last: members of an IntEnum are equal to integers
    (str, _hash_str),
    (bytes, _hash_bytes),
    (tuple, _hash_tuple),
    (frozenset, _hash_frozenset),
    (datetime.datetime, _hash_datetime),
    (datetime.date, lambda d: d.toordinal()),
    (uuid.UUID, lambda u: int(u.int)),
    (enum.Enum, _hash_enum),
)


def _find_hasher(key: object) -> _Hasher:
    for base, hasher in _BASES:
        if isinstance(key, base):
            _HASHERS[type(key)] = hasher
            return hasher
    raise UnstableKey(
        f"a key of type {type(key).__name__} has no hash that is alike in every process: {key!r}. "
        "Use numbers, strings, bytes, tuples or frozensets of them, dates or enums as keys."
    )
