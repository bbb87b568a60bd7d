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
from typing import Any

import numpy as np

from dataflow.columns.batch import Array, Columns
from dataflow.columns.pending import Pending
from dataflow.columns.schema import Schema, wide
from dataflow.columns.single import WithPending
from dataflow.columns.table import Dense, Table, make_table
from dataflow.errors import ConstructionError


class BatchNotificator:
    """Post-dates records, many at once. `due`: those that are due now, as columns `key` and the pending ones."""

    def __init__(self, table: Table, pending: Pending) -> None:
        self._table = table
        self._pending = pending
        self.now = 0
        self.due = Columns({})

    def notify_at(self, time: Any, keys: Any, **values: Any) -> None:
        """Presents a record for each key at a later time, which may differ from one to the other."""
        kinds = self._pending.kinds
        if set(values) != set(kinds):
            raise TypeError(
                f"a post-dated record has the columns {', '.join(kinds) or '(none)'}, not {', '.join(values)}"
            )
        words = np.ascontiguousarray(keys).astype(np.int64, copy=False).view(np.uint64)
        rows = np.empty((len(words), self._pending.stride), np.uint64)
        times = np.broadcast_to(np.asarray(time, np.int64), len(words))
        if len(words) and int(times.min()) <= self.now:
            raise ValueError(f"a record can be put off until later than {self.now}, not until {int(times.min())}")
        rows[:, 0], rows[:, 1] = (
            times.view(np.uint64) if times.flags.c_contiguous else times.astype(np.int64).view(np.uint64),
            words,
        )
        for i, (name, kind) in enumerate(kinds.items()):
            rows[:, 2 + i] = np.broadcast_to(np.asarray(values[name], kind), len(words)).copy().view(np.uint64)
        self._pending.add(rows.reshape(-1), self._table.bins_of(words))


class KeyedBatches(WithPending):
    """The state of an operator whose fold is a function of batches. See `Keyed` for what hosts expect."""

    fires_together = takes_together = False
    pending: Pending  # always, even if nothing is post-dated

    def __init__(
        self,
        name: str,
        by: Sequence[str],
        fold: Callable[..., Any],
        state: Schema | None,
        pending: Schema | None,
        bins: int,
        dense: Dense | None,
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
        self._notificator = BatchNotificator(self.table, self.pending)

    @property
    def least_pending(self) -> int | None:
        """The least time to which a record was post-dated."""
        least: int | None = self.pending.least
        return least

    def run(self, time: int, batches: list[list[Columns]]) -> list[Columns]:
        """Calls the function with everything at a time; what comes out."""
        self.stay_ahead()
        inputs = [Columns.concat(parts) for parts in batches] or [Columns({})] * len(self.by)
        keys, values = self.pending.due(time)
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
