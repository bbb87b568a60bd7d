"""Dense tables in segments, compiled: a key is its own place, bin = key mod bins, position = key div bins."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from dataflow.columns.hashing import WORDS as READ
from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Ctl, Int, Meta, Truth, Word, Words
from dataflow.state.memory.allocation import (
    CTL_ARRAY,
    FIRST,
    FULL,
    HOME,
    META_ARRAY,
    RECORDS,
    ROOM,
    TURN,
    USED,
    WORDS,
    allocate,
    size_for,
    size_of,
)  # fmt: skip
from dataflow.state.tables.blocks import fetch_meta

_0, _1, _6, _63 = (np.uint64(n) for n in (0, 1, 6, 63))


@njit(inline="always")
def has_bit(word: Word, bin: Word) -> Truth:
    """Whether a bin's bit is set, in the word of a row of bits where it is."""
    bit: Truth = (word >> (bin & _63)) & _1 != _0
    return bit


@njit(inline="always")
def home_of(bins: Word, turn: Word, room: Word, bin: Word) -> Word:
    """The first row of a dense bin's home. Bins that are equal modulo 2^turn lie together: they begin at one worker."""
    return ((bin & ((_1 << turn) - _1)) * (bins >> turn) + (bin >> turn)) * room


@kernel("void(uint64[::1], uint64, boolean)")
def set_bit(bits: Words, bin: Int, value: bool) -> None:
    """Sets or clears a bin's bit."""
    bit = _1 << (bin & _63)
    if value:
        bits[bin >> _6] |= bit
    else:
        bits[bin >> _6] &= ~bit


@njit()
def count_dense(meta: Meta, keys: Words, start: Int, count: Int, weight: Int) -> None:
    """Counts a block of dense keys that stands for others."""
    if weight > 1:
        mask = np.uint64(meta.shape[0] - 1)
        for j in range(count):
            fetch_meta(meta, RECORDS, keys[np.uint64(start + j)] & mask)
        for j in range(count):
            meta[keys[np.uint64(start + j)] & mask, RECORDS] += weight


@kernel(
    types.int64(WORDS, META_ARRAY, CTL_ARRAY, types.int64, READ, types.uint64, types.int64, WORDS, WORDS),
)
def make_dense(
    words: Words, meta: Meta, ctl: Ctl, stride: Int, keys: Words, domain: Word, each: Int, made: Words, homes: Words
) -> Int:
    """Makes the bins of dense keys that are not there yet. -1 if all is well, FULL, or which key is outside."""
    mask = np.uint64(meta.shape[0] - 1)
    for i in range(keys.size):
        if keys[i] >= domain:
            return i
        bin = keys[i] & mask
        if has_bit(homes[bin >> _6], bin):  # a bit per bin stays in the cache, where meta would not
            continue
        if not has_bit(made[bin >> _6], bin):
            set_bit(made, bin, True)
            number = size_for(each)
            if ctl[HOME]:
                bins, turn, room = np.uint64(meta.shape[0]), np.uint64(ctl[TURN]), np.uint64(ctl[HOME])
                first: Int = np.int64(home_of(bins, turn, room, bin))
                set_bit(homes, bin, True)
            else:
                first = allocate(words, ctl, stride, number, True)
                if first < 0:
                    return FULL
            meta[bin, FIRST] = first
            meta[bin, ROOM] = size_of(number)
            meta[bin, USED] = each
    return -1
