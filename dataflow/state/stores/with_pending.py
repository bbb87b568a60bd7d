"""What stores with a table and post-dated records have in common."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dataflow.state.folds.fold import Upgrade
from dataflow.state.memory.segments import Part
from dataflow.state.pieces import Words
from dataflow.state.stores.column_store import ColumnStore
from dataflow.state.tables.one_key import KeyPart, put_pending, put_row, take_pending, take_row
from dataflow.state.tables.pending import LAST, Pending
from dataflow.state.values import Record
from dataflow.time.order import Time


class WithPending(ColumnStore):
    """A table, and post-dated records of its keys unless nothing post-dates any."""

    pending: Pending | None
    upgrade: Upgrade | None = None  # of state that was saved with other fields
    last_time = LAST

    def upgradable(self) -> WithPending | None:
        return None if self.upgrade is None else self

    @property
    def parts(self) -> list[Part]:
        return [self.table] if self.pending is None else [self.table, self.pending]

    @property
    def least_pending(self) -> int | None:
        return None if self.pending is None else self.pending.least

    def pending_of(self, bin: int) -> list[tuple[Time, Record]]:
        return [] if self.pending is None else [*self.pending.list_bin(bin)]

    def describe(self) -> dict[str, str]:
        kinds = {} if self.pending is None else self.pending.kinds
        return super().describe() | {f"pending {name}": str(kind) for name, kind in kinds.items()}

    def keys_here(self) -> Words:
        keys = super().keys_here()
        return keys if self.pending is None else np.union1d(keys, self.pending.keys())

    def key_parts(self, key: Words, keep: bool) -> Iterator[KeyPart]:
        row = take_row(self.table, key, keep)
        if row is not None:
            yield 0, 1, row
        if self.pending is not None:
            records = take_pending(self.pending, int(self.table.bins_of(key)[0]), key, keep)
            if records.size:
                yield 1, self.pending.count_rows(records), records

    def put_key(self, key: Words, part: int, count: int, words: Words) -> None:
        if part == 0:
            put_row(self.table, key, words)
        else:
            assert self.pending is not None
            put_pending(self.pending, int(self.table.bins_of(key)[0]), words)
