"""A store of bins and, beside it, a store of the keys that live apart from theirs: both as one, in columns.

The second store is a hash table of the same schema under the same folds: migrating a bin never touches it. F marks the
batches whose keys are apart, so that S need not know the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataflow.channels.pact import Batch
from dataflow.columns import Columns
from dataflow.columns.pact import require_columns
from dataflow.state.pieces import Piece
from dataflow.state.store import BinView, Key, Numbers, Store
from dataflow.state.stores.column_store import ColumnStore, KeyedStore
from dataflow.state.tables.table import Table
from dataflow.state.values import State
from dataflow.time.order import Time

K = TypeVar("K", bound=KeyedStore)
MARK = "\0apart"  # a column of batches whose keys live apart


class PinningStore(Store[Columns], Generic[K]):
    """The stores of one worker, as one. `make(apart)` makes either; the second one when it is first needed."""

    def __init__(self, make: Callable[[bool], K]) -> None:
        self._make = make
        self.home = make(False)
        self._apart: K | None = None
        self.name = self.home.name
        self.bins = self.home.bins
        self.records = self.home.records
        self.last_time = self.home.last_time

    @property
    def apart(self) -> K:
        """The store of keys that live apart."""
        if self._apart is None:
            self._apart = self._make(True)
            self._apart.be_apart()
        return self._apart

    def upgradable(self) -> Store[Columns] | None:
        return self.home.upgradable()

    @property
    def table(self) -> Table:
        """The table of bins."""
        assert isinstance(self.home, ColumnStore), "others have none"
        return self.home.table

    def names_of(self, keys: NDArray[np.uint64]) -> list[Key]:
        """Words as the keys that they are, wherever these live; what has no state here stays a hash."""
        assert isinstance(self.home, ColumnStore)
        names = self.home.names_of(keys)
        if isinstance(self._apart, ColumnStore):
            others = self._apart.names_of(keys)
            names = [other if isinstance(name, int) else name for name, other in zip(names, others, strict=True)]
        return names

    # Records, in the order of time

    def accept(self, batch: Batch) -> Columns:
        return require_columns(batch, self.name)

    @property
    def least_pending(self) -> Time | None:
        first = self.home.least_pending
        second = None if self._apart is None else self._apart.least_pending
        return second if first is None or (second is not None and second < first) else first

    def run(self, time: Time, batches: Sequence[Sequence[Columns]]) -> Sequence[Batch]:
        """Applies everything at a time, each batch where its keys live."""
        if self._apart is None and not _has_marked(batches):
            return self.home.run(time, batches)
        theirs = [[_unmarked(batch) for batch in parts if MARK in batch] for parts in batches]
        ours = [[batch for batch in parts if MARK not in batch] for parts in batches]
        self.apart_records += sum(len(batch) for parts in theirs for batch in parts)
        return [out for store, own in ((self.home, ours), (self.apart, theirs)) for out in _run(store, time, own)]

    def receive(self, time: Time, batches: Sequence[Sequence[Columns]]) -> Sequence[Batch]:
        if _has_marked(batches):  # the first keys that live apart
            return self.run(time, batches)
        return self.home.receive(time, batches)

    @property
    def fires_together(self) -> bool:  # type: ignore[override]
        """Not while some keys live apart."""
        return self._apart is None and self.home.fires_together

    @property
    def takes_together(self) -> bool:  # type: ignore[override]
        """Not while some keys live apart."""
        return self._apart is None and self.home.takes_together

    @property
    def undoes_changes(self) -> bool:  # type: ignore[override]
        """As the store of the bins does."""
        return self.home.undoes_changes

    def fire(self, until: Time) -> Sequence[tuple[Time, Sequence[Batch]]]:
        return self.home.fire(until)

    def can_take_together(self, batches: Sequence[Sequence[Columns]]) -> bool:
        return not _has_marked(batches) and self.home.can_take_together(batches)

    def run_all(self, times: Sequence[Time], batches: Sequence[Sequence[Columns]]) -> Sequence[Sequence[Batch]]:
        return self.home.run_all(times, batches)

    # Bins and single keys

    def take_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        return self.home.take_bin(bin, limit)

    def copy_bin(self, bin: int, limit: int) -> Iterator[Piece]:
        return self.home.copy_bin(bin, limit)

    def freeze(self, bins: NDArray[np.integer], touch: Callable[[Iterable[int]], None]) -> bool:
        return self.home.freeze(bins, touch)

    def thaw(self) -> None:
        self.home.thaw()

    def copy_frozen(self, bin: int, limit: int) -> Iterator[Piece]:
        return self.home.copy_frozen(bin, limit)

    def take_key(self, key: Key, was_apart: bool, apart: bool, limit: int) -> Iterator[Piece]:
        return (self.apart if was_apart else self.home).take_key(key, was_apart, apart, limit)

    def copy_apart(self, limit: int) -> Iterator[Piece]:
        return iter(()) if self._apart is None else self._apart.copy_keys(limit)

    def put(self, piece: Piece) -> None:
        (self.apart if piece.apart else self.home).put(piece)

    def view(self, bin: int) -> BinView:
        return self.home.view(bin)

    def view_apart(self) -> Mapping[Key, State]:
        return {} if self._apart is None else self._apart.view_all()

    def look(self, bin: int, key: Key) -> tuple[bool, State]:
        found, state = (False, None) if self._apart is None else self._apart.look(bin, key)
        return (found, state) if found else self.home.look(bin, key)

    def occupied(self) -> NDArray[np.intp]:
        return self.home.occupied()

    def has(self, bins: NDArray[np.integer]) -> NDArray[np.bool_]:
        return self.home.has(bins)

    def describe(self) -> Mapping[str, str]:
        return self.home.describe()

    @property
    def key_count(self) -> int:
        return self.home.key_count

    def prefault(self, size: int) -> None:
        self.home.prefault(size)

    def sizes(self, first: int, end: int) -> Numbers:
        return self.home.sizes(first, end)

    def track_changes(self) -> None:
        self.home.track_changes()

    def take_changed(self) -> NDArray[np.intp]:
        return self.home.take_changed()


def _run(store: KeyedStore, time: Time, batches: Sequence[Sequence[Columns]]) -> Sequence[Batch]:
    due = store.least_pending is not None and store.least_pending <= time
    return store.run(time, batches) if due or any(batches) else ()


def _has_marked(batches: Sequence[Sequence[Columns]]) -> bool:
    return any(MARK in batch for parts in batches for batch in parts)


def mark(batch: Columns) -> Columns:
    """A batch whose keys live apart."""
    return Columns.trusted({**batch.columns, MARK: np.zeros(len(batch), np.uint8)}, len(batch))


def _unmarked(batch: Columns) -> Columns:
    return batch.select([name for name in batch.names if name != MARK])
