"""Hashes of integer columns, and who gets which row: compiled.

The hash is the finaliser of splitmix64. It is a bijection of 64-bit words, so a table may keep the hash in the place of
the key and give the key back when it is asked for; its most significant bits choose a bin, its least significant ones a
place in the bin's segment.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from dataflow.columns.arrow import type_name
from dataflow.columns.column import Array, Column, Integers, Words
from dataflow.columns.instants import counts
from dataflow.compiled.kernel import kernel

Word: TypeAlias = np.uint64 | int
Workers: TypeAlias = NDArray[np.uint16]
"""The worker of each row, or of each bin."""

WORDS = types.Array(types.uint64, 1, "C", readonly=True)  # only read: what Arrow gives cannot be written to
_OUT, _TO, _COUNTS = types.uint64[::1], types.uint16[::1], types.int64[::1]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNFIRST, _UNSECOND = np.uint64(0x96DE1B173F119089), np.uint64(0x319642B2D24D8EC3)  # inverses modulo 2^64
_WORD = np.dtype(np.uint64)
_BLOCK = 512
_1, _6, _63 = (np.uint64(n) for n in (1, 6, 63))
_30, _27, _31, _60, _54, _62 = (np.uint64(n) for n in (30, 27, 31, 60, 54, 62))


@njit(inline="always")
def mix(key: np.uint64) -> np.uint64:
    """Scatters the 64 bits of a key: neighbouring integers end far apart, in all bits.

    >>> int(mix(np.uint64(1)))
    10451216379200822465
    """
    word = key + _GOLDEN
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@njit(inline="always")
def unmix(hashed: np.uint64) -> np.uint64:
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


@kernel(types.void(WORDS, _OUT))
def mix_all(keys: Words, hashes: Words) -> None:
    """The hash of each key."""
    for i in range(keys.size):
        hashes[i] = mix(keys[i])


@kernel(types.void(WORDS, _OUT))
def unmix_all(hashes: Words, keys: Words) -> None:
    """The key of each hash."""
    for i in range(hashes.size):
        keys[i] = unmix(hashes[i])


class Owners:
    """The worker of each bin, packed into as few bits as the number of workers needs. Routing reads it at random: for
    2^20 bins and two workers it takes 128 KiB, which stay in a core's cache; two bytes for each bin would not."""

    def __init__(self, workers: Workers, peers: int) -> None:
        self.width = next(width for width in range(5) if peers <= 1 << (1 << width))  # of 1, 2, 4, 8 or 16 bits
        self.words: Words = np.zeros(-(-len(workers) << self.width) // 64 + 1, np.uint64)
        _pack(workers, self.width, self.words)


@kernel(types.void(types.uint16[::1], types.uint64, _OUT))
def _pack(workers: Workers, width: Word, words: Words) -> None:
    for bin in range(workers.size):
        place = np.uint64(bin) << width
        words[place >> _6] |= np.uint64(workers[bin]) << (place & _63)


@njit(inline="always")
def _unpack(word: np.uint64, width: Word, bin: np.uint64) -> np.uint64:
    """The worker of a bin, given the word that holds it: the one at (bin << width) >> 6."""
    return (word >> ((bin << width) & _63)) & ((_1 << (_1 << width)) - _1)


@kernel(types.void(WORDS, types.uint64, _OUT, types.uint64, _TO))
def route_hashed(keys: Words, shift: Word, owners: Words, width: Word, to: Workers) -> None:
    """The owner of each row: the worker that has the bin of its key. Goes block by block: the processor computes
    several hashes at a time, as long as it looks nothing up between them."""
    bins = np.empty(_BLOCK, np.uint64)
    for start in range(0, keys.size, _BLOCK):
        count = min(keys.size - start, _BLOCK)
        for j in range(count):
            bins[j] = mix(keys[np.uint64(start + j)]) >> shift
        for j in range(count):
            bin = bins[j]
            to[np.uint64(start + j)] = _unpack(owners[(bin << width) >> _6], width, bin)


@kernel(types.void(WORDS, types.uint64, _OUT, types.uint64, _TO))
def route_dense(keys: Words, mask: Word, owners: Words, width: Word, to: Workers) -> None:
    """The same where a key's bin is the key modulo the number of bins."""
    for i in range(keys.size):
        bin = keys[i] & mask
        to[i] = _unpack(owners[(bin << width) >> _6], width, bin)


@kernel(types.void(WORDS, _COUNTS, _OUT, types.int32[::1]))
def fill_slots(keys: Words, workers: Integers, slots: Words, owners: NDArray[np.int32]) -> None:
    """Makes a table of keys with their workers, for `route_apart`. Empty slots have the owner -1."""
    mask = np.uint64(slots.size - 1)
    for i in range(keys.size):
        slot = mix(keys[i]) & mask
        while owners[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = keys[i]
        owners[slot] = workers[i]


@kernel(
    types.void(WORDS, types.boolean, types.uint64, _OUT, types.uint64, WORDS, types.int32[::1], types.uint32, _TO),
)
def route_apart(
    keys: Words,
    dense: bool,
    by: Word,
    workers: Words,
    width: Word,
    slots: Words,
    owners: NDArray[np.int32],
    peers: Word,
    to: Workers,
) -> None:
    """The same; the owner of a key in `slots` is `peers` plus the worker that `owners` names for its slot.

    The processor cannot predict whether a key is in the table if the heaviest keys are. So the first slot, which mostly
    decides, is looked at without a branch.
    """
    mask = np.uint64(slots.size - 1)
    for i in range(keys.size):
        hashed = mix(keys[i])
        bin = keys[i] & by if dense else hashed >> by
        owner = np.int64(_unpack(workers[(bin << width) >> _6], width, bin))
        slot = hashed & mask
        taken = np.int64(owners[slot] >= 0)
        found = np.int64(slots[slot] == keys[i]) & taken
        owner += found * (np.int64(peers) + np.int64(owners[slot]) - owner)
        if taken > found:
            slot = (slot + np.uint64(1)) & mask
            while owners[slot] >= 0:
                if slots[slot] == keys[i]:
                    owner = np.int64(peers) + np.int64(owners[slot])
                    break
                slot = (slot + np.uint64(1)) & mask
        to[i] = owner


@kernel(types.void(WORDS, types.uint64, _TO))
def route_modulo(keys: Words, peers: Word, to: Workers) -> None:
    """The same for a plain exchange: the worker is the upper half of the key's hash, scaled."""
    for i in range(keys.size):
        to[i] = ((mix(keys[i]) >> np.uint64(32)) * peers) >> np.uint64(32)


def as_words(column: Column, name: str) -> Words:
    """An integer column as 64-bit words, without copying where it has them already; TypeError for anything else.

    Dates and time spans are counts of nanoseconds.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "iub":
        return words_of(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":  # whatever the unit: batches may differ in it
        return counts(column, "ns", f"the key {name!r}").view(_WORD)
    raise TypeError(
        f"column {name!r} cannot be a key: it holds {type_name(column)}, and keys of columns "
        "are integers, booleans or dates. In a compiled fold, declare the output that has it to be the 'key', and it "
        "may be anything but floats; else encode it as integers first, or use rows"
    )


def words_of(column: Array) -> Words:
    """Integers or booleans as 64-bit words that compiled code can read."""
    kind, flags = column.dtype, column.flags
    if kind.itemsize == 8 and kind.isnative and flags.c_contiguous and flags.aligned:
        return column if kind == _WORD else column.view(_WORD)
    plain = kind.itemsize == 8 and kind.isnative
    return np.require(column if plain else column.astype(np.int64), requirements=["C", "A"]).view(_WORD)
