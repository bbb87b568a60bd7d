"""A store as `dataflow.build.hooks.Durable`: its bins are the shards, and pieces are packed as they travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from dataflow.build.hooks import Words
from dataflow.state.pieces import pack, unpack
from dataflow.state.store import B, Store


class DurableStore(Generic[B]):
    """The door of a store to whoever saves and restores it."""

    def __init__(self, store: Store[B]) -> None:
        self._store = store

    @property
    def shards(self) -> int:
        """How many bins there are."""
        return self._store.bins

    def describe(self) -> Mapping[str, str]:
        """The kind of the store, and the types of its fields."""
        return self._store.describe()

    def sizes(self) -> NDArray[np.int64]:
        """By bin, about how many bytes would travel."""
        return self._store.sizes(0, self._store.bins)

    def track_changes(self) -> None:
        """From now on `take_changed` says which bins have changed."""
        self._store.track_changes()

    def take_changed(self) -> NDArray[np.intp]:
        """The bins that have changed since this was last asked."""
        return self._store.take_changed()

    def copy(self, shard: int, limit: int) -> Iterator[Words]:
        """The packed pieces of a bin, which stays as it is."""
        return map(pack, self._store.copy_bin(shard, limit))

    def copy_frozen(self, shard: int, limit: int, place: Callable[[int], Words]) -> list[Words]:
        """The same of a bin that is frozen, as it was then; `place` makes room."""
        return [pack(piece, place) for piece in self._store.copy_frozen(shard, limit)]

    def copy_apart(self, limit: int) -> Iterator[Words]:
        """The packed pieces of the keys that live apart from their bins."""
        return map(pack, self._store.copy_apart(limit))

    def put(self, piece: Words) -> None:
        """Takes packed pieces in."""
        for unpacked in unpack(piece):
            self._store.put(unpacked)
