"""Hashes of integer columns, and who gets which row: compiled.

The hash is the finaliser of splitmix64. It is a bijection of 64-bit words, so a table may keep the hash in the place of
the key and give the key back when it is asked for; its most significant bits choose a bin, its least significant ones a
place in the bin's segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dataflow.columns.arrow import type_name
from dataflow.columns.batch import Array, Column, Columns

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNFIRST, _UNSECOND = np.uint64(0x96DE1B173F119089), np.uint64(0x319642B2D24D8EC3)  # inverses modulo 2^64
_30, _27, _31, _60, _54, _62 = (np.uint64(n) for n in (30, 27, 31, 60, 54, 62))


@njit(inline="always")
def mix(key: Any) -> Any:
    """Scatters the 64 bits of a key: neighbouring integers end far apart, in all bits.

    >>> int(mix(np.uint64(1)))
    10451216379200822465
    """
    word = key + _GOLDEN
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@njit(inline="always")
def unmix(hashed: Any) -> Any:
    """The key that has this hash.

    >>> int(unmix(np.uint64(mix(np.uint64(12345)))))
    12345
    """
    word = hashed ^ (hashed >> _31) ^ (hashed >> _62)
    word = word * _UNSECOND
    word = word ^ (word >> _27) ^ (word >> _54)
    word = word * _UNFIRST
    word = word ^ (word >> _30) ^ (word >> _60)
    return word - _GOLDEN


@njit("void(uint64[::1], uint64[::1])", cache=True)
def mix_all(keys: Any, hashes: Any) -> None:
    """The hash of each key."""
    for i in range(keys.size):
        hashes[i] = mix(keys[i])


@njit("void(uint64[::1], uint64[::1])", cache=True)
def unmix_all(hashes: Any, keys: Any) -> None:
    """The key of each hash."""
    for i in range(hashes.size):
        keys[i] = unmix(hashes[i])


@njit("void(uint64[::1], uint64, uint32[::1], uint32[::1], int64[::1])", cache=True, nogil=True)
def route_hashed(keys: Any, shift: Any, owners: Any, to: Any, counts: Any) -> None:
    """The owner of each key's bin, and how many keys each owner gets."""
    for i in range(keys.size):
        owner = owners[mix(keys[i]) >> shift]
        to[i] = owner
        counts[owner] += 1


@njit("void(uint64[::1], uint64, uint32[::1], uint32[::1], int64[::1])", cache=True, nogil=True)
def route_dense(keys: Any, mask: Any, owners: Any, to: Any, counts: Any) -> None:
    """The same where a key's bin is the key modulo the number of bins."""
    for i in range(keys.size):
        owner = owners[keys[i] & mask]
        to[i] = owner
        counts[owner] += 1


@njit("void(uint64[::1], int64[::1], uint64[::1], int32[::1])", cache=True)
def fill_slots(keys: Any, workers: Any, slots: Any, owners: Any) -> None:
    """Makes a table of keys with their workers, for `route_apart`. Empty slots have the owner -1."""
    mask = np.uint64(slots.size - 1)
    for i in range(keys.size):
        slot = mix(keys[i]) & mask
        while owners[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = keys[i]
        owners[slot] = workers[i]


@njit(
    "void(uint64[::1], boolean, uint64, uint32[::1], uint64[::1], int32[::1], uint32, uint32[::1], int64[::1])",
    cache=True,
    nogil=True,
)
def route_apart(
    keys: Any, dense: Any, by: Any, workers: Any, slots: Any, owners: Any, peers: Any, to: Any, counts: Any
) -> None:
    """The owner of each key's bin; for a key in `slots`, `peers` and its own owner."""
    mask = np.uint64(slots.size - 1)
    for i in range(keys.size):
        hashed = mix(keys[i])
        owner = workers[keys[i] & by] if dense else workers[hashed >> by]
        slot = hashed & mask
        while owners[slot] >= 0:
            if slots[slot] == keys[i]:
                owner = peers + np.uint32(owners[slot])
                break
            slot = (slot + np.uint64(1)) & mask
        to[i] = owner
        counts[owner] += 1


@njit("void(uint64[::1], uint64, uint32[::1], int64[::1])", cache=True, nogil=True)
def route_modulo(keys: Any, peers: Any, to: Any, counts: Any) -> None:
    """The worker of each key for a plain exchange: the upper half of its hash, scaled."""
    for i in range(keys.size):
        owner = ((mix(keys[i]) >> np.uint64(32)) * peers) >> np.uint64(32)
        to[i] = owner
        counts[owner] += 1


@njit(cache=True, nogil=True)
def scatter(values: Any, to: Any, places: Any, out: Any) -> None:
    """Writes each value to the next place of its owner."""
    for i in range(values.size):
        owner = to[i]
        out[places[owner]] = values[i]
        places[owner] += 1


def as_words(column: Column, name: str) -> Array:
    """An integer column as 64-bit words, without copying where it has them already; TypeError for anything else."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iubmM":
        wide = column if column.dtype.itemsize == 8 else column.astype(np.int64)
        return np.ascontiguousarray(wide).view(np.uint64)
    raise TypeError(
        f"column {name!r} cannot be a key: it holds {type_name(column)}, and keys of columns "
        "are integers, booleans or dates. Encode it as integers first, or use rows"
    )


def scatter_columns(batch: Columns, to: Array, counts: Array) -> list[Columns]:
    """One batch per owner, each row to the owner that `to` names; the order of rows is kept."""
    if counts.max() == len(batch):  # all to one: nothing need be copied
        empty = batch.slice(0, 0)
        return [batch if count == len(batch) else empty for count in counts.tolist()]
    ends = np.cumsum(counts)
    starts = ends - counts
    order: Array | None = None
    parts: list[dict[str, Any]] = [{} for _ in counts]
    cuts = list(zip(starts.tolist(), ends.tolist(), strict=True))
    for name, column in batch.columns.items():
        if isinstance(column, np.ndarray):
            out = np.empty_like(column)
            scatter(_words_of(column), to, starts.copy(), _words_of(out))
            for part, (start, end) in zip(parts, cuts, strict=True):
                part[name] = out[start:end]
        else:
            if order is None:
                order = np.argsort(to, kind="stable")
            moved = column.take(order)
            for part, (start, end) in zip(parts, cuts, strict=True):
                part[name] = moved.slice(start, end - start)
    return [Columns.trusted(part, int(end - start)) for part, (start, end) in zip(parts, cuts, strict=True)]


def _words_of(column: Array) -> Array:
    """As unsigned integers of the same width, so that few kinds of kernels are compiled."""
    if column.dtype.kind in ("i", "u", "f", "b", "m", "M") and column.dtype.itemsize in (1, 2, 4, 8):
        return np.ascontiguousarray(column).view(f"u{column.dtype.itemsize}")
    return np.ascontiguousarray(column)
