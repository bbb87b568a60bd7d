"""The key of a table with the largest value of a field, known at any time while values go up and down.

To look for it among all keys takes as long as there are keys. So the largest value of each segment is kept, with its
key. It stays true while values grow; where the leader itself has lost some, or rows came or went with a bin or with a
single key, the segment is looked through when somebody next asks.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numba import types
from numpy.typing import NDArray

from dataflow.columns.hashing import WORDS, mix, unmix
from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Bins, Flags, Int, Ints, Meta, Word, Words
from dataflow.state.memory.allocation import FIRST, ROOM
from dataflow.state.memory.segments import Segments
from dataflow.state.tables.hash_kernels import TOP

_MOST, _LEAST = (1 << 63) - 1, -(1 << 63)
_WORDS, _META, _INTS, _BOOLS = types.uint64[::1], types.int32[::1, :], types.int64[::1], types.boolean[::1]


class Ranked(Protocol):
    """What leaders need of a table."""

    segments: Segments
    dtype: np.dtype[np.generic]
    dense: bool

    @property
    def spread(self) -> int:
        """By how many bits a segment's number is shifted in a hash, or a position in a dense key."""

    def rows(self, keys: Words) -> Ints:
        """The row of each key, made if need be."""

    def remove(self, keys: Words) -> None:
        """Removes keys without telling anybody."""


class Leaders:
    """Who has the largest value of a field, of the keys with a value above 0. Ties go to the smaller key, as a signed
    integer.

    True as long as the field is changed by `add` alone. Made by `Table.leaders`.

    Costs: `add` is O(amounts); `first` is O(segments), plus O(rows) of each segment that must be looked through.
    """

    def __init__(self, table: Ranked, field: str) -> None:
        kind, place = _field(table.dtype, field)
        if kind != np.dtype(np.int64):
            raise TypeError(f"state {field!r} is {kind}: leaders are kept of 64-bit integers: declare it as 'i8'")
        self._table = table
        self._field = field
        self._place = place // 8  # of the value, in words, within a row
        count = table.segments.bins >> table.segments.deep
        self._keys: Ints = np.zeros(count, np.int64)  # by segment, the leader
        self._most: Ints = np.zeros(count, np.int64)  # its value; 0 if there is none
        self._known: Flags = np.zeros(count, bool)  # whether that is so

    def add(self, keys: Words, amounts: NDArray[np.integer]) -> None:
        """Adds to the values of keys (words, which may repeat), and forgets those keys, with all their state, whose
        value is then 0. OverflowError names a key whose value would not fit into 64 bits."""
        table, segments = self._table, self._table.segments
        rows, gone = table.rows(keys), np.empty(len(keys), bool)
        wrong = _add(
            segments.words, segments.stride, self._place, table.dense, table.spread, keys, rows,
            np.ascontiguousarray(amounts, np.int64), self._keys, self._most, self._known, gone,
        )  # fmt: skip
        if wrong >= 0:
            key = int(keys[wrong].view(np.int64))
            raise OverflowError(f"{self._field} of the key {key} does not fit into 64 bits any more")
        table.remove(keys[gone])

    def first(self) -> tuple[int, int] | None:
        """The leader and its value; None if no value is above 0."""
        segments = self._table.segments
        key, most = _first(
            segments.words, segments.meta, segments.stride, self._place, self._table.dense, self._table.spread,
            self._keys, self._most, self._known,
        )  # fmt: skip
        return (int(key), int(most)) if most else None

    def doubt(self, bins: Bins) -> None:
        """Rows of these bins came or went, or changed otherwise than by `add`."""
        self._known[bins >> self._table.segments.deep] = False


def _field(dtype: np.dtype[np.generic], name: str) -> tuple[np.dtype[np.generic], int]:
    """The type of a field, and where it is in a row, in bytes."""
    fields = {known: dtype.fields[known][:2] for known in dtype.names or () if dtype.fields and known[0] != "_"}
    if name not in fields:
        raise KeyError(f"there is no state {name!r}: there is {', '.join(fields) or 'none'}")
    kind, place = fields[name]
    return kind, place


@kernel(
    types.int64(
        _WORDS, types.int64, types.int64, types.boolean, types.uint64, WORDS, _INTS, _INTS, _INTS, _INTS, _BOOLS, _BOOLS
    ),
)  # fmt: skip
def _add(
    words: Words, stride: Int, place: Int, dense: bool, spread: Word, keys: Words, rows: Ints, amounts: Ints,
    leaders: Ints, most: Ints, known: Flags, gone: Flags,
) -> Int:  # fmt: skip
    """Adds amounts; what is known of leaders stays true, and `gone` tells the keys with nothing left. -1, or which
    amount is too much."""
    mask = np.uint64(known.size - 1)
    for i in range(rows.size):
        at = rows[i] * stride + place
        before, amount = np.int64(words[at]), amounts[i]
        if before > _MOST - amount if amount > 0 else before < _LEAST - amount:
            return i
        value = before + amount
        words[at] = np.uint64(value)
        segment = np.int64(keys[i] & mask) if dense else np.int64(mix(keys[i]) >> spread)
        key = np.int64(keys[i])
        if not known[segment]:
            continue
        if key == leaders[segment] and most[segment]:
            known[segment] = amount >= 0
            most[segment] = value
        elif value > most[segment] or (value == most[segment] and value and key < leaders[segment]):
            leaders[segment], most[segment] = key, value
    for i in range(rows.size):
        gone[i] = words[rows[i] * stride + place] == 0
    return -1


@kernel(
    types.UniTuple(types.int64, 2)(
        _WORDS, _META, types.int64, types.int64, types.boolean, types.uint64, _INTS, _INTS, _BOOLS
    ),
)  # fmt: skip
def _first(
    words: Words,
    meta: Meta,
    stride: Int,
    place: Int,
    dense: bool,
    spread: Word,
    leaders: Ints,
    most: Ints,
    known: Flags,
) -> tuple[Int, Int]:
    """The leader of all segments. Where it is not known it is looked for in the order of memory, which takes a third of
    the time of a list of all keys. A row that is free has zeros, and so no value above 0."""
    leader, best = np.int64(0), np.int64(0)
    for segment in range(known.size):
        if meta[segment, ROOM] == 0:
            known[segment] = False
            continue
        if not known[segment]:
            most[segment] = 0
            first = np.int64(meta[segment, FIRST])
            for row in range(first, first + meta[segment, ROOM]):
                value = np.int64(words[row * stride + place])
                if value > 0 and value >= most[segment]:
                    if dense:
                        key = np.int64((np.uint64(row - first) << spread) | np.uint64(segment))
                    else:
                        tag = words[row * stride]
                        key = np.int64(unmix((tag & ~TOP) | ((np.uint64(segment) << spread) & TOP)))
                    if value > most[segment] or key < leaders[segment]:
                        leaders[segment], most[segment] = key, value
            known[segment] = True
        if most[segment] > best or (most[segment] == best and best and leaders[segment] < leader):
            leader, best = leaders[segment], most[segment]
    return leader, best
