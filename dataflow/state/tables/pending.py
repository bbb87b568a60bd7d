"""Post-dated records of keys, by bin: a heap per bin, and a tree over the bins that knows the least time of all.

Costs, with n records in a bin: adding and taking one O(log n + log bins); the least time O(1); a bin leaves and arrives
as one contiguous copy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dataflow.errors import TimeError
from dataflow.state.arrays import Bins, Flags, Ints, Touch, Values, Words
from dataflow.state.memory import allocation
from dataflow.state.memory.segments import Part, Segments
from dataflow.state.tables import heaps

LAST = int(heaps.NEVER) - 1
"""The last time to which records can be put off: times have 64 bits, and one number says that there is none."""
_CHUNK = 1 << 12  # records that are taken out at a time


class Pending(Part):
    """Records of (time, key, values), each in the bin of its key."""

    def __init__(self, bins: int, kinds: dict[str, np.dtype[np.generic]]) -> None:
        self.kinds = kinds
        self.stride = 2 + len(kinds)
        self.segments = Segments(bins, self.stride, packed=True)
        self.tree: Ints = np.full(2 * bins, heaps.NEVER, np.int64)
        self._touch: Touch | None = None  # while some bins are frozen for a snapshot

    @property
    def least(self) -> int | None:
        """The least time of any record."""
        least = int(self.tree[1])
        return None if least == heaps.NEVER else least

    def rows_of(self, times: Ints, keys: Words, values: Sequence[Values]) -> Words:
        """Records as `add` takes them. A column of one value has it for all of them."""
        rows = np.empty((len(keys), self.stride), np.uint64)
        rows[:, 0], rows[:, 1] = np.ascontiguousarray(times).view(np.uint64), keys
        for i, column in enumerate(values):
            rows[:, 2 + i] = np.broadcast_to(column, len(keys)).copy().view(np.uint64)
        return rows.reshape(-1)

    def add(self, rows: Words, bins: Ints) -> None:
        """Adds records as words, row after row, each to its bin. TimeError for a time that is too late."""
        last = rows[:: self.stride].view(np.int64).max(initial=0)
        if last > LAST:
            raise TimeError(f"a record is put off until {last}, and the last time of state in columns is {LAST}")
        segments = self.segments
        if self._touch is not None:
            self._touch(np.unique(bins).tolist())
        segments.reserve(bins)
        heaps.push_all(segments.words, segments.meta, self.stride, self.tree, rows, bins)

    def due(self, time: int) -> tuple[Words, list[Values]]:
        """Takes out what is due by a time: keys, and the values of each column. In the order of times."""
        return self._columns(self._take(time))

    def due_first(self, until: int) -> tuple[Ints, Words, list[Values]]:
        """Takes out what is due by a time, or the first of it if that is much, but all of any one time: times, keys,
        and the values of each column. In the order of times."""
        rows = self._take_chunk(until)
        if len(rows) == _CHUNK:
            rows = np.concatenate([rows, self._take(int(rows[-1, 0].view(np.int64)))])
        return np.ascontiguousarray(rows[:, 0]).view(np.int64), *self._columns(rows)

    def keys_of(self, rows: Words) -> Words:
        """The key of each of some records, as `rows_of` gives them."""
        return np.ascontiguousarray(rows[1 :: self.stride])

    def only(self, rows: Words, kept: Flags) -> Words:
        """Those of some records at which there is a True."""
        return np.ascontiguousarray(rows.reshape(-1, self.stride)[kept]).reshape(-1)

    def due_all(self) -> tuple[Ints, Words, list[Values]]:
        """Takes out everything: times, keys, and the values of each column."""
        rows = self._take(LAST)
        return np.ascontiguousarray(rows[:, 0]).view(np.int64), *self._columns(rows)

    def _take(self, time: int) -> Words:
        chunks = [self._take_chunk(time)]
        while len(chunks[-1]) == _CHUNK:
            chunks.append(self._take_chunk(time))
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)

    def _take_chunk(self, time: int) -> Words:
        segments = self.segments
        if self._touch is not None:
            self._touch(np.flatnonzero(self.tree[len(self.tree) // 2 :] <= time).tolist())
        out = np.empty((_CHUNK, self.stride), np.uint64)
        taken = heaps.pop_due(segments.words, segments.meta, self.stride, self.tree, time, out.reshape(-1))
        return out[:taken]

    def _columns(self, rows: Words) -> tuple[Words, list[Values]]:
        values = [np.ascontiguousarray(rows[:, 2 + i]).view(kind) for i, kind in enumerate(self.kinds.values())]
        return np.ascontiguousarray(rows[:, 1]), values

    def count_rows(self, words: Words) -> int:
        """How many records so many words are."""
        return len(words) // self.stride

    def list_bin(self, bin: int) -> list[tuple[int, dict[str, object]]]:
        """The records of a bin, in the order of times: (time, the key and the values by name)."""
        rows = self.segments.contents(bin).reshape(-1, self.stride)
        rows = rows[np.argsort(rows[:, 0].view(np.int64), kind="stable")]
        keys, values = self._columns(rows)
        named = {"key": keys.view(np.int64).tolist()}
        named.update({name: column.tolist() for name, column in zip(self.kinds, values, strict=True)})
        times = np.ascontiguousarray(rows[:, 0]).view(np.int64).tolist()
        return [(time, {name: column[i] for name, column in named.items()}) for i, time in enumerate(times)]

    def keys(self) -> Words:
        """The key of each record, in no order."""
        bins = np.flatnonzero(self.segments.meta[:, allocation.USED])
        found = [self.segments.contents(bin).reshape(-1, self.stride)[:, 1] for bin in bins.tolist()]
        return np.concatenate(found) if found else np.empty(0, np.uint64)

    def freeze(self, bins: Bins, touch: Touch) -> None:
        """From now on `touch` is called with bins whose records come or go."""
        self._touch = touch

    def thaw(self) -> None:
        """Nobody need be told any more."""
        self._touch = None

    def departed(self, bin: int) -> None:
        """The records of a bin have left."""
        heaps.set_leaf(self.tree, bin, heaps.NEVER)

    def arrived(self, bin: int) -> None:
        """The records of a bin have come."""
        first = int(self.segments.meta[bin, allocation.FIRST])
        heaps.set_leaf(self.tree, bin, int(self.segments.words[first * self.stride].view(np.int64)))

    def __len__(self) -> int:
        return int(self.segments.meta[:, allocation.USED].sum())
