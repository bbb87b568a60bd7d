"""Joins that remember: every pair of a left and a right record with equal keys, whenever they come.

A pair comes out at the later of its two times. `unique="right"` promises that a key occurs on the right at most once,
as an identity does: then a left record that has met its partner is forgotten, and only those that wait are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dataflow.columns.batch import Array, Column, Columns
from dataflow.columns.conversions import KeySigns
from dataflow.columns.hashing import as_words
from dataflow.columns.zones import checked_zone, plain, with_zone, zone_of
from dataflow.comm.codec import dtype_name, safe_dtype
from dataflow.errors import ConstructionError
from dataflow.state.arrays import Ints, Words
from dataflow.state.memory.segments import Part, Segments
from dataflow.state.stores.column_store import ColumnStore
from dataflow.state.tables import chains as joins
from dataflow.state.tables.one_key import KeyPart, make_row, put_chain, take_chain, take_row
from dataflow.state.tables.table import HashTable

LEFT, RIGHT = 0, 1
_HEADS = ("left", "right")
_NAME = 64  # bytes for the name of a column's type: a zone has at most 48


class Kind(NamedTuple):
    """What a column holds: numbers of a type, and moments in a time zone."""

    dtype: np.dtype[np.generic]
    zone: str | None

    def __str__(self) -> str:
        return str(self.dtype) if self.zone is None else f"{self.dtype} in {self.zone}"

    def encode(self) -> bytes:
        """For another worker, in `_NAME` bytes."""
        return f"{dtype_name(self.dtype)} {self.zone or ''}".encode().ljust(_NAME, b"\0")

    @staticmethod
    def decode(name: bytes) -> Kind:
        """ValueError if it is none."""
        dtype, _, zone = name.rstrip(b"\0").decode("ascii").partition(" ")
        return Kind(safe_dtype(dtype), checked_zone(zone) if zone else None)


class Pool(Part):
    """The rows of one side, chained by key, in segments by bin."""

    def __init__(self, bins: int, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.segments = Segments(bins, 1 + len(self.columns), packed=True)
        self.kinds: list[Kind] | None = None  # of the columns, from the first batch or the first bin on

    def describe(self) -> Words:
        """The types of the columns, eight words each: where a bin arrives, no batch may have told them."""
        return np.frombuffer(b"".join(kind.encode() for kind in self.kinds or ()), np.uint64)

    def adopt(self, description: Words) -> None:
        """Types that came with a bin."""
        names = description.tobytes()
        kinds = [Kind.decode(names[i : i + _NAME]) for i in range(0, len(names), _NAME)]
        if self.kinds is None:
            self.kinds = kinds
        elif self.kinds != kinds:
            raise TypeError(
                f"the columns {', '.join(self.columns)} arrive with the types {', '.join(map(str, kinds))}, and have "
                f"been {', '.join(map(str, self.kinds))} here: send each column with one type, on all workers"
            )


class JoinStore(ColumnStore):
    """The state of a join on one worker."""

    least_pending = None

    def __init__(
        self, name: str, keys: Sequence[str], columns: Sequence[Sequence[str]], unique: str | None, bins: int
    ) -> None:
        if unique not in (None, *_HEADS):
            raise ConstructionError(
                f"{name}: unique is 'left' or 'right', the side on which a key occurs once, not {unique!r}"
            )
        twice = set(columns[LEFT]) & set(columns[RIGHT])
        if twice:
            raise ConstructionError(f"{name}: both sides have a column {min(twice)!r}: rename one first")
        self.name = name
        self.keys = tuple(keys)
        self.table = HashTable(bins, {"left": "i8", "right": "i8"})
        self._pools = [Pool(bins, side) for side in columns]
        self._signs = KeySigns()
        self._unique = None if unique is None else _HEADS.index(unique)

    @property
    def parts(self) -> list[Part]:
        """The heads of chains by key, and the rows of each side."""
        return [self.table, *self._pools]

    def describe(self) -> dict[str, str]:
        unique = "neither" if self._unique is None else _HEADS[self._unique]
        columns = {f"columns {side}": json.dumps(pool.columns) for side, pool in zip(_HEADS, self._pools, strict=True)}
        return super().describe() | columns | {"unique": unique}

    def key_parts(self, key: Words, keep: bool) -> Iterator[KeyPart]:
        chains = [
            take_chain(self.table, field, pool, key, keep) for field, pool in zip(_HEADS, self._pools, strict=True)
        ]
        row = take_row(self.table, key, keep)  # the heads of its chains are none by now, unless they are kept
        if row is not None:
            yield 0, 1, row
        for side, (count, words) in enumerate(chains):
            if count:
                yield 1 + side, count, words

    def put_key(self, key: Words, part: int, count: int, words: Words) -> None:
        """Puts a part of a key in; a part that was cut comes piece by piece, and in any order."""
        if part == 0:
            make_row(self.table, key)  # chains that came first stay
        else:
            put_chain(self.table, _HEADS[part - 1], self._pools[part - 1], key, count, words)

    def entry(self, key: Words, row: int) -> dict[str, object]:
        """The rows of a key on each side, the oldest first."""
        sides: dict[str, object] = {}
        for field, pool in zip(_HEADS, self._pools, strict=True):
            count, words = take_chain(self.table, field, pool, key, keep=True)
            rows = words.reshape(count, len(pool.columns))
            kinds = [kind.dtype for kind in pool.kinds or ()]
            columns = [narrow(np.ascontiguousarray(rows[:, i]), kind) for i, kind in enumerate(kinds)]
            values = zip(*(column.tolist() for column in columns), strict=True)
            sides[field] = [dict(zip(pool.columns, row, strict=True)) for row in values] or [{}] * count
        return sides

    def run(self, time: int, batches: Sequence[Sequence[Columns]]) -> list[Columns]:
        """Meets and keeps the records of a time, the left ones first."""
        self.prefault_ahead()
        results = [self._meet(side, batch) for side, parts in enumerate(batches) for batch in parts]
        return [out for out in results if out is not None]

    def _meet(self, side: int, batch: Columns) -> Columns | None:
        key = self.keys[side]
        keys = as_words(batch[key], key)
        self._signs.check(batch[key], keys, f"{self.name}: the key {key!r}")
        places = self.table.rows(keys)
        bins = self.table.bins_of(keys)
        other = self._pools[1 - side]
        mine = self._values(side, batch)
        heads = np.ascontiguousarray(self.table[_HEADS[1 - side]][places])
        counts = np.empty(len(keys), np.int64)
        segments = other.segments
        total = joins.count_matches(heads, segments.words, segments.meta, segments.stride, bins, counts)
        out = None
        if total:
            records, rows = np.empty(total, np.int64), np.empty(total, np.int64)
            joins.list_matches(heads, segments.words, segments.meta, segments.stride, bins, records, rows)
            out = self._pairs(side, batch, records, rows)
        self._keep(side, places, bins, mine, counts)
        return out

    def _keep(self, side: int, places: Ints, bins: Ints, values: Words, counts: Ints) -> None:
        if self._unique == 1 - side:  # those who have met their only partner need not stay
            alone = np.flatnonzero(counts == 0)
            places, bins, values = places[alone], bins[alone], np.ascontiguousarray(values[alone])
        own, other = self._pools[side].segments, self._pools[1 - side].segments
        own.reserve(bins)
        joins.append_rows(self.table[_HEADS[side]], places, own.words, own.meta, own.stride, bins, values)
        if self._unique == side:
            joins.drop_chains(self.table[_HEADS[1 - side]], places, other.words, other.meta, other.stride, bins)

    def _values(self, side: int, batch: Columns) -> Words:
        pool = self._pools[side]
        arrays = [self._number(batch[name], name) for name in pool.columns]
        if pool.kinds is None:
            pool.kinds = [Kind(array.dtype, zone_of(array)) for array in arrays]
        values = np.empty((len(batch), len(arrays)), np.uint64)
        for i, (array, kind) in enumerate(zip(arrays, pool.kinds, strict=True)):
            found = Kind(array.dtype, zone_of(array))
            if found != kind:
                raise TypeError(f"{self.name}: column {pool.columns[i]!r} is {found}, and was {kind} before")
            values[:, i] = widen(plain(array))
        return values

    def _number(self, column: Column, name: str) -> Array:
        if not isinstance(column, np.ndarray) or column.dtype.kind == "c" or column.itemsize > 8:
            raise TypeError(f"{self.name}: column {name!r} cannot be kept in a join: encode it as integers first")
        return column

    def _pairs(self, side: int, batch: Columns, records: Ints, rows: Ints) -> Columns:
        other = self._pools[1 - side]
        words = other.segments.words[: len(other.segments.words) // other.segments.stride * other.segments.stride]
        kept = words.reshape(-1, other.segments.stride)[rows]
        assert other.kinds is not None or not len(rows)
        theirs = {
            name: with_zone(narrow(np.ascontiguousarray(kept[:, 1 + i]), kind.dtype), kind.zone)
            for i, (name, kind) in enumerate(zip(other.columns, other.kinds or (), strict=True))
        }
        ours = {name: batch[name].take(records) for name in self._pools[side].columns}
        left, right = (ours, theirs) if side == LEFT else (theirs, ours)
        key = batch[self.keys[side]].take(records)
        return Columns.trusted({"key": key, **left, **right}, len(records))


def widen(array: Array) -> Words:
    """Numbers of whatever type as words of 64 bits."""
    wide = {"f": np.float64, "u": np.uint64}.get(array.dtype.kind, np.int64)
    return array.astype(wide).view(np.uint64)


def narrow(words: Words, kind: np.dtype[np.generic]) -> Array:
    """The numbers that were widened."""
    wide = {"f": np.float64, "u": np.uint64}.get(kind.kind, np.int64)
    return words.view(wide).astype(kind)
