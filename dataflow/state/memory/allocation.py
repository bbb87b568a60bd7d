"""Segments of an array of words: how they are given out, grown and given back. Compiled.

A *row* is `stride` words of 64 bits in one array of words; a *segment* is a run of rows that belongs to a bin. Four
numbers say where a segment is (`meta[bin]`): its first row, how many rows it has room for, how many are used, and how
many records have been applied to it. `ctl` is what else the kernels must remember: how far the array has been given
out, and lists of segments that were given back, by size.

With very many bins, 2^`deep` bins of a hash table share a segment, so that where segments begin stays in a cache. The
first two numbers of `meta` are then those of a segment, the others those of a bin: bin `b` is in segment `b >> deep`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numba import njit, types

from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Ctl, Int, Ints, Meta, Words

FIRST, ROOM, USED, RECORDS = 0, 1, 2, 3  # columns of meta
META = 4
GIVEN, LIMIT, AT, BLOCKS, HOME, TURN, DEEP, FREE = range(8)  # entries of ctl; AT: the record that is being applied
SIZES = 72  # sizes of segments: 4, 6, 8, 12, 16, 24, ...
CTL = FREE + SIZES
FULL = -2  # what kernels return when the array of words has no room left
WORDS, META_ARRAY, CTL_ARRAY = types.uint64[::1], types.int32[::1, :], types.int64[::1]  # in signatures of kernels

_0 = np.uint64(0)
_DONTNEED = 4  # on Linux
_madvise = cast(  # as compiled code calls it
    Callable[[int, np.uint64, np.int32], int],
    types.ExternalFunction("madvise", types.intc(types.intp, types.uintp, types.intc)),
)


@njit(inline="always")
def size_of(number: Int) -> Int:
    """The room of the number-th size: 4, 6, 8, 12, 16, ..."""
    return (2 + (number & 1)) << ((number >> 1) + 1)


@njit()
def size_for(rows: Int) -> Int:
    """The number of the least size with room for so many rows."""
    number = 0
    while size_of(number) < rows:
        number += 1
    return number


@njit()
def allocate(words: Words, ctl: Ctl, stride: Int, number: Int, clear: bool) -> Int:
    """The first row of a new segment of a size; FULL if there is no room. Cleared unless the caller fills it."""
    head = ctl[FREE + number]
    room = size_of(number)
    first: Int = head - 1
    if head:
        ctl[FREE + number] = np.int64(words[first * stride])
        if clear:
            for i in range(first * stride, (first + room) * stride):
                words[i] = _0
        else:
            words[first * stride] = _0
        return first
    first = ctl[GIVEN]
    if first + room > ctl[LIMIT]:
        return FULL
    ctl[GIVEN] = first + room
    return first


@njit()
def release(words: Words, ctl: Ctl, stride: Int, first: Int, room: Int) -> None:
    """Gives a segment back."""
    number = size_for(room)
    words[first * stride] = np.uint64(ctl[FREE + number])
    ctl[FREE + number] = first + 1


@njit(inline="always")
def share_of(bin: Int) -> Int:
    """A number of 0 to 63 that differs from bin to bin. Bins with as many rows would otherwise all outgrow their
    segments at one time, and whoever waits would wait for all of them: so each is content with another share."""
    return (np.int64(bin) * 2654435769 >> 26) & 63


@kernel("int64(int64)")
def room_for(rows: Int) -> Int:
    """The room of the least segment for so many rows, for callers in Python."""
    return size_of(size_for(rows))


@kernel("int64(uint64[::1], int64[::1], int64, int64, boolean)")
def allocate_rows(words: Words, ctl: Ctl, stride: Int, rows: Int, clear: bool) -> Int:
    """`allocate` for callers in Python: a segment with room for so many rows."""
    return allocate(words, ctl, stride, size_for(rows), clear)


@kernel("void(uint64[::1], int64[::1], int64, int64, int64)")
def release_rows(words: Words, ctl: Ctl, stride: Int, first: Int, room: Int) -> None:
    """`release` for callers in Python."""
    release(words, ctl, stride, first, room)


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, int64, int64)")
def take_all_back(words: Words, meta: Meta, ctl: Ctl, stride: Int, homes: Int, page: Int) -> Int:
    """If no bin is here: takes everything back that was ever given out, but for the homes, which have zeros then, and
    returns all pages to the system; how many bytes that were, else 0. One call, during which nobody makes a bin."""
    rows = USED if ctl[DEEP] else ROOM  # where bins share segments these stay when their last row has left
    for bin in range(meta.shape[0]):
        if meta[bin, rows]:
            return 0
    size: Int = (ctl[GIVEN] * stride * 8 + page - 1) // page * page
    if size == 0 or _madvise(words.ctypes.data, np.uint64(size), np.int32(_DONTNEED)):
        return 0
    meta[:, :RECORDS] = 0
    ctl[FREE:] = 0
    ctl[GIVEN] = homes
    return size


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, int64[::1], int64[::1])")
def reserve_rows(words: Words, meta: Meta, ctl: Ctl, stride: Int, bins: Ints, counts: Ints) -> Int:
    """Makes room for one more row per entry of `bins`, in segments that fill from the front; FULL if there is none.

    `counts` has a zero for each bin, before and after.
    """
    for i in range(bins.size):
        counts[bins[i]] += 1
    for i in range(bins.size):
        bin = bins[i]
        needed = meta[bin, USED] + counts[bin]
        counts[bin] = 0
        first, room = meta[bin, FIRST], meta[bin, ROOM]
        share = 256 - share_of(bin)  # of 256: as much of its room is used, 0.75 to all of it
        if needed * 256 > room * share:
            number = size_for((needed * 256 + share - 1) // share)
            target = allocate(words, ctl, stride, number, False)
            if target < 0:
                return FULL
            for k in range(meta[bin, USED] * stride):
                words[target * stride + k] = words[first * stride + k]
            if room:
                release(words, ctl, stride, first, room)
            meta[bin, FIRST] = target
            meta[bin, ROOM] = size_of(number)
    return 0
