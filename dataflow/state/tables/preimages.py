"""Pre-images: what rows were like at a cut, kept while a snapshot of them is being written.

A snapshot takes seconds to write, and the stream goes on. To copy a bin before the first record changes it would be
simple, but with keys drawn uniformly the first thousand records touch every bin, and everyone waits for all of them.
So before a row changes it is appended to a log, once; whoever copies the bin later puts the rows back as they were. A
record that makes a row notes its key instead, and the row is left out of the copy. Only a bin whose segment would move
(it grows, a row is removed, it leaves) must be copied before. Compiled; a row costs one more look at a bit, and one
write to the end of the log, the first time that it changes after a cut.
"""

from __future__ import annotations

import mmap
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

FROZEN, WANTED = 1, 2  # of a bin: it has not been copied; it must be, before anything else happens
_AT, _MOST = 0, 1  # entries of `log_ctl`: words that are used, words that there are
_TOGETHER = 8  # entries in a stretch of the log, all of one bin: whoever copies a bin waits for memory once for each
_MADE = np.uint64(0xFFFFFFFF)  # instead of a row's place: the row was made after the cut, and the next word is its tag
_0, _1, _6, _63 = (np.uint64(n) for n in (0, 1, 6, 63))
_LEAST = 1 << 14  # rows for which there is room in a log, at least

States = NDArray[np.uint8]
_STATES, _HEADS, _COUNTS = types.uint8[::1], types.int64[::1], types.int32[::1]


@njit(inline="always")
def _next_entry(heads: Ints, fills: Meta, bin: Int, stride: Int) -> Int:
    """Where the next entry of a bin goes, unless its stretch is full."""
    return (heads[bin] - 1) * (1 + _TOGETHER * (1 + stride)) + 1 + fills[bin] * (1 + stride)


@njit(inline="always")
def _append(log: Words, log_ctl: Ints, heads: Ints, fills: Meta, bin: Int, what: Word, stride: Int) -> Int:
    """Begins an entry of a bin: what it is, then `stride` words. Where these go; -1 if the log is full. A bin's entries
    lie in stretches: the number of the stretch before (0: there is none), then the entries."""
    wide = 1 + _TOGETHER * (1 + stride)
    if heads[bin] == 0 or fills[bin] == _TOGETHER:
        at: Int = log_ctl[_AT]
        if at + wide > log_ctl[_MOST]:
            return -1
        log[at] = np.uint64(heads[bin])
        log_ctl[_AT] = at + wide
        heads[bin] = at // wide + 1
        fills[bin] = 0
    at = _next_entry(heads, fills, bin, stride)
    fills[bin] += 1
    log[at] = what
    return at + 1


@njit(inline="always")
def _note_row(
    words: Words, meta: Meta, stride: Int, bin: Int, row: Int,
    states: States, seen: Words, log: Words, log_ctl: Ints, heads: Ints, fills: Meta,
) -> Truth:  # fmt: skip
    """A row is about to change: appends what it is, if that was not done. False if there is no room."""
    bit = _1 << (np.uint64(row) & _63)
    if seen[np.uint64(row) >> _6] & bit:
        return True
    at = _append(log, log_ctl, heads, fills, bin, np.uint64(row - meta[bin, FIRST]), stride)
    if at < 0:
        return False
    seen[np.uint64(row) >> _6] |= bit
    for k in range(stride):
        log[at + k] = words[row * stride + k]
    return True


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
def _not_noted(
    words: Words, meta: Meta, stride: Int, shift: Word, seen: Words, tags: Words, count: Int, rows: Ints
) -> Int:
    """Finds the rows of a block of hashes, and keeps those that have not been noted, and those that are not there (-1);
    how many. Their bits are fetched for all before one is looked at."""
    for j in range(count):
        row = find(words, meta, stride, np.int64(tags[j] >> shift), tags[j] | TOP)
        rows[j] = row
        fetch_row(seen, np.int64(np.uint64(max(row, 0)) >> _6))
    kept = 0
    for j in range(count):
        row = rows[j]
        place = np.uint64(max(row, 0))
        noted = (seen[place >> _6] >> (place & _63)) & _1
        tags[kept], rows[kept] = tags[j], row
        kept += row < 0 or noted == _0
    return kept


@kernel(
    types.int64(
        WORDS, META_ARRAY, types.int64, types.uint64, READ, _STATES, WORDS, WORDS, _HEADS, _HEADS, _COUNTS, _COUNTS
    ),
)  # fmt: skip
def note_hashed(
    words: Words, meta: Meta, stride: Int, shift: Word, keys: Words,
    states: States, seen: Words, log: Words, log_ctl: Ints, heads: Ints, fills: Meta, made: Meta,
) -> Int:  # fmt: skip
    """The rows of these keys are about to change, or to be made. How many bins are WANTED: there the segment might
    grow, or the log is full. `made` has a zero for each bin, before and after."""
    wanted = 0
    tags, rows = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    missing = False
    for start in range(0, keys.size, BLOCK):
        count = _frozen_tags(words, meta, stride, shift, keys, start, states, tags)
        count = _not_noted(words, meta, stride, shift, seen, tags, count, rows)
        for j in range(count):
            bin = np.int64(tags[j] >> shift)
            fetch_row(log, max(np.int64(0), _next_entry(heads, fills, bin, stride)))
        for j in range(count):
            bin, row = np.int64(tags[j] >> shift), rows[j]
            if states[bin] != FROZEN:  # wanted since
                continue
            if row >= 0:
                done = _note_row(words, meta, stride, bin, row, states, seen, log, log_ctl, heads, fills)
            else:
                missing = True
                done = not is_full(bin, np.int64(meta[bin, USED]) + made[bin], np.int64(meta[bin, ROOM]))
                made[bin] += 1
                if done:
                    at = _append(log, log_ctl, heads, fills, bin, _MADE, stride)
                    done = at >= 0
                    if done:
                        log[at] = tags[j] | TOP
            if not done:
                states[bin] = WANTED
                wanted += 1
    if missing:
        for i in range(keys.size):
            made[np.int64(mix(keys[i]) >> shift)] = 0
    return wanted


@kernel(
    types.int64(WORDS, META_ARRAY, types.int64, types.uint64, READ, _STATES, WORDS, WORDS, _HEADS, _HEADS, _COUNTS),
)
def note_dense(
    words: Words, meta: Meta, stride: Int, shift: Word, keys: Words,
    states: States, seen: Words, log: Words, log_ctl: Ints, heads: Ints, fills: Meta,
) -> Int:  # fmt: skip
    """The same for dense keys, whose rows are there as soon as their bin is."""
    wanted = 0
    mask = np.uint64(meta.shape[0] - 1)
    for i in range(keys.size):
        bin = np.int64(keys[i] & mask)
        if states[bin] == FROZEN:
            row = np.int64(meta[bin, FIRST]) + np.int64(keys[i] >> shift)
            if not _note_row(words, meta, stride, bin, row, states, seen, log, log_ctl, heads, fills):
                states[bin] = WANTED
                wanted += 1
    return wanted


@njit()
def _leave_out(words: Words, meta: Meta, stride: Int, bin: Int, log: Words, head: Int, last: Int, copy: Words) -> None:
    """Clears the rows of a copy that were not there at the cut."""
    wide = 1 + _TOGETHER * (1 + stride)
    stretch, count, first = head, last, np.int64(meta[bin, FIRST])
    while stretch:
        base = (stretch - 1) * wide
        for at in range(base + 1, base + 1 + count * (1 + stride), 1 + stride):
            if log[at] == _MADE:
                row = find(words, meta, stride, bin, log[at + 1])
                if row >= 0:  # some folds make no rows
                    for k in range(stride):
                        copy[(row - first) * stride + k] = _0
        stretch, count = np.int64(log[base]), _TOGETHER


@kernel(types.void(WORDS, META_ARRAY, types.int64, types.int64, WORDS, types.int64, types.int64, WORDS))
def put_back(words: Words, meta: Meta, stride: Int, bin: Int, log: Words, head: Int, last: Int, copy: Words) -> None:
    """Makes a copy of a bin's segment what it was at the cut: rows that changed, then rows that were not there. `last`:
    how many entries the newest stretch has."""
    wide = 1 + _TOGETHER * (1 + stride)
    stretch, count, made = head, last, False
    while stretch:
        base = (stretch - 1) * wide
        stretch = np.int64(log[base])
        if stretch:
            fetch_row(log, (stretch - 1) * wide)
        for at in range(base + 1, base + 1 + count * (1 + stride), 1 + stride):
            if log[at] == _MADE:
                made = True
            else:
                for k in range(stride):
                    copy[np.int64(log[at]) * stride + k] = log[at + 1 + k]
        count = _TOGETHER
    if made:
        _leave_out(words, meta, stride, bin, log, head, last, copy)


class PreImages:
    """The log of one table, whose bins have a segment each. Its memory is used again for the next snapshot, and touched
    before the first: in small pages, since it is written from its beginning to its end.
    """

    def __init__(self, segments: Segments, dense: bool, shift: int) -> None:
        self._segments = segments
        self._dense = dense
        self._shift = shift
        self._states: States = np.zeros(segments.bins, np.uint8)
        self._heads: Ints = np.zeros(segments.bins, np.int64)
        self._fills: Meta = np.zeros(segments.bins, np.int32)  # by bin, entries in its newest stretch
        self._made: Meta = np.zeros(segments.bins, np.int32)
        self._used: Meta = np.zeros(segments.bins, np.int32)  # by bin, rows that were used at the cut
        self._log_ctl: Ints = np.zeros(2, np.int64)
        rows = int(segments.ctl[LIMIT])
        self._log: Words = _addresses(rows * (2 + segments.stride))
        self._touched = False  # whether a thread touches the log ahead
        self._seen: Words = _addresses(-(-rows // 64))  # a bit for each row
        self._ready = 0  # rows of which this memory has been touched
        self._scratch: Words = np.empty(0, np.uint64)
        self._touch: Touch = lambda bins: None

    def freeze(self, bins: Bins, touch: Touch) -> None:
        """These bins are to be copied as they are now. `touch` has bins copied at once."""
        rows = max(_LEAST, int(self._segments.ctl[GIVEN]))
        wide = 1 + _TOGETHER * (1 + self._segments.stride)
        most = ((rows + (rows >> 2)) // _TOGETHER + len(bins)) * wide
        self._seen[: -(-rows // 64)] = 0
        self._log_ctl[:] = 0, min(most, len(self._log))
        self._heads[:] = 0
        self._used[:] = self._segments.meta[:, USED]
        self._states[:] = 0
        self._states[bins] = FROZEN
        self._touch = touch

    def keep_ready(self) -> None:
        """Touches memory for bits of rows that have been given out: random records would touch all of it at once, right
        after the first cut. Costs a comparison, and a page for each 32768 rows. Once there are many rows, a thread
        touches the log ahead."""
        given = int(self._segments.ctl[GIVEN])
        if not self._touched and given * self._segments.stride * 8 >= prefault.ENOUGH and sys.platform == "linux":
            self._touched = True
            own = prefault.start(self._log, self._log_ctl[_AT : _AT + 1], 8, self._log.nbytes)
            weakref.finalize(self, own.__setitem__, prefault.STOP, 1)
        while self._ready < given:
            self._seen[self._ready // 64] = 0
            self._ready += mmap.PAGESIZE * 8

    def thaw(self) -> None:
        """Nobody wants copies any more."""
        self._states[:] = 0

    def note(self, keys: Words) -> None:
        """The rows of these keys are about to change, or to be made."""
        segments = self._segments
        log = (self._states, self._seen, self._log, self._log_ctl, self._heads, self._fills)
        if self._dense:
            wanted = note_dense(segments.words, segments.meta, segments.stride, self._shift, keys, *log)
        else:
            wanted = note_hashed(segments.words, segments.meta, segments.stride, self._shift, keys, *log, self._made)
        if wanted:
            self._touch(np.flatnonzero(self._states == WANTED).tolist())

    def pieces(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        """A bin as it was, in pieces of at most `limit` words: good until the next call."""
        used, words = self.copied(bin)
        room = int(self._segments.meta[bin, ROOM])
        for offset in range(0, len(words), limit):
            yield (room, used, 0, offset), words[offset : offset + limit]

    def copied(self, bin: int) -> tuple[int, Words]:
        """The rows that a bin used at the cut, and the words of its segment then: good until the next call. The bin may
        change freely afterwards."""
        segments = self._segments
        contents, head = segments.contents(bin), int(self._heads[bin])
        if head:
            if len(contents) > len(self._scratch):
                self._scratch = np.empty(len(contents) + (len(contents) >> 1), np.uint64)
            copy = self._scratch[: len(contents)]
            copy[:] = contents
            last = int(self._fills[bin])
            put_back(segments.words, segments.meta, segments.stride, bin, self._log, head, last, copy)
            contents = copy
        self._states[bin] = 0
        return int(self._used[bin]), contents


def _addresses(count: int) -> Words:
    """So many words, or fewer if there are no more addresses; without memory until they are written to."""
    return np.frombuffer(reserve(count * 8, large=False), np.uint64)
