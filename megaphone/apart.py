"""A store of bins and, beside it, a store of the keys that live apart from theirs; how a single key travels.

The second store is a hash table of the same schema under the same folds: migrating a bin never touches it. F marks the
batches whose keys are apart, so that S need not know the configuration. A key travels in parts (see
`dataflow.columns.single`), many keys in one message: a word that says so, then for each part six words (whether the key
will be apart, the part's number, the key, how many rows, how long the description is and how long the rows are), the
part's description, and its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dataflow.columns import Columns
from megaphone.pieces import Words

MARK = "\0apart"  # a column of batches whose keys live apart
KEYS = (1 << 64) - 1  # the first word of a message of single keys: no part of a bin has this number
_HEAD = 6


class Divided:
    """The stores of one worker, as one. `make(apart)` makes either; the second one when it is first needed."""

    def __init__(self, make: Callable[[bool], Any]) -> None:
        self._make = make
        self.home = make(False)
        self._apart: Any = None
        self.name = self.home.name

    @property
    def apart(self) -> Any:
        """The store of keys that live apart."""
        if self._apart is None:
            self._apart = self._make(True)
            self._apart.table.single = True
        return self._apart

    @property
    def table(self) -> Any:
        """The table of bins."""
        return self.home.table

    @property
    def pending(self) -> Any:
        """What bins have pending."""
        return self.home.pending

    @property
    def movable(self) -> list[Any]:
        """What belongs to a bin."""
        return list(self.home.movable)

    @property
    def least_pending(self) -> int | None:
        """The least time to which a record of either was post-dated."""
        first: int | None = self.home.least_pending
        second: int | None = None if self._apart is None else self._apart.least_pending
        return second if first is None or (second is not None and second < first) else first

    def run(self, time: int, batches: list[list[Columns]]) -> list[Columns]:
        """Applies everything at a time, each batch where its keys live."""
        marked = any(MARK in batch for parts in batches for batch in parts)
        if not marked and self._apart is None:
            return list(self.home.run(time, batches))
        theirs = [[_unmarked(batch) for batch in parts if MARK in batch] for parts in batches]
        ours = [[batch for batch in parts if MARK not in batch] for parts in batches]
        return [out for store, own in ((self.home, ours), (self.apart, theirs)) for out in _run(store, time, own)]

    def receive(self, time: int, batches: list[list[Columns]]) -> list[Columns]:
        """Applies the batches of a time. See `Keyed`."""
        if any(MARK in batch for parts in batches for batch in parts):  # the first keys that live apart
            return self.run(time, batches)
        return list(self.home.receive(time, batches))

    @property
    def fires_together(self) -> bool:
        """Whether `fire` may be used: not while some keys live apart."""
        return self._apart is None and bool(self.home.fires_together)

    @property
    def takes_together(self) -> bool:
        """Whether `run_all` may be used."""
        return self._apart is None and bool(self.home.takes_together)

    def fire(self, until: int) -> list[tuple[int, list[Columns]]]:
        """Applies what was post-dated to times up to one. See `Keyed`."""
        return list(self.home.fire(until))

    def run_all(self, times: Sequence[int], lengths: Sequence[int], batch: Columns) -> list[list[Columns]]:
        """Applies the records of several times. See `Keyed`."""
        if MARK not in batch:
            return list(self.home.run_all(times, lengths, batch))
        return list(self.apart.run_all(times, lengths, _unmarked(batch)))  # the first keys that live apart


def _run(store: Any, time: int, batches: list[list[Columns]]) -> list[Columns]:
    due = store.least_pending is not None and store.least_pending <= time
    return list(store.run(time, batches)) if due or any(batches) else []


def mark(batch: Columns) -> Columns:
    """A batch whose keys live apart."""
    return Columns.trusted({**batch.columns, MARK: np.zeros(len(batch), np.uint8)}, len(batch))


def _unmarked(batch: Columns) -> Columns:
    return batch.select([name for name in batch.names if name != MARK])


class KeyPiece(NamedTuple):
    """Rows of a part of a key."""

    apart: bool
    part: int
    key: Words  # of one
    rows: int
    description: Words
    words: Words


def depart_key(store: Any, key: Words, apart: bool, limit: int) -> Iterator[Words]:
    """Takes a key out, in pieces of about `limit` words or less."""
    for number, count, words in store.take_key(key):
        stride = len(words) // count
        each = max(1, limit // max(stride, 1))
        description = store.movable[number].describe()
        for start in range(0, count, each):
            rows = min(each, count - start)
            piece = words[start * stride : (start + rows) * stride]
            head = np.array([apart, number, key[0], rows, len(description), len(piece)], np.uint64)
            yield np.concatenate([head, description, piece])


def pack_keys(pieces: Sequence[Words]) -> Words:
    """A message of them."""
    return np.concatenate([np.array([KEYS], np.uint64), *pieces])


def is_keys(message: Words) -> bool:
    """Whether a message is about single keys."""
    return len(message) > 0 and int(message[0]) == KEYS


def unpack_keys(message: Words) -> Iterator[KeyPiece]:
    """The pieces of a message; ValueError if they cannot be right."""
    at = 1
    while at < len(message):
        if at + _HEAD > len(message):
            raise ValueError(f"a message of keys ends in the middle of a head, at word {at}")
        apart, part, _, count, described, length = message[at : at + _HEAD].tolist()
        start, end = at + _HEAD + described, at + _HEAD + described + length
        if end > len(message):
            raise ValueError(f"a message of keys says {described + length} words, and has {len(message) - at - _HEAD}")
        yield KeyPiece(
            bool(apart), part, message[at + 2 : at + 3].copy(), count, message[at + _HEAD : start], message[start:end]
        )
        at = end


def arrive_key(store: Any, piece: KeyPiece) -> None:
    """Installs a piece."""
    if piece.part >= len(store.movable):
        raise ValueError(f"a piece of part {piece.part} of a key, of which there is none")
    store.movable[piece.part].heed(piece.description)
    store.put_key(piece.key, piece.part, piece.rows, piece.words)
