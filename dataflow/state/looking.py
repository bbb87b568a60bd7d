"""A store as `dataflow.build.hooks.Lookup`: the state of a single key, for whoever looks at a run from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import numpy as np

from dataflow.build.hooks import Looked
from dataflow.state.pieces import Words
from dataflow.state.store import B, Key, Store


class StoreLookup(Generic[B]):
    """Looks into a store. `bin_of`: the bin of a key; TypeError or ValueError if it cannot be one."""

    def __init__(self, store: Store[B], bin_of: Callable[[Key], int]) -> None:
        self._store = store
        self._bin_of = bin_of

    def look(self, key: Key) -> Looked:
        """What there is of a key on this worker."""
        bin = self._bin_of(key)
        return Looked(bin, *self._store.look(bin, key))


def as_word(key: Key) -> Words:
    """A key of columns as an array of one word.

    >>> as_word(-1)
    array([18446744073709551615], dtype=uint64)
    """
    if isinstance(key, bool) or not isinstance(key, int) or not -(1 << 63) <= key < 1 << 64:
        raise TypeError(f"keys of columns are integers of 64 bits, not {key!r}")
    return np.array([key % (1 << 64)], np.uint64)
