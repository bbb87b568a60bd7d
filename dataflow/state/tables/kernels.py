"""Compiled kernels over segments: allocation and hash tables.

A *row* is `stride` words of 64 bits in one array of words; a *segment* is a run of rows that belongs to a bin. Four
words say where a segment is (`meta[bin]`): its first row, how many rows it has room for, how many are used, and how
many records have been applied to it. `ctl` is what else the kernels must remember: how far the array has been given
out, and lists of segments that were given back, by size.

With very many bins, 2^`deep` bins of a hash table share a segment, so that where segments begin stays in a cache. The
first two words of `meta` are then those of a segment, the others those of a bin: bin `b` is in segment `b >> deep`.

Hash table: open addressing with linear probing inside a bin's segment. The first word of a row is the hash of its key
with the top bit set, 0 where there is none: the top bit of a hash is known from its bin, so it is free to say "taken",
and the hash is a bijection, so the key need not be kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from dataflow.columns.hashing import WORDS, mix
from dataflow.compiled.kernel import kernel

FIRST, ROOM, USED, RECORDS = 0, 1, 2, 3  # columns of meta
META = 4
GIVEN, LIMIT, AT, BLOCKS, HOME, TURN, DEEP, FREE = range(8)  # entries of ctl; AT: the record that is being applied
SIZES = 72  # sizes of segments: 4, 6, 8, 12, 16, 24, ...
CTL = FREE + SIZES
FULL = -2  # what kernels return when the array of words has no room left

TOP = np.uint64(1 << 63)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_0, _1, _6, _63 = (np.uint64(n) for n in (0, 1, 6, 63))
_WORDS, _META, _CTL = types.uint64[::1], types.int32[::1, :], types.int64[::1]
BLOCK = 64  # rows that are fetched from memory together, of a hash table
AHEAD = np.uint64(16)  # rows that are fetched before they are used, of a dense one
NEAR = 1 << 14  # bins whose numbers are near anyway
_COUNTED = 1 << 16  # bins whose records are all counted
_ONE_IN = 61  # blocks, where there are more bins, stands for the others; a prime, since inputs may take turns


def _fetch(typingctx: Any, words: Any, index: Any) -> Any:
    """Asks for the cache line of a word ahead of its use."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(array.data, [args[1]])
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), *[ir.IntType(32)] * 3])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, *(ir.Constant(ir.IntType(32), n) for n in (1, 3, 1))])
        return context.get_dummy_value()

    return types.void(words, types.int64), generate


fetch_row: Any = intrinsic(_fetch)  # called in compiled code, without the first parameter


# Segments


@njit(inline="always")
def size_of(number: Any) -> Any:
    """The room of the number-th size: 4, 6, 8, 12, 16, ..."""
    return (2 + (number & 1)) << ((number >> 1) + 1)


@njit
def size_for(rows: Any) -> Any:
    """The number of the least size with room for so many rows."""
    number = 0
    while size_of(number) < rows:
        number += 1
    return number


@njit
def allocate(words: Any, ctl: Any, stride: Any, number: Any, clear: Any) -> Any:
    """The first row of a new segment of a size; FULL if there is no room. Cleared unless the caller fills it."""
    head = ctl[FREE + number]
    room = size_of(number)
    if head:
        first = head - 1
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


@njit
def release(words: Any, ctl: Any, stride: Any, first: Any, room: Any) -> None:
    """Gives a segment back."""
    number = size_for(room)
    words[first * stride] = np.uint64(ctl[FREE + number])
    ctl[FREE + number] = first + 1


@njit(inline="always")
def share_of(bin: Any) -> Any:
    """A number of 0 to 63 that differs from bin to bin. Bins with as many rows would otherwise all outgrow their
    segments at one time, and whoever waits would wait for all of them: so each is content with another share."""
    return (np.int64(bin) * 2654435769 >> 26) & 63


# Hash tables


@njit(inline="always")
def is_full(bin: Any, used: Any, room: Any) -> Any:
    """Whether a table should grow before it takes another row: at 0.53 to 0.75 of its room."""
    return (used + 1) * 512 > room * (384 - share_of(bin) * 7 // 4)


@njit(inline="always")
def place(hashed: Any, room: Any) -> Any:
    """Where in a segment a hash belongs: its lower half, scaled to the room."""
    return np.int64(place_of(hashed, room))


@njit(inline="always")
def place_of(hashed: Any, room: Any) -> Any:
    """The same, unsigned: loops over records index with unsigned numbers, since an index that may be negative costs
    a comparison and an addition each time (a dense fold was twice as slow)."""
    return ((hashed & _LOW) * np.uint64(room)) >> _32


@njit
def grow_table(words: Any, meta: Any, ctl: Any, stride: Any, segment: Any) -> Any:
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


@njit
def insert(words: Any, meta: Any, ctl: Any, stride: Any, bin: Any, tag: Any) -> Any:
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
    return first + slot


@njit(inline="always")
def find(words: Any, meta: Any, stride: Any, segment: Any, tag: Any) -> Any:
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
def find_or_insert(words: Any, meta: Any, ctl: Any, stride: Any, bin: Any, tag: Any) -> Any:
    """The row of a key, made if need be; FULL if there is no room."""
    row = find(words, meta, stride, bin >> ctl[DEEP], tag)
    if row < 0:
        row = insert(words, meta, ctl, stride, bin, tag)
    return row


@njit
def remove(words: Any, meta: Any, ctl: Any, stride: Any, bin: Any, row: Any) -> None:
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
        # A row may fill the gap unless its home lies (cyclically) after the gap.
        if (slot - home) % room >= (slot - gap) % room:
            for k in range(stride):
                words[(first + gap) * stride + k] = words[(first + slot) * stride + k]
            gap = slot
    for k in range(stride):
        words[(first + gap) * stride + k] = _0
    meta[bin, USED] -= 1


@njit
def weight_of(meta: Any, ctl: Any) -> Any:
    """What a record of the next block counts for. With very many bins each count costs a cache miss, so some blocks
    stand for the others there."""
    if meta.shape[0] <= _COUNTED:
        return 1
    ctl[BLOCKS] += 1
    return _ONE_IN if ctl[BLOCKS] % _ONE_IN == 0 else 0


@njit
def _fetch_meta(meta: Any, number: Any, bin: Any) -> None:
    """Asks for one of a bin's numbers ahead of its use."""
    fetch_row(meta.T.reshape(-1), np.int64(number * meta.shape[0] + np.int64(bin)))


@njit
def _count_block(meta: Any, tags: Any, shift: Any, count: Any, weight: Any) -> None:
    if weight > 1:  # many bins: stores wait for their cache lines one after the other, unless these are there
        for j in range(count):
            _fetch_meta(meta, RECORDS, tags[j] >> shift)
    if weight:
        for j in range(count):
            meta[tags[j] >> shift, RECORDS] += weight


@njit
def count_dense(meta: Any, keys: Any, start: Any, count: Any, weight: Any) -> None:
    """Counts a block of dense keys that stands for others."""
    if weight > 1:
        mask = np.uint64(meta.shape[0] - 1)
        for j in range(count):
            _fetch_meta(meta, RECORDS, keys[np.uint64(start + j)] & mask)
        for j in range(count):
            meta[keys[np.uint64(start + j)] & mask, RECORDS] += weight


@njit
def fetch_hashed(
    words: Any, meta: Any, stride: Any, shift: Any, deep: Any, keys: Any, start: Any, count: Any, tags: Any, weight: Any
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
    _count_block(meta, tags, shift, count, weight)


@njit
def find_block(words: Any, meta: Any, stride: Any, shift: Any, tags: Any, count: Any, rows: Any) -> Any:
    """The rows of a block of hashes, -1 for those that are not there; whether all are. `shift` leads to segments."""
    missing = False
    for i in range(count):
        hashed = tags[i]
        row = find(words, meta, stride, np.int64(hashed >> shift), hashed | TOP)
        rows[i] = row
        missing |= row < 0
    return not missing


@njit
def make_block(words: Any, meta: Any, ctl: Any, stride: Any, shift: Any, tags: Any, count: Any, rows: Any) -> Any:
    """Makes what `find_block` did not find, and finds all again, since rows may have moved; whether there was room.

    Apart from the search because it is rare, and a loop that might call it was measured to be twice as slow.
    """
    for i in range(count):
        hashed = tags[i]
        if find_or_insert(words, meta, ctl, stride, np.int64(hashed >> shift), hashed | TOP) < 0:
            return False
    return find_block(words, meta, stride, shift + np.uint64(ctl[DEEP]), tags, count, rows)


@njit(inline="always")
def has_bit(word: Any, bin: Any) -> Any:
    """Whether a bin's bit is set, in the word of a row of bits where it is."""
    return (word >> (bin & _63)) & _1 != _0


@njit(inline="always")
def home_of(bins: Any, turn: Any, room: Any, bin: Any) -> Any:
    """The first row of a dense bin's home. Bins that are equal modulo 2^turn lie together: they begin at one worker."""
    return ((bin & ((_1 << turn) - _1)) * (bins >> turn) + (bin >> turn)) * room


@kernel(types.int64(_WORDS, _META, _CTL, types.int64, types.uint64, WORDS, types.int64[::1]))
def rows_of(words: Any, meta: Any, ctl: Any, stride: Any, shift: Any, keys: Any, rows: Any) -> Any:
    """The row of each key, made if need be; FULL if there is no room. Rows may move while this runs, not after."""
    for i in range(keys.size):
        hashed = mix(keys[i])
        row = find_or_insert(words, meta, ctl, stride, np.int64(hashed >> shift), hashed | TOP)
        if row < 0:
            return row
        meta[np.int64(hashed >> shift), RECORDS] += 1
    for i in range(keys.size):
        hashed = mix(keys[i])
        rows[i] = find(words, meta, stride, np.int64(hashed >> shift) >> ctl[DEEP], hashed | TOP)
    return 0


@kernel(types.void(_WORDS, _META, types.int64, types.uint64, WORDS, types.int64[::1]))
def find_rows(words: Any, meta: Any, stride: Any, shift: Any, keys: Any, rows: Any) -> None:
    """The row of each key, -1 for those that are not there. `shift` leads to segments."""
    for i in range(keys.size):
        hashed = mix(keys[i])
        rows[i] = find(words, meta, stride, np.int64(hashed >> shift), hashed | TOP)


@kernel("int64(uint64[::1], int32[::1,:], int64, uint64, uint64[::1], int64[::1])")
def taken_rows(words: Any, meta: Any, stride: Any, shift: Any, keys: Any, rows: Any) -> Any:
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


@kernel(types.void(_WORDS, _META, _CTL, types.int64, types.uint64, WORDS))
def remove_all(words: Any, meta: Any, ctl: Any, stride: Any, shift: Any, keys: Any) -> None:
    """Forgets keys; those that are not there do no harm."""
    for i in range(keys.size):
        hashed = mix(keys[i])
        bin = np.int64(hashed >> shift)
        row = find(words, meta, stride, bin >> ctl[DEEP], hashed | TOP)
        if row >= 0:
            remove(words, meta, ctl, stride, bin, row)


@njit(inline="always")
def _bin_of(tag: Any, shift: Any, segment: Any, deep: Any) -> Any:
    """The bin of a row, whose tag lacks the top bit of its hash: its segment has that."""
    return ((tag & ~TOP) | ((np.uint64(segment) << (shift + np.uint64(deep))) & TOP)) >> shift


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, uint64, int64, int64[::1])")
def list_rows(words: Any, meta: Any, ctl: Any, stride: Any, shift: Any, bin: Any, rows: Any) -> Any:
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
def take_rows(words: Any, meta: Any, ctl: Any, stride: Any, shift: Any, bin: Any, start: Any, out: Any) -> Any:
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


@kernel(types.int64(_WORDS, _META, _CTL, types.int64, types.uint64, types.int64, WORDS))
def put_rows(words: Any, meta: Any, ctl: Any, stride: Any, shift: Any, bin: Any, rows: Any) -> Any:
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


@kernel("void(uint64[::1], uint64, boolean)")
def set_bit(bits: Any, bin: Any, value: Any) -> None:
    """Sets or clears a bin's bit."""
    bit = _1 << (bin & _63)
    if value:
        bits[bin >> _6] |= bit
    else:
        bits[bin >> _6] &= ~bit


_BITS = types.uint64[::1]


@kernel(
    types.int64(_WORDS, _META, _CTL, types.int64, WORDS, types.uint64, types.int64, _BITS, _BITS),
)
def make_dense(
    words: Any, meta: Any, ctl: Any, stride: Any, keys: Any, domain: Any, each: Any, made: Any, homes: Any
) -> Any:
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
                first = np.int64(home_of(np.uint64(meta.shape[0]), np.uint64(ctl[TURN]), np.uint64(ctl[HOME]), bin))
                set_bit(homes, bin, True)
            else:
                first = allocate(words, ctl, stride, number, True)
                if first < 0:
                    return FULL
            meta[bin, FIRST] = first
            meta[bin, ROOM] = size_of(number)
            meta[bin, USED] = each
    return -1


@kernel("int64(int64)")
def room_for(rows: Any) -> Any:
    """The room of the least segment for so many rows, for callers in Python."""
    return size_of(size_for(rows))


@kernel("int64(uint64[::1], int64[::1], int64, int64, boolean)")
def allocate_rows(words: Any, ctl: Any, stride: Any, rows: Any, clear: Any) -> Any:
    """`allocate` for callers in Python: a segment with room for so many rows."""
    return allocate(words, ctl, stride, size_for(rows), clear)


@kernel("void(uint64[::1], int64[::1], int64, int64, int64)")
def release_rows(words: Any, ctl: Any, stride: Any, first: Any, room: Any) -> None:
    """`release` for callers in Python."""
    release(words, ctl, stride, first, room)


_madvise: Any = types.ExternalFunction("madvise", types.intc(types.intp, types.uintp, types.intc))
_DONTNEED = 4  # on Linux


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, int64, int64)")
def take_all_back(words: Any, meta: Any, ctl: Any, stride: Any, homes: Any, page: Any) -> Any:
    """If no bin is here: takes everything back that was ever given out, but for the homes, which have zeros then, and
    returns all pages to the system; how many bytes that were, else 0. One call, during which nobody makes a bin."""
    rows = USED if ctl[DEEP] else ROOM  # where bins share segments these stay when their last row has left
    for bin in range(meta.shape[0]):
        if meta[bin, rows]:
            return 0
    size = (ctl[GIVEN] * stride * 8 + page - 1) // page * page
    if size == 0 or _madvise(words.ctypes.data, np.uint64(size), np.int32(_DONTNEED)):
        return 0
    meta[:, :RECORDS] = 0
    ctl[FREE:] = 0
    ctl[GIVEN] = homes
    return size


@kernel("int64(uint64[::1], int32[::1,:], int64[::1], int64, int64[::1], int64[::1])")
def reserve_rows(words: Any, meta: Any, ctl: Any, stride: Any, bins: Any, counts: Any) -> Any:
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
