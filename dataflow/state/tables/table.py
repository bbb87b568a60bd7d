"""Keyed state in segments, one per bin: hashed for any integer keys, dense for integers from 0 to a known end.

Costs: a batch is applied in one pass, whatever the number of bins; a bin leaves and arrives as one contiguous copy, or
row by row where very many bins share segments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dataflow.columns.batch import Array, Columns
from dataflow.columns.hashing import mix_all, unmix_all
from dataflow.columns.schema import Schema, state_dtype
from dataflow.state.arrays import Bins, Flags, Ints, Meta, Touch, Words
from dataflow.state.memory import allocation
from dataflow.state.memory.segments import Head, Part, Segments
from dataflow.state.tables import blocks, dense_kernels, hash_kernels
from dataflow.state.tables.preimages import PreImages

if TYPE_CHECKING:
    from dataflow.state.tables.leaders import Leaders

MOST = blocks.NEAR  # segments of a hash table; two at least, since a row's tag lacks the top bit of its hash


@dataclass(frozen=True, slots=True)
class Dense:
    """Keys are the integers from 0 up to `domain`, most of which occur: no hashing. `workers`: bins that are equal
    modulo that number begin at one worker."""

    domain: int
    workers: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.domain, bool) or not isinstance(self.domain, int | np.integer):
            raise TypeError(f"a dense domain is a number of keys, and so an integer, not {self.domain!r}")
        if not 0 < self.domain <= 1 << 40:
            raise ValueError(f"a dense domain has between 1 and 2^40 keys, not {self.domain}")


class Table(Part, ABC):
    """State by key in `bins` segments. `entries` are the rows as records; a row moves when its bin grows."""

    dense: bool
    single = False  # whether each key is on its own, rather than in a bin with others
    shift: int  # from a hash (or a dense key) to its bin (or its position)
    reach: int  # from a hash to its segment

    def __init__(self, bins: int, schema: Schema) -> None:
        if type(bins) is not int or bins < 2 or bins & (bins - 1) or bins > 1 << 20:
            raise ValueError(f"the number of bins must be a power of two from 2 to 2^20, not {bins!r}")
        self.dtype = state_dtype(schema, tagged=not self.dense)
        self.segments = Segments(bins, self.dtype.itemsize // 8)
        self.words, self.meta, self.ctl = self.segments.words, self.segments.meta, self.segments.ctl
        self.stride = self.segments.stride
        self.entries: NDArray[np.void] = self.words[: len(self.words) // self.stride * self.stride].view(self.dtype)
        self.full = self.segments.full
        self._changed: NDArray[np.bool_] | None = None  # by bin, once somebody tracks changes
        self.homes: Words = np.zeros(0, np.uint64)  # of a dense table: a bit for each bin that lies at home
        self._leaders: dict[str, Leaders] = {}  # by field
        self._touch: Touch | None = None  # while some bins are frozen for a snapshot
        self._images: PreImages | None = None  # if rows that change are kept meanwhile, rather than bins copied

    def departed(self, bin: int) -> None:
        self.rows_changed(np.array([bin]))

    def arrived(self, bin: int) -> None:
        self.rows_changed(np.array([bin]))

    def rows_changed(self, bins: Bins) -> None:
        """Rows of these bins were installed or removed as a whole, and not by records: leaders must look again."""
        for leaders in self._leaders.values():
            leaders.doubt(bins)

    def leaders(self, field: str) -> Leaders:
        """Adds to an integer field, and knows who has the largest value. The same object for each call."""
        if field not in self._leaders:
            from dataflow.state.tables.leaders import Leaders  # which compiles: most tables do without

            self._leaders[field] = Leaders(self, field)
        return self._leaders[field]

    @property
    def key_count(self) -> int:
        """How many keys have state. O(bins)."""
        return int(self.meta[:, allocation.USED].sum())

    @property
    def records(self) -> Meta:
        """By bin, how many records were applied here so far, in 32 bits, which come round."""
        counted: Meta = self.meta[:, allocation.RECORDS]
        return counted

    # Which bins have changed

    def track_changes(self, at_first: Bins) -> None:
        """From now on `take_changed` says which bins have changed: these, at first."""
        if self._changed is None:
            self._changed = np.zeros(self.bins, bool)
            self._changed[at_first] = True

    def take_changed(self) -> NDArray[np.intp]:
        """The bins that have changed since this was last asked."""
        if self._changed is None:
            raise AssertionError("nobody asked this table to track changes")
        changed = np.flatnonzero(self._changed)
        self._changed[changed] = False
        return changed

    def mark(self, keys: Words) -> None:
        """Marks the bins of these keys as changed: their state is about to be. One pass over the keys if anybody tracks
        changes, else nothing."""
        if self._changed is not None:
            self.mark_keys(keys, self._changed)
        if self._images is not None:
            self._images.keep_ready()
            if self._touch is not None:
                self._images.note(keys)
        elif self._touch is not None:
            self._touch(np.unique(self.bins_of(keys)).tolist())

    def mark_keys(self, keys: Words, marked: Flags) -> None:
        """Marks the bin of each key."""
        marked[self.bins_of(keys)] = True

    def mark_bin(self, bin: int) -> None:
        """Marks one bin as changed."""
        if self._changed is not None:
            self._changed[bin] = True
        if self._touch is not None:
            self._touch([bin])

    # A snapshot that is being written

    def keep_images(self) -> None:
        """Whoever marks keys only changes their rows or makes them: bins need not be copied before."""
        if not self.segments.deep and self._images is None:
            self._images = PreImages(self.segments, self.dense, self.shift)

    def freeze(self, bins: Bins, touch: Touch) -> None:
        """`touch` has a bin copied before it changes in a way that cannot be undone."""
        self._touch = touch
        if self._images is not None:
            self._images.freeze(bins, touch)

    def thaw(self) -> None:
        """Nothing is frozen any more."""
        self._touch = None
        if self._images is not None:
            self._images.thaw()

    def copy_frozen(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        """The pieces of a frozen bin as `copy` would have given them then: good until the next call."""
        return self.copy(bin, limit) if self._images is None else self._images.pieces(bin, limit)

    @property
    def fields(self) -> list[str]:
        """The names of the state's fields."""
        return [name for name in self.dtype.names or () if not name.startswith("_")]

    def __getitem__(self, field: str) -> Array:
        """A field of all rows: index it with what `rows` returned."""
        return self.entries[field]

    @abstractmethod
    def bins_of(self, keys: Words) -> Ints:
        """The bin of each key."""

    @abstractmethod
    def rows(self, keys: Words) -> Ints:
        """The row of each key, made if need be. Good until the next call that may make rows."""

    @abstractmethod
    def locate(self, key: Words, row: Ints, create: bool) -> bool:
        """The row of one key; whether there is one."""

    def forget(self, keys: Words) -> None:
        """Removes keys and their state."""
        self.remove(keys)
        if self._leaders:
            self.rows_changed(self.bins_of(keys))

    @abstractmethod
    def remove(self, keys: Words) -> None:
        """Removes keys without telling the leaders: for leaders, who know."""

    @property
    @abstractmethod
    def spread(self) -> int:
        """By how many bits a segment's number is shifted in a hash, or a position in a dense key."""

    @abstractmethod
    def scan(self) -> tuple[Words, Ints]:
        """Every key that has state, and its row: to read. To change state, ask `rows`, which marks what changes."""

    @abstractmethod
    def scan_bin(self, bin: int) -> tuple[Words, Ints]:
        """Every key of a bin, and its row. O(segment)."""

    def read(self) -> Columns:
        """All state as columns: `key` and the fields. O(state): for tests, snapshots and reports."""
        keys, rows = self.scan()
        columns = {field: self.entries[field][rows] for field in self.fields if self.dtype[field].subdtype is None}
        return Columns({"key": keys.view(np.int64), **columns})

    @abstractmethod
    def anchors(self) -> Words:
        """One key for each bin that has something in it: to post-date something for the bin as a whole."""

    @property
    def occupied(self) -> NDArray[np.intp]:
        """The bins that have something in them."""
        return np.flatnonzero(self.has(np.arange(self.bins)))


class HashTable(Table):
    """Keys are integers of 64 bits, whichever occur.

    Above `MOST` bins several share a segment: where a segment begins must be looked up for each record, and of so many
    that is no cache miss. Such a bin travels row by row; below, as it lies.
    """

    dense = False

    def __init__(self, bins: int, schema: Schema) -> None:
        super().__init__(bins, schema)
        self.shift = 64 - (bins.bit_length() - 1)
        self.segments.share(max(0, (bins // MOST).bit_length() - 1))
        self.reach = self.shift + self.segments.deep  # from a hash to its segment

    def leave(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        if not self.segments.deep:
            yield from super().leave(bin, limit)
            return
        used, offset, place, each = int(self.meta[bin, allocation.USED]), 0, 0, max(1, limit // self.stride)
        while left := int(self.meta[bin, allocation.USED]):
            rows = np.empty(min(each, left) * self.stride, np.uint64)
            place = int(
                hash_kernels.take_rows(self.words, self.meta, self.ctl, self.stride, self.shift, bin, place, rows)
            )
            taken = int(self.ctl[allocation.AT]) * self.stride
            if taken:
                yield (0, used, 0, offset), rows[:taken]
                offset += taken
            else:
                place = 0  # others have closed gaps or made the segment grow meanwhile: some are further to the front
        self.segments.watch()

    def copy(self, bin: int, limit: int) -> Iterator[tuple[Head, Words]]:
        if not self.segments.deep:
            yield from super().copy(bin, limit)
            return
        rows = self._rows_of_bin(bin)
        each = max(1, limit // self.stride)
        table = self.words[: len(self.entries) * self.stride].reshape(-1, self.stride)
        for start in range(0, len(rows), each):
            yield (0, len(rows), 0, start * self.stride), table[rows[start : start + each]].reshape(-1)

    def _rows_of_bin(self, bin: int) -> Ints:
        rows = np.empty(int(self.meta[bin, allocation.USED]), np.int64)
        hash_kernels.list_rows(self.words, self.meta, self.ctl, self.stride, self.shift, bin, rows)
        return rows

    def install(self, bin: int, head: Head, words: Words) -> bool:
        if not self.segments.deep:
            return super().install(bin, head, words)
        _, used, _, offset = head
        length = used * self.stride
        if offset + len(words) > length or len(words) % self.stride:
            raise ValueError(f"a piece of bin {bin} does not fit into its {used} rows")
        missing = self.segments.missing
        if bin not in missing:
            if self.meta[bin, allocation.USED]:
                raise AssertionError(f"bin {bin} is here already")
            missing[bin] = length
        put = hash_kernels.put_rows(self.words, self.meta, self.ctl, self.stride, self.shift, bin, words)
        if put == allocation.FULL:
            raise self.full()
        if put * self.stride != len(words):
            raise ValueError(f"a piece of bin {bin} has a row that is not of this bin, or is there twice")
        missing[bin] -= len(words)
        if missing[bin]:
            return False
        del missing[bin]
        return True

    def bins_of(self, keys: Words) -> Ints:
        hashes = np.empty_like(keys)
        mix_all(keys, hashes)
        return (hashes >> np.uint64(self.shift)).astype(np.int64)

    def mark_keys(self, keys: Words, marked: Flags) -> None:  # in one pass, without an array of bins
        hash_kernels.mark_bins(keys, self.shift, marked)

    @property
    def spread(self) -> int:
        return self.reach

    def rows(self, keys: Words) -> Ints:
        self.mark(keys)
        rows = np.empty(len(keys), np.int64)
        if hash_kernels.rows_of(self.words, self.meta, self.ctl, self.stride, self.shift, keys, rows) < 0:
            raise self.full()
        return rows

    def locate(self, key: Words, row: Ints, create: bool) -> bool:
        hash_kernels.find_rows(self.words, self.meta, self.stride, self.reach, key, row)
        if row[0] < 0 and create:
            row[:] = self.rows(key)
        elif row[0] >= 0:
            self.meta[self.bins_of(key), allocation.RECORDS] += 1
        return bool(row[0] >= 0)

    def remove(self, keys: Words) -> None:
        self.mark(keys)
        if self._touch is not None:
            self._touch(np.unique(self.bins_of(keys)).tolist())  # other rows close the gaps
        hash_kernels.remove_all(self.words, self.meta, self.ctl, self.stride, self.shift, keys)

    def anchors(self) -> Words:
        if self.single:
            return self.scan()[0]
        keys = np.flatnonzero(self.meta[:, allocation.USED]).astype(np.uint64) << np.uint64(self.shift)
        unmix_all(keys, keys)
        return keys

    def scan(self) -> tuple[Words, Ints]:
        count = self.key_count
        keys, rows = np.empty(count, np.uint64), np.empty(count, np.int64)
        hash_kernels.taken_rows(self.words, self.meta, self.stride, self.reach, keys, rows)
        unmix_all(keys, keys)
        return keys, rows

    def scan_bin(self, bin: int) -> tuple[Words, Ints]:
        rows = self._rows_of_bin(bin)
        top = (np.uint64(bin) << np.uint64(self.shift)) & hash_kernels.TOP
        keys = (self.words[rows * self.stride] & ~hash_kernels.TOP) | top
        unmix_all(keys, keys)
        return keys, rows


def _readable(word: int) -> str:
    """A key as the user knows it. Whether its column has a sign is not known here, where keys are words.

    >>> _readable(70), _readable((1 << 64) - 1)
    ('70', '-1 (18446744073709551615 if the column has no sign)')
    """
    return str(word) if word < 1 << 63 else f"{word - (1 << 64)} ({word} if the column has no sign)"


class DenseTable(Table):
    """Keys from 0 up to a known end: a key is its own place, and needs no room for itself.

    Bins are made whole when they are first written to, and never grow. Each has a *home*, a place that follows from its
    number, so that with many bins nobody need look up where one begins. It is made there; one that was made elsewhere
    and arrives gets any place, since homes of bins that come singly would lie scattered over as many pages. Homes are
    in the order in which bins are dealt out to workers at first: what a worker begins with lies together.
    """

    dense = True

    def __init__(self, bins: int, schema: Schema, domain: int, workers: int = 1) -> None:
        super().__init__(bins, schema)
        self.domain = domain
        self.shift = bins.bit_length() - 1
        self._each = -(-domain // bins)  # keys of a bin
        self._made: Words = np.zeros(-(-bins // 64), np.uint64)  # invariant: a bit for each bin that has a segment
        self.homes = np.zeros(-(-bins // 64), np.uint64)  # invariant: a bit for each of these that is at home
        room = int(allocation.room_for(self._each))
        if workers & (workers - 1) == 0 and workers <= bins and self.segments.reserve_homes(bins * room):
            self.ctl[allocation.HOME], self.ctl[allocation.TURN] = room, workers.bit_length() - 1

    def departed(self, bin: int) -> None:
        super().departed(bin)
        dense_kernels.set_bit(self._made, bin, False)
        dense_kernels.set_bit(self.homes, bin, False)

    def arrived(self, bin: int) -> None:
        super().arrived(bin)
        dense_kernels.set_bit(self._made, bin, True)
        dense_kernels.set_bit(self.homes, bin, self.segments.is_at_home(bin))

    def check(self, keys: Words) -> None:
        """ValueError if a key is outside the domain; makes the bins of all keys."""
        outside = dense_kernels.make_dense(
            self.words, self.meta, self.ctl, self.stride, keys, self.domain, self._each, self._made, self.homes
        )
        if outside == allocation.FULL:
            raise self.full()
        if outside >= 0:
            key = _readable(int(keys[outside]))
            raise ValueError(f"the key {key} is outside of dense({self.domain}): keys are 0 to {self.domain - 1}")

    def bins_of(self, keys: Words) -> Ints:
        return (keys & np.uint64(self.bins - 1)).astype(np.int64)

    @property
    def spread(self) -> int:
        return self.shift

    def rows(self, keys: Words) -> Ints:
        rows = self._places(keys)
        np.add.at(self.records, self.bins_of(keys), 1)
        return rows

    def _places(self, keys: Words) -> Ints:
        self.check(keys)
        self.mark(keys)
        rows: Ints = self.meta[self.bins_of(keys), allocation.FIRST] + (keys >> np.uint64(self.shift)).astype(np.int64)
        return rows

    def locate(self, key: Words, row: Ints, create: bool) -> bool:
        row[:] = self.rows(key)
        return True

    def remove(self, keys: Words) -> None:
        self.entries[self._places(keys)] = np.zeros((), self.dtype)

    def anchors(self) -> Words:
        return self.occupied.astype(np.uint64)

    def scan(self) -> tuple[Words, Ints]:
        """Every key of the bins that are here: a dense key has state, zero if nobody wrote to it."""
        bins = self.occupied
        positions = np.arange(self._each)
        keys = (positions[None, :] << self.shift) + bins[:, None]
        rows = self.meta[bins, allocation.FIRST][:, None] + positions[None, :]
        inside = keys < self.domain
        return keys[inside].astype(np.uint64), rows[inside]

    def scan_bin(self, bin: int) -> tuple[Words, Ints]:
        if not self.meta[bin, allocation.ROOM]:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        positions = np.arange(self._each)
        keys = (positions << self.shift) + bin
        inside = keys < self.domain
        return keys[inside].astype(np.uint64), int(self.meta[bin, allocation.FIRST]) + positions[inside]


def make_table(bins: int, schema: Schema, dense: Dense | None) -> Table:
    """The table for keys of a kind."""
    return HashTable(bins, schema) if dense is None else DenseTable(bins, schema, dense.domain, dense.workers)
