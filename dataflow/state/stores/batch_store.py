"""State in columns that a function of whole batches changes: for what cannot be said record by record.

The function is called once per time with everything there is: the batch of each input, the table, and a notificator
that has the records that are due and takes new ones. It works with arrays, or calls compiled code of its own:

    def fold(time, batch, state, notificator):
        rows = state.rows(key_words(batch["auction"]))
        np.add.at(state["total"], rows, batch["count"])
        ...
        return {"auction": ..., "total": ...}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from dataflow.columns.batch import Array, Columns
from dataflow.columns.conversions import KeySigns, as_kind
from dataflow.columns.hashing import as_words
from dataflow.columns.instants import counts
from dataflow.columns.schema import Schema, wide
from dataflow.errors import ConstructionError
from dataflow.state.arrays import Ints
from dataflow.state.stores.with_pending import WithPending
from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import Dense, Table, make_table
from dataflow.state.values import Value
from dataflow.time.durations import is_moment, moment

_INT64 = np.dtype(np.int64)


BatchFold: TypeAlias = Callable[..., Value]
"""(time, a batch for each input, table, notificator): columns that come out, or None."""


class BatchNotificator:
    """Post-dates records, many at once. `due`: those that are due now, as columns `key` and the pending ones."""

    def __init__(self, table: Table, pending: Pending, unit: str) -> None:
        self._table = table
        self._unit = unit
        self._pending = pending
        self.now = 0
        self.due = Columns({})

    def notify_at(self, time: Value, keys: Value, **values: Value) -> None:
        """Presents a record for each key at a later time, which may differ from one to the other."""
        kinds = self._pending.kinds
        if set(values) != set(kinds):
            raise TypeError(
                f"a post-dated record has the columns {', '.join(kinds) or '(none)'}, not {', '.join(values)}"
            )
        words = as_words(np.asarray(keys, None if len(keys) else np.int64), "keys")
        times = np.broadcast_to(self._times(time), len(words))
        if len(words) and int(times.min()) <= self.now:
            raise ValueError(f"a record can be put off until later than {self.now}, not until {int(times.min())}")
        columns = [
            as_kind(np.atleast_1d(np.asarray(values[name])), kind, "a post-dated record", name)
            for name, kind in kinds.items()
        ]
        self._table.mark(words)
        self._pending.add(self._pending.rows_of(times, words, columns), self._table.bins_of(words))

    def _times(self, time: Value) -> Ints:
        """Integers, or moments, which are times in the unit that the dataflow's count."""
        given = np.atleast_1d(np.asarray(time))
        if is_moment(time):
            return np.array([moment(time, self._unit)])
        if given.dtype.kind == "M":
            return counts(given, self._unit, "a time to notify at")
        if given.dtype.kind not in "iub":
            raise TypeError(f"a record is put off until an integer or a moment, not until {time!r}")
        return as_kind(given, _INT64, "a post-dated record", "time")


class BatchStore(WithPending):
    """The state of an operator whose fold is a function of batches."""

    pending: Pending

    def __init__(
        self,
        name: str,
        by: Sequence[str],
        fold: BatchFold,
        state: Schema | None,
        pending: Schema | None,
        bins: int,
        dense: Dense | None,
        unit: str = "ns",  # that the dataflow's times count where they meet the calendar
    ) -> None:
        if not callable(fold):
            raise ConstructionError(
                f"{name} needs a function of a time, a batch, a table and a notificator, not {fold!r}"
            )
        if state is None or callable(state):
            raise ConstructionError(f"{name}: say what its state is, such as state={{'count': 'i8'}}")
        self.name = name
        self.by = tuple(by)
        self.table = make_table(bins, state, dense)
        self.pending = Pending(bins, wide(pending, "pending"))
        self._fold = fold
        self._notificator = BatchNotificator(self.table, self.pending, unit)
        self._signs = KeySigns()

    def _require_keys(self, batch: Columns, key: str) -> None:
        """TypeError or ValueError for keys that a word cannot tell apart: strings, say, whose hashes may be equal."""
        if len(batch):
            column = batch[key]
            self._signs.check(column, as_words(column, key), f"{self.name}: the key {key!r}")

    def run(self, time: int, batches: Sequence[Sequence[Columns]]) -> list[Columns]:
        """Calls the function with everything at a time; what comes out."""
        self.prefault_ahead()
        inputs = [Columns.concat(parts) for parts in batches] or [Columns({})] * len(self.by)
        for batch, key in zip(inputs, self.by, strict=True):
            self._require_keys(batch, key)
        keys, values = self.pending.due(time)
        self.table.mark(keys)
        due: dict[str, Array] = {"key": keys.view(np.int64), **dict(zip(self.pending.kinds, values, strict=True))}
        self._notificator.now, self._notificator.due = time, Columns.trusted(due, len(keys))
        try:
            out = self._fold(time, *inputs, self.table, self._notificator)
        except Exception as error:
            error.add_note(f"in {self.name} at {time!r}")
            raise
        if out is None:
            return []
        columns = out if isinstance(out, Columns) else Columns(out)
        return [columns] if len(columns) else []
