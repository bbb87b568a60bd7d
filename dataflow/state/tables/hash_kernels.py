"""Hash tables in segments, compiled: open addressing with linear probing inside a segment.

The first word of a row is the hash of its key with the top bit set, 0 where there is none: the top bit of a hash is
known from its bin, so it is free to say "taken", and the hash is a bijection, so the key need not be kept.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from dataflow.columns.hashing import WORDS as READ
from dataflow.columns.hashing import mix
from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Ctl, Flags, Int, Ints, Meta, Truth, Word, Words
from dataflow.state.memory.allocation import (
    AT,
    CTL_ARRAY,
    DEEP,
    FIRST,
    FULL,
    META_ARRAY,
    RECORDS,
    ROOM,
    USED,
    WORDS,
    allocate,
    release,
    share_of,
    size_for,
    size_of,
)  # fmt: skip
from dataflow.state.tables.blocks import BLOCK, fetch_meta, fetch_row

TOP = np.uint64(1 << 63)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_0, _1 = np.uint64(0), np.uint64(1)
_WIDE = np.uint64(2)  # words of a row, above which a second cache line is fetched
_LINE = np.uint64(8)  # words of a cache line
_MARKS = np.uint64(1023)  # as many segments, and one more, can be told apart by their low bits


@njit(inline="always")
def is_full(bin: Int, used: Int, room: Int) -> Truth:
    """Whether a table should grow before it takes another row: at 0.53 to 0.75 of its room."""
    return (used + 1) * 512 > room * (384 - share_of(bin) * 7 // 4)


@njit(inline="always")
def place(hashed: Word, room: Int) -> Int:
    """Where in a segment a hash belongs: its lower half, scaled to the room."""
    return np.int64(place_of(hashed, room))


@njit(inline="always")
def place_of(hashed: Word, room: Int | Word) -> Word:
    """The same, unsigned: loops over records index with unsigned numbers, since an index that may be negative costs
    a comparison and an addition each time (a dense fold was twice as slow)."""
    return ((hashed & _LOW) * np.uint64(room)) >> _32


@njit()
def grow_table(words: Words, meta: Meta, ctl: Ctl, stride: Int, segment: Int) -> Int:
    """Moves a table to a segment half as large again; FULL if there is no room."""
    first, room = meta[segment, FIRST], meta[segment, ROOM]
    number = size_for(room) + 1 if room >= 16 else (size_for(room) + 2 if room else 0)
    target = allocate(words, ctl, stride, number, True)
    if target < 0:
        return target
    wider = size_of(number)
    for row in range(first, first + room):
        tag = words[row * stride]
        if tag:
            slot = place(tag, wider)
            while words[(target + slot) * stride]:
                slot += 1
                if slot == wider:
                    slot = 0
            for k in range(stride):
                words[(target + slot) * stride + k] = words[row * stride + k]
    if room:
        release(words, ctl, stride, first, room)
    meta[segment, FIRST] = target
    meta[segment, ROOM] = wider
    return target


@njit()
def insert(words: Words, meta: Meta, ctl: Ctl, stride: Int, bin: Int, tag: Word) -> Int:
    """The row of a key that is not there yet; FULL if there is no room."""
    deep = ctl[DEEP]
    segment = bin >> deep
    used = np.int64(0)
    for other in range(segment << deep, (segment + 1) << deep):
        used += meta[other, USED]
    if is_full(segment, used, np.int64(meta[segment, ROOM])):
        grown = grow_table(words, meta, ctl, stride, segment)
        if grown < 0:
            return grown
    first, room = meta[segment, FIRST], meta[segment, ROOM]
    slot = place(tag, room)
    while words[(first + slot) * stride]:
        slot += 1
        if slot == room:
            slot = 0
    words[(first + slot) * stride] = tag
    meta[bin, USED] += 1
    row: Int = first + slot
    return row


@njit(inline="always")
def find(words: Words, meta: Meta, stride: Int, segment: Int, tag: Word) -> Int:
    """The row of a key; -1 if it is not there."""
    place = np.uint64(segment)
    first, room, wide = np.uint64(meta[place, FIRST]), np.uint64(meta[place, ROOM]), np.uint64(stride)
    if room == _0:
        return np.int64(-1)
    slot = place_of(tag, room)
    while True:
        word = words[(first + slot) * wide]
        if word == tag:
            return np.int64(first + slot)
        if word == _0:
            return np.int64(-1)
        slot += _1
        if slot == room:
            slot = _0


@njit(inline="always")
def find_or_insert(words: Words, meta: Meta, ctl: Ctl, stride: Int, bin: Int, tag: Word) -> Int:
    """The row of a key, made if need be; FULL if there is no room."""
    row = find(words, meta, stride, bin >> ctl[DEEP], tag)
    if row < 0:
        row = insert(words, meta, ctl, stride, bin, tag)
    return row


@njit()
def remove(words: Words, meta: Meta, ctl: Ctl, stride: Int, bin: Int, row: Int) -> None:
    """Takes a row out and closes the gap, so that no search stops short."""
    segment = bin >> ctl[DEEP]
    first, room = meta[segment, FIRST], meta[segment, ROOM]
    gap = row - first
    slot = gap
    while True:
        slot += 1
        if slot == room:
            slot = 0
        tag = words[(first + slot) * stride]
        if tag == _0:
            break
        home = place(tag, room)
        # A row may fill the gap unless its home lies (cyclically) after the gap. No division: that took longer than
        # all else here.
        from_home, from_gap = slot - home, slot - gap
        if from_home < 0:
            from_home += room
        if from_gap < 0:
            from_gap += room
        if from_home >= from_gap:
            for k in range(stride):
                words[(first + gap) * stride + k] = words[(first + slot) * stride + k]
            gap = slot
    for k in range(stride):
        words[(first + gap) * stride + k] = _0
    meta[bin, USED] -= 1


@njit()
def _count_block(meta: Meta, tags: Words, shift: Word, count: Int, weight: Int) -> None:
    if weight > 1:  # many bins: stores wait for their cache lines one after the other, unless these are there
        for j in range(count):
            fetch_meta(meta, RECORDS, tags[j] >> shift)
    if weight:
        for j in range(count):
            meta[tags[j] >> shift, RECORDS] += weight


@njit()
def fetch_hashed(
    words: Words,
    meta: Meta,
    stride: Int,
    shift: Word,
    deep: Word,
    keys: Words,
    start: Int,
    count: Int,
    tags: Words,
    weight: Int,
) -> None:
    """Hashes a block of keys and has their rows fetched: by the time they are looked for they are near. Counts the
    records of each bin on the way."""
    wide = np.uint64(stride)
    for j in range(count):
        hashed = mix(keys[np.uint64(start + j)])
        tags[j] = hashed
        segment = hashed >> (shift + deep)
        row = np.uint64(meta[segment, FIRST]) + place_of(hashed, meta[segment, ROOM])
        fetch_row(words, np.int64(row * wide))
        if wide > _WIDE:  # the row, or the one behind it that has the key, ends in another cache line
            fetch_row(words, np.int64(row * wide + _LINE))
    _count_block(meta, tags, shift, count, weight)


@njit()
def find_block(words: Words, meta: Meta, stride: Int, shift: Word, tags: Words, count: Int, rows: Ints) -> bool:
    """The rows of a block of hashes, -1 for those that are not there; whether all are. `shift` leads to segments."""
    missing: Truth = False
    for i in range(count):
        hashed = tags[i]
        row = find(words, meta, stride, np.int64(hashed >> shift), hashed | TOP)
        rows[i] = row
        missing |= row < 0
    return not missing


@njit()
def make_block(
    words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, tags: Words, count: Int, rows: Ints
) -> bool:
    """Makes what `find_block` did not find, and finds all again, since rows may have moved; whether there was room.

    Apart from the search because it is rare, and a loop that might call it was measured to be twice as slow.
    """
    for i in range(count):
        hashed = tags[i]
        if find_or_insert(words, meta, ctl, stride, np.int64(hashed >> shift), hashed | TOP) < 0:
            return False
    return find_block(words, meta, stride, shift + np.uint64(ctl[DEEP]), tags, count, rows)


@njit()
def _make_rows(
    words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, tags: Words, count: Int, rows: Ints, moved: Flags
) -> bool:
    """Makes what `find_block` did not find; whether there was room. Tells the segments whose rows have moved."""
    deep = np.uint64(ctl[DEEP])
    for i in range(count):
        if rows[i] >= 0:
            continue
        hashed = tags[i]
        segment = hashed >> (shift + deep)
        first = meta[segment, FIRST]
        rows[i] = find_or_insert(words, meta, ctl, stride, np.int64(hashed >> shift), hashed | TOP)
        if rows[i] < 0:
            return False
        if meta[segment, FIRST] != first:
            moved[segment & _MARKS] = True
    return True


@kernel(types.int64(WORDS, META_ARRAY, CTL_ARRAY, types.int64, types.uint64, READ, types.int64[::1]))
def rows_of(words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, keys: Words, rows: Ints) -> Int:
    """The row of each key, made if need be; FULL if there is no room. Rows may move while this runs, not after.

    A block at a time, whose rows are fetched before they are looked for. To make a row moves others only where their
    segment grows, so only the rows of such segments are looked for again.
    """
    tags = np.empty(BLOCK, np.uint64)
    moved = np.zeros(_MARKS + _1, np.bool_)  # by the low bits of a segment's number
    deep = np.uint64(ctl[DEEP])
    made = False
    for start in range(0, keys.size, BLOCK):
        count = min(keys.size - start, BLOCK)
        fetch_hashed(words, meta, stride, shift, deep, keys, start, count, tags, 1)
        if not find_block(words, meta, stride, shift + deep, tags, count, rows[start : start + count]):
            made = True
            if not _make_rows(words, meta, ctl, stride, shift, tags, count, rows[start : start + count], moved):
                return FULL
    if made and moved.any():
        for i in range(keys.size):
            hashed = mix(keys[i])
            segment = hashed >> (shift + deep)
            if moved[segment & _MARKS]:
                rows[i] = find(words, meta, stride, np.int64(segment), hashed | TOP)
    return 0


@kernel(types.void(WORDS, META_ARRAY, types.int64, types.uint64, READ, types.int64[::1]))
def find_rows(words: Words, meta: Meta, stride: Int, shift: Word, keys: Words, rows: Ints) -> None:
    """The row of each key, -1 for those that are not there. `shift` leads to segments."""
    for i in range(keys.size):
        hashed = mix(keys[i])
        rows[i] = find(words, meta, stride, np.int64(hashed >> shift), hashed | TOP)


@kernel("int64(uint64[::1], int32[::1,:], int64, uint64, uint64[::1], int64[::1])")
def taken_rows(words: Words, meta: Meta, stride: Int, shift: Word, keys: Words, rows: Ints) -> Int:
    """Every row that is taken, with its key; how many. `shift` leads to segments."""
    found = 0
    for segment in range(meta.shape[0]):
        first, room = meta[segment, FIRST], meta[segment, ROOM]
        for row in range(first, first + room):
            tag = words[row * stride]
            if tag:
                keys[found] = (tag & ~TOP) | ((np.uint64(segment) << shift) & TOP)
                rows[found] = row
                found += 1
    return found


@kernel(types.void(WORDS, META_ARRAY, CTL_ARRAY, types.int64, types.uint64, READ))
def remove_all(words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, keys: Words) -> None:
    """Forgets keys; those that are not there do no harm. A block at a time, whose rows are fetched before."""
    tags = np.empty(BLOCK, np.uint64)
    deep = np.uint64(ctl[DEEP])
    for start in range(0, keys.size, BLOCK):
        count = min(keys.size - start, BLOCK)
        fetch_hashed(words, meta, stride, shift, deep, keys, start, count, tags, 0)
        for j in range(count):
            hashed = tags[j]
            row = find(words, meta, stride, np.int64(hashed >> (shift + deep)), hashed | TOP)
            if row >= 0:
                remove(words, meta, ctl, stride, np.int64(hashed >> shift), row)


@kernel(types.void(READ, types.uint64, types.boolean[::1]))
def mark_bins(keys: Words, shift: Word, marked: Flags) -> None:
    """Marks the bin of each key."""
    for i in range(keys.size):
        marked[mix(keys[i]) >> shift] = True


@njit(inline="always")
def _bin_of(tag: Word, shift: Word, segment: Int, deep: Word) -> Word:
    """The bin of a row, whose tag lacks the top bit of its hash: its segment has that."""
    return ((tag & ~TOP) | ((np.uint64(segment) << (shift + np.uint64(deep))) & TOP)) >> shift


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, uint64, int64, int64[::1])")
def list_rows(words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, bin: Int, rows: Ints) -> Int:
    """The rows of one bin of a hash table; how many."""
    deep = ctl[DEEP]
    segment = bin >> deep
    first, room = np.int64(meta[segment, FIRST]), np.int64(meta[segment, ROOM])
    found = 0
    for row in range(first, first + room):
        tag = words[row * stride]
        if tag and _bin_of(tag, shift, segment, deep) == np.uint64(bin):
            rows[found] = row
            found += 1
    return found


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, uint64, int64, int64, uint64[::1])")
def take_rows(words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, bin: Int, start: Int, out: Words) -> Int:
    """Takes rows of a bin out of a segment that it shares, from a place in it on, until `out` is full; the place to go
    on from. Rows that close a gap come from places that were not looked at yet, or were and are of other bins."""
    deep = ctl[DEEP]
    segment = bin >> deep
    first, room = np.int64(meta[segment, FIRST]), np.int64(meta[segment, ROOM])
    slot, taken = start, 0
    while slot < room and (taken + 1) * stride <= out.size:
        tag = words[(first + slot) * stride]
        if tag and _bin_of(tag, shift, segment, deep) == np.uint64(bin):
            for k in range(stride):
                out[taken * stride + k] = words[(first + slot) * stride + k]
            taken += 1
            remove(words, meta, ctl, stride, bin, first + slot)
        else:
            slot += 1
    ctl[AT] = taken
    return slot


@kernel(types.int64(WORDS, META_ARRAY, CTL_ARRAY, types.int64, types.uint64, types.int64, READ))
def put_rows(words: Words, meta: Meta, ctl: Ctl, stride: Int, shift: Word, bin: Int, rows: Words) -> Int:
    """Puts rows into the segment that their bin shares: how many. FULL if there is no room; one that is not of this
    bin, or is there already, ends it."""
    deep = ctl[DEEP]
    segment = bin >> deep
    for i in range(rows.size // stride):
        tag = rows[i * stride]
        if not tag & TOP or _bin_of(tag, shift, segment, deep) != np.uint64(bin):
            return i
        if find(words, meta, stride, segment, tag) >= 0:
            return i
        row = insert(words, meta, ctl, stride, bin, tag)
        if row < 0:
            return FULL
        for k in range(1, stride):
            words[row * stride + k] = rows[i * stride + k]
    return rows.size // stride
