"""State that was saved with other fields, converted to those that the program has now: `fold(..., upgrade=...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dataflow.build.cuts import StateMismatch
from dataflow.columns.batch import Columns
from dataflow.state.arrays import Ints, Words
from dataflow.state.reading import SavedState
from dataflow.state.stores.with_pending import WithPending


class Conversion:
    """Takes saved state in, and puts it converted into a store of columns. The number of shards may be another one."""

    def __init__(self, name: str, saved: Mapping[str, str], store: WithPending) -> None:
        self._name = name
        self._saved = SavedState(saved)
        self._store = store

    def put(self, words: Words) -> None:
        """A packed piece, as it was saved."""
        self._saved.put(words)

    def finish(self, owns: Callable[[int], bool]) -> None:
        """Converts everything, and puts what belongs here into the store."""
        old, pending = self._saved.table()
        upgrade, table = self._store.upgrade, self._store.table
        assert upgrade is not None
        new = Columns(upgrade(old))
        missing = [field for field in ("key", *table.fields) if field not in new.names]
        if missing:
            raise StateMismatch(
                f"upgrade= of {self._name!r} returned the columns {', '.join(new.names)}, and the state needs "
                f"{', '.join(missing)} as well"
            )
        keys = np.ascontiguousarray(np.asarray(new["key"]).astype(np.int64, casting="same_kind")).view(np.uint64)
        here = self._mine(table.bins_of(keys), owns)
        rows = table.rows(keys[here])
        for field in table.fields:
            table[field][rows] = np.asarray(new[field])[here]
        if pending is not None and self._store.pending is not None and len(pending):
            bins = table.bins_of(self._store.pending.keys_of(pending))
            kept = self._mine(bins, owns)
            self._store.pending.add(self._store.pending.only(pending, kept), bins[kept])

    def _mine(self, bins: Ints, owns: Callable[[int], bool]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        owned = np.array([owns(bin) for bin in range(self._store.bins)])
        return owned[bins]


def convertible(saved: Mapping[str, str], mine: Mapping[str, str]) -> bool:
    """Whether two descriptions differ in fields and in the number of shards alone."""

    def rest(of: Mapping[str, str]) -> dict[str, str]:
        return {name: kind for name, kind in of.items() if name != "shards" and not name.startswith("field ")}

    return rest(saved) == rest(mine)
