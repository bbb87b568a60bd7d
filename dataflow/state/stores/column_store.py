"""What stores in columns have in common: state in parts, each of which lies in segments by bin, and travels so.

The first part is a table with a row for each key. Others follow: post-dated records, or the two sides of a join.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.columns.pact import require_columns
from dataflow.state.arrays import Bins, Flags, Ints, Meta, Touch
from dataflow.state.folds.fold import SPELLED
from dataflow.state.looking import as_word
from dataflow.state.memory.segments import Head, Part
from dataflow.state.pieces import Piece, Words
from dataflow.state.store import BinView, Key, Numbers, Store
from dataflow.state.stores import spelled
from dataflow.state.tables.one_key import KeyPart, row_of
from dataflow.state.tables.table import DenseTable, Table
from dataflow.state.values import Record, State
from dataflow.time.order import Time


class KeyedStore(Store[Columns]):
    """A store in columns of which single keys can be taken out: it can be the place of keys that live apart."""

    @abstractmethod
    def be_apart(self) -> None:
        """Keys here live apart from their bins, each on its own."""

    @abstractmethod
    def view_all(self) -> dict[Key, State]:
        """By key, a copy of its state. O(state)."""

    @abstractmethod
    def copy_keys(self, limit: int) -> Iterator[Piece]:
        """Every key as it would travel to live apart; all stay."""


class ColumnStore(KeyedStore):
    """State by key in typed columns."""

    table: Table
    changes_by_row = False  # whether rows of the table are only changed and made, by records whose keys are marked

    def be_apart(self) -> None:
        self.table.single = True

    def accept(self, batch: Batch) -> Columns:
        return require_columns(batch, self.name)

    @property
    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """What belongs to a bin, the table first."""

    @property
    def bins(self) -> int:  # type: ignore[override]
        """How many bins there are."""
        return self.table.bins

    @property
    def records(self) -> Meta:  # type: ignore[override]
        """Records applied so far, by bin. They come round at 32 bits."""
        return self.table.records

    def prefault_ahead(self) -> None:
        """Has memory touched before it is needed. For each run."""
        for part in self.parts:
            part.prefault_ahead()

    # Bins

    def take_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        self.table.mark_bin(bin)
        for number, part in enumerate(self.parts):
            yield from _pieces(bin, number, part, part.leave(bin, limit))
            part.departed(bin)

    def copy_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        for number, part in enumerate(self.parts):
            yield from _pieces(bin, number, part, part.copy(bin, limit))

    def freeze(self, bins: Bins, touch: Touch) -> bool:
        for part in self.parts:
            part.freeze(bins, touch)
        return True

    def thaw(self) -> None:
        for part in self.parts:
            part.thaw()

    def copy_frozen(self, bin: int, limit: int) -> Iterator[Piece]:
        for number, part in enumerate(self.parts):
            yield from _pieces(bin, number, part, part.copy_frozen(bin, limit))

    def put(self, piece: Piece) -> None:
        if piece.part >= len(self.parts) or piece.bin >= self.bins:
            raise ValueError(f"a piece of part {piece.part} of bin {piece.bin}, of which there is none")
        part = self.parts[piece.part]
        if piece.is_key:
            self._put_key(piece, part)
            return
        self.table.mark_bin(piece.bin)
        if piece.at == 0:
            part.adopt(piece.description)
        room, used, extra = piece.head
        if part.install(piece.bin, (room, used, extra, piece.at), piece.words):
            part.arrived(piece.bin)

    def occupied(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.sizes(0, self.bins))

    def has(self, bins: Bins) -> Flags:
        found: Flags = np.logical_or.reduce([part.has(bins) for part in self.parts])
        return found

    def describe(self) -> dict[str, str]:
        keys = f"dense({self.table.domain})" if isinstance(self.table, DenseTable) else "hashed"
        fields = {f"field {name}": str(self.table.dtype[name]) for name in self.table.fields}
        about = {"store": type(self).__name__, "shards": str(self.bins), "parts": str(len(self.parts)), "keys": keys}
        return about | fields

    @property
    def key_count(self) -> int:
        return self.table.key_count

    def sizes(self, first: int, end: int) -> Numbers:
        sizes = self.table.sizes_of(first, end)
        for part in self.parts[1:]:
            sizes = sizes + part.sizes_of(first, end)
        return sizes

    def prefault(self, size: int) -> None:
        for part in self.parts:
            part.prefault(size)

    def view(self, bin: int) -> BinView:
        keys, rows = self.table.scan_bin(bin)
        return BinView(bin, int(self.sizes(bin, bin + 1)[0]), self._entries(keys, rows), self.pending_of(bin))

    def view_apart(self) -> dict[Key, State]:
        return {}  # keys that live apart have a store of their own: see megaphone.keys.pinning, `view_all`

    def look(self, bin: int, key: Key) -> tuple[bool, State]:
        """O(1)."""
        word = self.word_of(key)
        row = row_of(self.table, word)
        return (False, None) if row is None else (True, self.entry(word, row))

    def word_of(self, key: Key) -> Words:
        """A key as people write it, as an array of one word. TypeError, ValueError if it cannot be one."""
        spelling = self._spelling
        if spelling and not isinstance(key, int):
            return spelled.word_of(key, len(spelling), self.name)
        return as_word(key)

    def view_all(self) -> dict[Key, State]:
        return self._entries(*self.table.scan())

    def _entries(self, keys: Words, rows: Ints) -> dict[Key, State]:
        fields = self._spelling
        names = keys.view(np.int64).tolist()
        if fields and len(rows):
            names = spelled.keys_of(np.stack([self.table[field][rows] for field in fields]))
        return {names[i]: self.entry(keys[i : i + 1], row) for i, row in enumerate(rows.tolist())}

    def names_of(self, keys: Words) -> list[Key]:
        """Words as the keys that they are. What is spelled out in integers, or has no state here, stays the hash that
        it is: an integer means one everywhere."""
        names: list[Key] = keys.view(np.int64).tolist()
        found = [(place, row_of(self.table, keys[place : place + 1])) for place in range(len(names))]
        there = [(place, row) for place, row in found if row is not None]
        if self._spelling and there:
            rows = np.array([row for _, row in there])
            spelt = spelled.keys_of(np.stack([self.table[field][rows] for field in self._spelling]))
            for (place, _), name in zip(there, spelt, strict=True):
                names[place] = names[place] if isinstance(name, int) else name
        return names

    @property
    def is_spelled(self) -> bool:
        """Whether keys are spelled out, and their words are hashes."""
        return bool(self._spelling)

    @property
    def _spelling(self) -> list[str]:
        """The fields that spell a key out."""
        return [field for field in self.table.fields if field.startswith(SPELLED)]

    def entry(self, key: Words, row: int) -> dict[str, object]:
        """The state of a key, by field."""
        fields = (field for field in self.table.fields if not field.startswith(SPELLED))
        return {field: self.table[field][row].tolist() for field in fields}

    def pending_of(self, bin: int) -> list[tuple[Time, Record]]:
        """The post-dated records of a bin, in the order of times."""
        return []

    def track_changes(self) -> None:
        self.table.track_changes(self.occupied())
        if self.changes_by_row:
            self.table.keep_images()

    def take_changed(self) -> NDArray[np.intp]:
        return self.table.take_changed()

    # Single keys

    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        self.table.mark_bin(int(self.table.bins_of(np.array([key], np.uint64))[0]))
        return self._key_pieces(key, self.key_parts(np.array([key], np.uint64), keep=False), apart, limit)

    def copy_apart(self, limit: int) -> Iterator[Piece]:
        return iter(())  # keys that live apart have a store of their own: see megaphone.keys.pinning, `copy_keys`

    def copy_keys(self, limit: int) -> Iterator[Piece]:
        for key in self.keys_here():
            yield from self._key_pieces(key, self.key_parts(np.array([key], np.uint64), keep=True), True, limit)

    def keys_here(self) -> Words:
        """Every key that has something here."""
        return self.table.scan()[0]

    def _key_pieces(self, key: Key, parts: Iterator[KeyPart], apart: bool, limit: int) -> Iterator[Piece]:
        word = np.array([key], np.uint64)
        bin = int(self.table.bins_of(word)[0])
        for number, count, words in parts:
            stride = len(words) // count
            each = max(1, limit // max(stride, 1))
            description = self.parts[number].describe()
            for start in range(0, count, each):
                rows = min(each, count - start)
                some = words[start * stride : (start + rows) * stride]
                yield Piece(bin, number, start, (rows, 0, 0), some, description, word, apart)

    def _put_key(self, piece: Piece, part: Part) -> None:
        rows, *_ = piece.head
        if len(piece.key) != 1:
            raise ValueError(f"a key of columns is one word, and a piece of state has one of {len(piece.key)}")
        # its bin may be another than where it was: dense keys live apart in a hash table
        self.table.mark_bin(int(self.table.bins_of(piece.key)[0]))
        part.adopt(piece.description)
        self.put_key(piece.key, piece.part, rows, piece.words)

    @abstractmethod
    def key_parts(self, key: Words, keep: bool) -> Iterator[KeyPart]:
        """One key, part by part. It is taken out unless it is to be kept."""

    @abstractmethod
    def put_key(self, key: Words, part: int, count: int, words: Words) -> None:
        """Puts rows of a part of a key in; a part that was cut comes piece by piece, in any order."""


def _pieces(bin: int, number: int, part: Part, pieces: Iterator[tuple[Head, Words]]) -> Iterator[Piece]:
    """Only the first piece of a part has its description."""
    description = part.describe()
    for (room, used, extra, offset), words in pieces:
        yield Piece(bin, number, offset, (room, used, extra), words, description)
        description = description[:0]
