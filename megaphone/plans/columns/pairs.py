"""Windowed joins of two streams: there is one plan, and so a single key can leave its bin, and live apart from it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dataflow.columns.hashing import unmix_all
from dataflow.state.arrays import Ints, Words
from dataflow.state.pieces import Piece
from dataflow.state.store import Key
from dataflow.state.stores.column_store import KeyedStore
from dataflow.state.stores.portions import Address, Arriving, address_of, depart
from dataflow.state.values import State
from megaphone.plans.columns import travel
from megaphone.plans.columns.store import PlanColumnStore
from megaphone.plans.query import Query


class PairStore(PlanColumnStore, KeyedStore):
    """A windowed join of two streams by key."""

    def __init__(self, name: str, bins: int, query: Query, compiled: bool = True) -> None:
        assert len(query.streams) == 2 and isinstance(query.on, str)
        super().__init__(name, bins, query, query.plan(" ".join(query.streams)), compiled)
        self._keys: dict[int, Arriving] = {}  # keys of which pieces are missing

    def be_apart(self) -> None:
        """Nothing is to be done: rows are found by key."""

    def view_all(self) -> dict[Key, State]:
        return self.view_bins(np.arange(self.bins), self._last)

    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        word = int(np.array([key]).astype(np.uint64)[0])
        hashed, bin = self._hash(word)
        found = self._rows_of(hashed, bin)
        pieces = [*self._key_pieces(word, bin, apart, found, limit)]
        for ring, numbers in zip(self._joiner.sources, found, strict=True):
            ring.forget_key(hashed, numbers)
        self._mark(np.array([bin]))
        return iter(pieces)

    def copy_keys(self, limit: int) -> Iterator[Piece]:
        for word in self._words().tolist():
            hashed, bin = self._hash(word)
            yield from self._key_pieces(word, bin, True, self._rows_of(hashed, bin), limit)

    def _hash(self, word: int) -> tuple[int, int]:
        """The hash of a key, and its bin."""
        (hashed,) = self._mixed(np.array([word], np.uint64)).tolist()
        return hashed, hashed >> self.shift

    def _words(self) -> Words:
        """Every key that has rows here."""
        low = self._last - self._query.window + 1
        some = [ring.fetch(ring.numbers(self._flags(np.arange(self.bins)), low)) for ring in self._joiner.sources]
        hashes = np.unique(np.concatenate([delta.hashes for delta in some]))
        unmix_all(hashes, hashes)
        return hashes

    def _rows_of(self, hashed: int, bin: int) -> list[Ints]:
        found = []
        low = self._last_of(bin) - self._query.window + 1
        for ring in self._joiner.sources:
            numbers = ring.numbers(self._flags(np.array([bin])), low)
            found.append(numbers[ring.fetch(numbers).hashes == np.uint64(hashed)])
        return found

    def _key_pieces(self, word: int, bin: int, apart: bool, found: list[Ints], limit: int) -> Iterator[Piece]:
        if not any(map(len, found)):
            return
        entries = {("key",): [self._last_of(bin), self._purges]}  # else a store that has not run since would purge them
        for slot, ring in enumerate(self._joiner.sources):
            entries.update(travel.records_of(ring, slot, found[slot]))
        yield from depart(Address(bin, (word,), apart), entries, {}, limit)

    def put_state(self, piece: Piece) -> None:
        if not piece.is_key:
            super().put_state(piece)
            return
        address = address_of(piece)
        assert address.key is not None
        arriving = self._keys.setdefault(address.key[0], Arriving())
        if not arriving.add(piece):
            return
        del self._keys[address.key[0]]
        entries, mine = arriving.state, self._purges
        last, purge_at = entries.pop(("key",))
        travel.install(self._joiner, address.bin, entries, max(last, self._last))
        self._arrived[address.bin] = max(last, self._arrived.get(address.bin, -1))
        self._mark(np.array([address.bin]))
        self._wake(purge_at, mine)
