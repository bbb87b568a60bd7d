"""Segments of one large array: where tables and queues keep what belongs to a bin.

The array is a reservation of addresses, not of memory: the system gives a page when it is first written to, so the
array never moves or grows, segments start empty, and 2^20 bins cost nothing until there is something in them. Large
segments whose bins have left keep their memory for a while (see `reuse`), and then return it to the system.
"""

from __future__ import annotations

import gc
import mmap
import sys
import weakref
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from dataflow.state.arrays import Bins, Ctl, Flags, Ints, Meta, Touch, Words
from dataflow.state.memory import allocation, prefault
from dataflow.state.memory.reuse import FreePlace, FreePlaces

RESERVED = 1 << 38  # bytes of addresses per array: 256 GiB of them are free, and memory is spent only when touched
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_MOST_ROWS = (1 << 31) - 1  # rows are numbered in 32 bits
_LARGE = 1 << 16  # bytes from which on pages are given back
_MUCH = 1 << 20  # bytes that were given out, for it to matter whether they are given back
_HUGE = 1 << 21  # of a large page: a segment of this size and more is not written to once its pages are given back


class OutOfMemory(MemoryError):
    """A table has outgrown its reservation."""


def reserve(size: int, large: bool = True) -> mmap.mmap:
    """Addresses without memory; large pages where the system offers them (a table is read at random), or small ones:
    where memory must first come from a host, who first writes to a large one waits for five milliseconds."""
    try:
        mapped = _map(size)
    except OSError:
        # There are addresses for 500 arrays or so. Dataflows that are over may hold them still: they are cycles of
        # objects, and the collector, which counts objects and not addresses, has had no reason to look.
        gc.collect()
        mapped = _map_what_there_is(size)
    advice = getattr(mmap, "MADV_HUGEPAGE" if large else "MADV_NOHUGEPAGE", None)
    if advice is not None:
        mapped.madvise(advice)
    return mapped


def _map(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)


def _map_what_there_is(size: int) -> mmap.mmap:
    """For a system that limits addresses (ulimit -v): half as many, or half of that, and so on."""
    try:
        return _map(size)
    except OSError:
        if size <= 1 << 24:
            raise
        return _map_what_there_is(size // 2)


Head = tuple[int, int, int, int]
"""Of a piece of a bin: how many rows the bin's segment has room for, how many it uses, its fourth number of `meta`, and
where in the segment, in words, the piece belongs."""


class Part:
    """One kind of what belongs to bins and travels with them: rows in segments. Stores consist of parts."""

    segments: Segments

    @property
    def bins(self) -> int:
        """How many bins there are, here and elsewhere."""
        return self.segments.bins

    def has(self, bins: Bins) -> Flags:
        """Whether there is anything of each of these bins, be it an empty segment."""
        return self.segments.has(bins)

    def sizes_of(self, first: int, end: int) -> Ints:
        """How many bytes of each bin, from one number up to another, would travel."""
        return self.segments.sizes_of(first, end)

    def prefault_ahead(self) -> None:
        """Starts prefaulting once there is much memory. Stores call this for each run; later calls cost nothing."""
        self.segments.prefault_ahead()

    def prefault(self, size: int) -> None:
        """Touches so many bytes of memory before they are needed."""
        self.segments.prefault(size)

    def describe(self) -> Words:
        """What the part must know, where a bin arrives, besides its rows: words that travel with the first piece."""
        return np.empty(0, np.uint64)

    def adopt(self, description: Words) -> None:
        """Takes over the description of a bin that arrives; TypeError if it contradicts what is here."""

    def leave(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        """Takes a bin out, in pieces of at most `limit` words. Its segment is given back after the last."""
        yield from self.copy(bin, limit)
        self.segments.clear(bin)

    def copy(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        """The same pieces of a bin that stays. They are views: good until the bin changes."""
        segments = self.segments
        rows = segments.contents(bin)
        room, used, extra = segments.meta[bin, allocation.ROOM :].tolist()
        extra = extra if segments.packed else 0  # a count of what was applied here, which stays here
        for offset in range(0, len(rows), limit):
            yield (room, used, extra, offset), rows[offset : offset + limit]

    def install(self, bin: int, head: Head, words: Words) -> bool:
        """Installs a piece; whether the bin is complete. Pieces come in any order; the first makes room for all."""
        segments = self.segments
        room, used, extra, offset = head
        length = (used if segments.packed else room) * segments.stride
        if offset + len(words) > length:
            raise ValueError(f"a piece of bin {bin} does not fit into its segment of {length} words")
        if bin not in segments.missing:
            segments.make(bin, room, used)
            segments.missing[bin], segments.offsets[bin] = length, set()
            if segments.packed:
                segments.meta[bin, allocation.RECORDS] = extra  # else it counts what is applied here
        if offset in segments.offsets[bin]:
            raise ValueError(f"a piece of bin {bin}, of the words from {offset} on, comes a second time")
        segments.offsets[bin].add(offset)
        segments.contents(bin)[offset : offset + len(words)] = words
        segments.missing[bin] -= len(words)
        if segments.missing[bin]:
            return False
        del segments.missing[bin], segments.offsets[bin]
        return True

    def freeze(self, bins: Bins, touch: Touch) -> None:
        """These bins are to be copied (`copy_frozen`) as they are now: whatever would change one of them otherwise than
        through the store's table calls `touch` before."""

    def thaw(self) -> None:
        """All have been copied, or nobody wants them any more."""

    def copy_frozen(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        """The pieces of a frozen bin, as `copy` would have given them when it was frozen: good until the next call."""
        return self.copy(bin, limit)

    def departed(self, bin: int) -> None:
        """Called when a bin has left: whoever knows more of it than its rows forgets that."""

    def arrived(self, bin: int) -> None:
        """Called when a bin is complete: whoever knows more of it than its rows finds that out."""


class Segments:
    """Rows of `stride` words for each of `bins` bins, in one array. See `allocation` for the layout.

    `packed`: the rows that are used are the first ones of a segment, and only they need to travel.
    """

    def __init__(self, bins: int, stride: int, packed: bool = False, reserved: int = RESERVED) -> None:
        self.bins = bins
        self.stride = stride
        self.packed = packed
        self.missing: dict[int, int] = {}  # of bins that are arriving: how many words have not
        self.offsets: dict[int, set[int]] = {}  # of the same bins, unless they share segments: where pieces have come
        self._counts: Ints | None = None  # scratch of `reserve`
        self._mapped = reserve(reserved)
        self.words: Words = np.frombuffer(self._mapped, np.uint64)
        # Read at random, like the rows: large pages here, too. Each of the four numbers lies in a stretch of its own,
        # 4 bytes a bin, since loops need two or three of them: with 2^20 bins a cache should hold what they read.
        self._about = reserve(bins * allocation.META * 4)
        self.meta: Meta = np.frombuffer(self._about, np.int32).reshape(bins, allocation.META, order="F")
        self.ctl: Ctl = np.zeros(allocation.CTL, np.int64)
        self.ctl[allocation.LIMIT] = min(len(self.words) // stride, _MOST_ROWS)
        self._touched = False  # whether a thread touches memory ahead
        self._ready = 0  # bytes that were touched before such a thread began
        self.deep = 0  # 2^deep bins share a segment
        self._homes = 0  # the first so many rows are homes: places that belong to one bin each
        self._kept: dict[int, int] = {}  # of bins that have left their homes, if these are small: where they are
        self._free_places = FreePlaces(self._let_go, self._settle)  # what bins left behind, if it is large
        self._cold: dict[int, list[int]] = {}  # by room, very large places that no bin has, without memory

    def contents(self, bin: int) -> Words:
        """The words of a bin's segment that mean something, as they lie."""
        first, room, used, _ = self.meta[bin].tolist()
        return self.words[first * self.stride : (first + (used if self.packed else room)) * self.stride]

    def reserve(self, bins: Ints) -> None:
        """Makes room for one more row per entry of `bins` (where packed)."""
        if self._counts is None:
            self._counts = np.zeros(self.bins, np.int64)
        if allocation.reserve_rows(self.words, self.meta, self.ctl, self.stride, bins, self._counts) < 0:
            raise self.full()

    def prefault_ahead(self) -> None:
        """Starts the thread that prefaults, once there is much memory (`prefault.ENOUGH`)."""
        unit = self.stride * 8
        given = int(self.ctl[allocation.GIVEN])  # with homes: where these are much, what arrives will be, too
        if self._touched or given * unit < prefault.ENOUGH or sys.platform != "linux":
            return
        self._touched = True
        size = int(self.ctl[allocation.LIMIT]) * unit
        own = prefault.start(self.words, self.ctl[allocation.GIVEN : allocation.GIVEN + 1], unit, size, self._ready)
        weakref.finalize(self, own.__setitem__, prefault.STOP, 1)

    def prefault(self, size: int) -> None:
        """Touches so many bytes beyond what is given out now, and not while records wait for them: for a run that is
        measured, or one whose state will grow to a known size."""
        unit = self.stride * 8
        until = min(int(self.ctl[allocation.GIVEN]) * unit + size, int(self.ctl[allocation.LIMIT]) * unit)
        if sys.platform == "linux":
            prefault.touch(self.words, self.ctl[allocation.GIVEN : allocation.GIVEN + 1], unit, until)
            self._ready = until

    def share(self, deep: int) -> None:
        """Before anything is given out: 2^deep bins are to share each segment."""
        self.deep = deep
        self.ctl[allocation.DEEP] = deep

    def reserve_homes(self, rows: int) -> bool:
        """Before anything is given out: the first so many rows are homes, which the caller gives to bins itself. False
        if these would be too large a part of all."""
        if rows > int(self.ctl[allocation.LIMIT]) // 2:
            return False
        self._homes = rows
        self.ctl[allocation.GIVEN] = rows
        return True

    def is_at_home(self, bin: int) -> bool:
        """Whether a bin lies at its home, rather than at a place that was free."""
        return bool(self.meta[bin, allocation.ROOM]) and int(self.meta[bin, allocation.FIRST]) < self._homes

    def clear(self, bin: int) -> None:
        """Gives the segment of a bin back. A bin's home is kept for it and cleared, unless its pages went back to the
        system: when such a bin returns, other pages will have been prefaulted."""
        first, room = self.meta[bin, :2].tolist()
        self.meta[bin, : allocation.RECORDS] = 0
        home, size = first < self._homes, room * self.stride * 8
        if size >= _LARGE:
            place = FreePlace(first, room, size, bin if home else None)
            if not self._free_places.keep(place):
                self._let_go(place)
            elif home:
                self.words[first * self.stride : (first + room) * self.stride] = 0
        elif room and home:
            self.words[first * self.stride : (first + room) * self.stride] = 0
            self._kept[bin] = first
        elif room:
            allocation.release_rows(self.words, self.ctl, self.stride, first, room)
        if self.packed:
            self.meta[bin, allocation.RECORDS] = 0
        self.watch()

    def watch(self) -> None:
        """Called when a bin has left. When all have, all memory returns to the system after a while, also that of
        segments which bins have outgrown."""
        if int(self.ctl[allocation.GIVEN]) * self.stride * 8 >= _MUCH:
            self._free_places.watch()

    def make(self, bin: int, room: int, used: int) -> None:
        """Makes a segment for a bin that has none, for the caller to fill."""
        if self.meta[bin, allocation.ROOM]:
            raise AssertionError(f"bin {bin} is here already")
        if allocation.room_for(room) != room:
            raise ValueError(f"no segment has room for {room} rows exactly")
        if not 0 <= used <= room:
            raise ValueError(f"a bin cannot use {used} rows of a segment of {room}")
        with self._free_places.lock:
            first = self._kept.pop(bin) if bin in self._kept else self._free_places.take(room, bin)
            if first is None and (cold := self._cold.get(room)):
                first = cold.pop()
            if first is None:
                first = int(allocation.allocate_rows(self.words, self.ctl, self.stride, room, False))
                if first < 0:
                    raise self.full()
            self.meta[bin, : allocation.RECORDS] = (first, room, used)

    def full(self) -> OutOfMemory:
        """The error to raise when a kernel returns FULL."""
        return OutOfMemory(f"a table has outgrown its {int(self.ctl[allocation.LIMIT])} rows: use more workers")

    def let_go(self) -> None:
        """Returns all memory to the system now that was kept for bins that arrive."""
        self._free_places.clear()

    def _let_go(self, place: FreePlace) -> None:
        """Returns the pages that lie wholly within a large place to the system; they read as zeros from then on."""
        if place.bin is not None and self.is_at_home(place.bin):
            return  # somebody made the bin anew where it was: nobody should, but its state is not for us to lose
        low = place.first * self.stride * 8
        start, end = -(-low // mmap.PAGESIZE) * mmap.PAGESIZE, (low + place.size) // mmap.PAGESIZE * mmap.PAGESIZE
        self._mapped.madvise(mmap.MADV_DONTNEED, start, end - start)
        if place.bin is not None:
            self.words[low // 8 : start // 8] = 0
            self.words[end // 8 : (low + place.size) // 8] = 0
        elif place.size < _HUGE:
            allocation.release_rows(self.words, self.ctl, self.stride, place.first, place.room)  # holds Python's lock
        else:
            self._cold.setdefault(place.room, []).append(place.first)

    def _settle(self) -> None:
        """Nothing has left for a while, and nothing is kept: if no bin is here either, no memory need be."""
        if sys.platform != "linux":
            return
        if allocation.take_all_back(self.words, self.meta, self.ctl, self.stride, self._homes, mmap.PAGESIZE):
            self._cold.clear()

    def has(self, bins: Bins) -> Flags:
        """Whether there is anything of each of these bins, be it an empty segment."""
        found: Flags = self.meta[bins, allocation.USED if self.deep else allocation.ROOM] != 0
        return found

    @property
    def sizes(self) -> Ints:
        """How many bytes of each bin would travel."""
        return self.sizes_of(0, self.bins)

    def sizes_of(self, first: int, end: int) -> Ints:
        """The same of the bins from one number up to another."""
        rows = self.meta[first:end, allocation.USED if self.packed or self.deep else allocation.ROOM].astype(np.int64)
        sizes: Ints = rows * (self.stride * 8)
        return sizes

    def __sizeof__(self) -> int:
        at_home = self.meta[:, allocation.FIRST] < self._homes
        used = int(self.meta[at_home, allocation.ROOM].sum())
        return (int(self.ctl[allocation.GIVEN]) - self._homes + used) * self.stride * 8

    def __reduce__(self) -> NoReturn:
        raise TypeError("segments do not leave their process; bins do")
