"""Pre-images: what rows were like at a cut, kept while a snapshot of them is being written.

A snapshot takes seconds to write, and the stream goes on. To copy a bin before the first record changes it would be
simple, but with keys drawn uniformly the first thousand records touch every bin, and everyone waits for all of them.
So before a row changes, its *block* of sixteen rows is copied to the same place of a second array, once; whoever copies
the bin later takes blocks from there. (A log of single rows was eight times as much work, since nearly every row
changes before its bin is copied.) A record that makes a row notes its hash instead, and the row is left out of the
copy. Only a bin whose segment would move (it grows, a row is removed, it leaves) must be copied before. When three
quarters of a bin's blocks were kept, so are the others, and from then on its records cost nothing more. Compiled.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from dataflow.columns.hashing import WORDS as READ
from dataflow.columns.hashing import mix
from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Bins, Int, Ints, Meta, Touch, Truth, Word, Words
from dataflow.state.memory import prefault
from dataflow.state.memory.allocation import FIRST, GIVEN, LIMIT, META_ARRAY, ROOM, USED, WORDS
from dataflow.state.memory.segments import Head, Segments, reserve
from dataflow.state.tables.blocks import BLOCK, fetch_row
from dataflow.state.tables.hash_kernels import TOP, find, is_full, place_of

FROZEN, WANTED, KEPT = 1, 2, 3  # of a bin: it has not been copied; it must be, before anything else happens; all of
# its blocks were kept, and it may change freely
_AT, _MOST = 0, 1  # entries of `log_ctl`: words that are used, words that there are
_TOGETHER = 8  # hashes in a stretch of the log, all of one bin
_WIDE = 1 + _TOGETHER  # words of a stretch: the number of the bin's stretch before (0: there is none), then hashes
_ROWS = 16  # of a block: a power of two. Few, since one row that changes has all of them copied
_BY_ROW = np.uint64(4)  # from a row to its block
_LINE = 8  # words that come from memory together
_0, _1, _6, _63 = (np.uint64(n) for n in (0, 1, 6, 63))
_LEAST = 1 << 14  # rows that may be made during a snapshot without a bin being copied for it, at least

States = NDArray[np.uint8]
_STATES, _HEADS, _COUNTS = types.uint8[::1], types.int64[::1], types.int32[::1]


@njit(inline="always")
def _note_made(log: Words, log_ctl: Ints, heads: Ints, fills: Meta, bin: Int, tag: Word) -> Truth:
    """A row is about to be made. False if there is no room to say so."""
    if heads[bin] == 0 or fills[bin] == _TOGETHER:
        at: Int = log_ctl[_AT]
        if at + _WIDE > log_ctl[_MOST]:
            return False
        log[at] = np.uint64(heads[bin])
        log_ctl[_AT] = at + _WIDE
        heads[bin] = at // _WIDE + 1
        fills[bin] = 0
    fills[bin] += 1
    log[(heads[bin] - 1) * _WIDE + fills[bin]] = tag
    return True


@njit(inline="always")
def _keep_block(words: Words, stride: Int, row: Int, seen: Words, images: Words) -> Truth:
    """Copies the block of a row; False if that was done before."""
    block = np.uint64(row) >> _BY_ROW
    bit = _1 << (block & _63)
    if seen[block >> _6] & bit:
        return False
    seen[block >> _6] |= bit
    start = np.int64(block) * _ROWS * stride
    for k in range(start, min(start + _ROWS * stride, np.int64(words.size))):
        images[k] = words[k]
    return True


@kernel(types.void(WORDS, META_ARRAY, types.int64, types.int64, WORDS, types.int64, types.int64, WORDS))
def leave_out(words: Words, meta: Meta, stride: Int, bin: Int, log: Words, head: Int, last: Int, copy: Words) -> None:
    """Clears the rows of a copy that were not there at the cut. `last`: how many hashes the newest stretch has."""
    stretch, count, first = head, last, np.int64(meta[bin, FIRST])
    while stretch:
        base = (stretch - 1) * _WIDE
        for at in range(base + 1, base + 1 + count):
            row = find(words, meta, stride, bin, log[at])
            if row >= 0:  # some folds make no rows
                for k in range(stride):
                    copy[(row - first) * stride + k] = _0
        stretch, count = np.int64(log[base]), _TOGETHER


@njit()
def _keep_bin(
    words: Words, meta: Meta, stride: Int, bin: Int,
    states: States, seen: Words, images: Words, log: Words, heads: Ints, fills: Meta,
) -> None:  # fmt: skip
    """Keeps all blocks of a bin, and leaves out what was made since the cut: now it may even move."""
    first, room = np.int64(meta[bin, FIRST]), np.int64(meta[bin, ROOM])
    for row in range(first, first + room, _ROWS):
        _keep_block(words, stride, row, seen, images)
    _keep_block(words, stride, first + room - 1, seen, images)
    if heads[bin]:
        mine = images[first * stride : (first + room) * stride]
        leave_out(words, meta, stride, bin, log, heads[bin], np.int64(fills[bin]), mine)
        heads[bin] = 0
    states[bin] = KEPT


@njit()
def _frozen_tags(
    words: Words, meta: Meta, stride: Int, shift: Word, keys: Words, start: Int, states: States, tags: Words
) -> Int:
    """Hashes a block of keys, keeps the hashes whose bins are frozen, and has their rows fetched; how many."""
    count = 0
    for i in range(start, min(start + BLOCK, keys.size)):
        hashed = mix(keys[i])
        tags[count] = hashed
        count += states[hashed >> shift] == FROZEN  # no branch: in the middle of a snapshot it would go either way
    for j in range(count):
        bin = tags[j] >> shift
        near = np.uint64(meta[bin, FIRST]) + place_of(tags[j], meta[bin, ROOM])
        fetch_row(words, np.int64(near * np.uint64(stride)))
    return count


@njit()
def _find_all(
    words: Words, meta: Meta, stride: Int, shift: Word, tags: Words, count: Int, rows: Ints, bins: Ints
) -> Int:
    """Finds the rows of hashes, and their bins; keeps, of the hashes, those that have none yet; how many rows."""
    found, missing = np.int64(0), np.int64(0)
    for j in range(count):
        tag = tags[j]
        bin = np.int64(tag >> shift)
        row = find(words, meta, stride, bin, tag | TOP)
        rows[found], bins[found] = row, bin
        tags[missing] = tag
        found += row >= 0
        missing += row < 0
    return found


@njit()
def _not_kept(words: Words, stride: Int, rows: Ints, bins: Ints, count: Int, seen: Words, images: Words) -> Int:
    """Of rows that are about to change, those whose blocks are to be kept; how many. Where they are, and where they go,
    is fetched for all before the first is copied."""
    left = np.int64(0)
    for j in range(count):
        block = np.uint64(rows[j]) >> _BY_ROW
        rows[left], bins[left] = rows[j], bins[j]
        left += (seen[block >> _6] >> (block & _63)) & _1 == _0
    for j in range(left):
        start = np.int64(np.uint64(rows[j]) >> _BY_ROW) * _ROWS * stride
        for k in range(start, start + _ROWS * stride, _LINE):
            fetch_row(words, np.int64(k))
            fetch_row(images, np.int64(k))
    return left


@kernel(
    types.int64(
        WORDS, META_ARRAY, types.int64, types.uint64, READ,
        _STATES, WORDS, WORDS, _COUNTS, WORDS, _HEADS, _HEADS, _COUNTS, _COUNTS,
    ),
)  # fmt: skip
def note_hashed(
    words: Words, meta: Meta, stride: Int, shift: Word, keys: Words, states: States, seen: Words, images: Words,
    single: Meta, log: Words, log_ctl: Ints, heads: Ints, fills: Meta, made: Meta,
) -> Int:  # fmt: skip
    """The rows of these keys are about to change, or to be made. How many bins are WANTED: there the segment might
    grow, or the log is full. `single`: by bin, how many more blocks are kept one by one. `made` has a zero for each
    bin, before and after."""
    wanted = 0
    tags, rows, bins = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    some = False
    for start in range(0, keys.size, BLOCK):
        count = _frozen_tags(words, meta, stride, shift, keys, start, states, tags)
        found = _find_all(words, meta, stride, shift, tags, count, rows, bins)
        for j in range(_not_kept(words, stride, rows, bins, found, seen, images)):
            if _keep_block(words, stride, rows[j], seen, images):
                single[bins[j]] -= 1
                if single[bins[j]] == 0:
                    _keep_bin(words, meta, stride, bins[j], states, seen, images, log, heads, fills)
        for j in range(count - found):
            bin = np.int64(tags[j] >> shift)
            if states[bin] != FROZEN:  # wanted since, or kept
                continue
            some = True
            fits = not is_full(bin, np.int64(meta[bin, USED]) + made[bin], np.int64(meta[bin, ROOM]))
            made[bin] += 1
            if not (fits and _note_made(log, log_ctl, heads, fills, bin, tags[j] | TOP)):
                states[bin] = WANTED
                wanted += 1
    if some:
        for i in range(keys.size):
            made[np.int64(mix(keys[i]) >> shift)] = 0
    return wanted


@kernel(
    types.void(
        WORDS, META_ARRAY, types.int64, types.uint64, READ,
        _STATES, WORDS, WORDS, _COUNTS, WORDS, _HEADS, _COUNTS,
    ),
)  # fmt: skip
def note_dense(
    words: Words, meta: Meta, stride: Int, shift: Word, keys: Words, states: States, seen: Words, images: Words,
    single: Meta, log: Words, heads: Ints, fills: Meta,
) -> None:  # fmt: skip
    """The same for dense keys, whose rows are there as soon as their bin is."""
    mask = np.uint64(meta.shape[0] - 1)
    for i in range(keys.size):
        bin = np.int64(keys[i] & mask)
        if states[bin] == FROZEN:
            row = np.int64(meta[bin, FIRST]) + np.int64(keys[i] >> shift)
            if _keep_block(words, stride, row, seen, images):
                single[bin] -= 1
                if single[bin] == 0:
                    _keep_bin(words, meta, stride, bin, states, seen, images, log, heads, fills)


@kernel(types.void(WORDS, types.int64, types.int64, types.int64, WORDS, WORDS, WORDS))
def put_back(words: Words, stride: Int, first: Int, room: Int, seen: Words, images: Words, copy: Words) -> None:
    """A copy of a segment, each block as it was at the cut, or, if it was not kept, as it is."""
    row, end = first, first + room
    while row < end:
        block = np.uint64(row) >> _BY_ROW
        until = min(end, (np.int64(block) + 1) * _ROWS)
        source = images if seen[block >> _6] & (_1 << (block & _63)) else words
        for k in range(row * stride, until * stride):
            copy[k - first * stride] = source[k]
        row = until


class PreImages:
    """Those of one table, whose bins have a segment each. They take as much memory as the table: a thread touches it
    while the table grows, since random records would touch all of it at once, right after the first cut."""

    def __init__(self, segments: Segments, dense: bool, shift: int) -> None:
        self._segments = segments
        self._dense = dense
        self._shift = shift
        self._states: States = np.zeros(segments.bins, np.uint8)
        self._heads: Ints = np.zeros(segments.bins, np.int64)
        self._fills: Meta = np.zeros(segments.bins, np.int32)  # by bin, hashes in its newest stretch
        self._made: Meta = np.zeros(segments.bins, np.int32)
        self._single: Meta = np.zeros(segments.bins, np.int32)  # by bin, how many more blocks are kept one by one
        self._then: Meta = segments.meta.copy(order="F")  # at the cut: where bins lay, and the rows that they used
        self._log_ctl: Ints = np.zeros(2, np.int64)
        rows = int(segments.ctl[LIMIT])
        self._log: Words = _addresses(rows * 2)
        self._images: Words = _addresses(len(segments.words))
        self._seen: Words = _addresses(-(-rows // (64 * _ROWS)))  # a bit for each block
        self._scratch: Words = np.empty(0, np.uint64)
        self._touched = False  # whether a thread touches the images ahead
        self._touch: Touch = lambda bins: None

    def freeze(self, bins: Bins, touch: Touch) -> None:
        """These bins are to be copied as they are now. `touch` has bins copied at once."""
        rows = max(_LEAST, int(self._segments.ctl[GIVEN]))
        self._seen[: -(-rows // (64 * _ROWS))] = 0
        self._log_ctl[:] = 0, min((rows // _TOGETHER + len(bins)) * _WIDE, len(self._log))
        self._heads[:] = 0
        self._then[:] = self._segments.meta
        self._single[:] = self._then[:, ROOM] // _ROWS * 3 // 4 + 1
        self._states[:] = 0
        self._states[bins] = FROZEN
        self._touch = touch

    def keep_ready(self) -> None:
        """Has a thread touch the images ahead, once there are many rows."""
        segments = self._segments
        given = segments.ctl[GIVEN : GIVEN + 1]
        unit = segments.stride * 8
        if not self._touched and int(given[0]) * unit >= prefault.ENOUGH and sys.platform == "linux":
            self._touched = True
            own = prefault.start(self._images, given, unit, self._images.nbytes, mirror=True)
            weakref.finalize(self, own.__setitem__, prefault.STOP, 1)

    def thaw(self) -> None:
        """Nobody wants copies any more."""
        self._states[:] = 0

    def note(self, keys: Words) -> None:
        """The rows of these keys are about to change, or to be made."""
        segments = self._segments
        table = (segments.words, segments.meta, segments.stride, self._shift, keys)
        blocks = (self._states, self._seen, self._images, self._single, self._log)
        if self._dense:
            note_dense(*table, *blocks, self._heads, self._fills)
        elif note_hashed(*table, *blocks, self._log_ctl, self._heads, self._fills, self._made):
            self._touch(np.flatnonzero(self._states == WANTED).tolist())

    def pieces(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        """A bin as it was, in pieces of at most `limit` words: good until the next call."""
        used, words = self.copied(bin)
        room = int(self._then[bin, ROOM])
        for offset in range(0, len(words), limit):
            yield (room, used, 0, offset), words[offset : offset + limit]

    def copied(self, bin: int) -> tuple[int, Words]:
        """The rows that a bin used at the cut, and the words of its segment then: good until the next call. The bin may
        change freely afterwards."""
        segments = self._segments
        first, room = int(self._then[bin, FIRST]), int(self._then[bin, ROOM])
        size, head = room * segments.stride, int(self._heads[bin])
        if size > len(self._scratch):
            self._scratch = np.empty(size + (size >> 1), np.uint64)
        copy = self._scratch[:size]
        put_back(segments.words, segments.stride, first, room, self._seen, self._images, copy)
        if head:
            last = int(self._fills[bin])
            leave_out(segments.words, segments.meta, segments.stride, bin, self._log, head, last, copy)
        self._states[bin] = 0
        return int(self._then[bin, USED]), copy


def _addresses(count: int) -> Words:
    """So many words, or fewer if there are no more addresses; without memory until they are written to."""
    return np.frombuffer(reserve(count * 8, large=False), np.uint64)
