"""The loop over a batch that applies a fold to each record: compiled, or plain Python for debugging."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from dataflow.columns import kernels
from dataflow.columns.batch import Array, Columns
from dataflow.columns.emitter import PlainRows
from dataflow.columns.fold import Fold, FoldError
from dataflow.columns.loop import head, loop
from dataflow.columns.schema import widest

_INT64 = np.dtype(np.int64)


class Driver:
    """One fold over one kind of table, with given value columns: what applies a batch.

    Compiled when it is made: before any record is accepted.
    """

    def __init__(self, fold: Fold, names: tuple[str, ...] | None, table: Any, alone: bool) -> None:
        self.fold = fold
        self.table = table
        self._alone = alone  # whether `value` is the one column itself
        self._names = names or ()
        kinds = fold.values or {}
        unknown = [name for name in kinds if name not in self._names and not (alone and name == "value")]
        if unknown:
            raise FoldError(f"{fold.name} declares the type of {unknown[0]!r}, which is not among its value columns")
        self.kinds = [kinds.get("value" if alone and "value" in kinds else name, _INT64) for name in self._names]
        if "value" in fold.parameters and not self._names:
            raise FoldError(f"{fold.name} has a parameter `value`, and the operator names no column for it: value=")
        self._value = namedtuple("Value", self._names) if self._names and not alone else None
        self._outputs = list(fold.output.items())
        self._drive = self._compile() if fold.compiled else None

    def apply(self, time: int, keys: Array, values: list[Array]) -> tuple[Columns | None, Array]:
        """Applies records; what comes out, and the words of post-dated records: (time, key, values...) each."""
        if self._drive is None:
            with np.errstate(over="ignore", divide="raise", invalid="ignore"):
                return self._apply_plain(time, keys, values)
        table, returns = self.table, self.fold.returns != "nothing"
        outputs = [np.empty(len(keys) if returns else 0, kind) for _, kind in self._outputs]
        count, emitted, later = self._drive(
            table.entries, table.words, table.meta, table.ctl, table.stride, table.shift, time,
            keys, keys.view(np.int64), *values, *outputs,
        )  # fmt: skip
        if count == kernels.FULL:
            raise table.full()
        if returns:
            out = {name: array[:count] for (name, _), array in zip(self._outputs, outputs, strict=True)}
            return Columns.trusted(out, int(count)), later
        return self._from_words(emitted), later

    def _from_words(self, words: Array) -> Columns | None:
        """The rows that were emitted, as columns."""
        width = len(self._outputs)
        if not width or not words.size:
            return None
        table = words.reshape(-1, width)
        columns = {}
        for i, (name, kind) in enumerate(self._outputs):
            columns[name] = np.ascontiguousarray(table[:, i]).view(widest(kind)).astype(kind, copy=False)
        return Columns.trusted(columns, len(table))

    # Compiled

    def _compile(self) -> Any:
        from numba import typeof, types

        from dataflow.columns.compiling import Module

        module = Module(
            self.fold.function,
            head(() if self._value is None else self._names),
            loop(self.fold, self._names, self._alone, self.table.dense),
        )
        table = self.table
        words = types.uint64[::1]
        signature = [
            typeof(table.entries), words, types.int64[:, ::1], types.int64[::1], types.int64, types.uint64, types.int64,
            words, types.int64[::1], *(typeof(np.empty(0, kind)) for kind in self.kinds),
            *(typeof(np.empty(0, kind)) for _, kind in self._outputs),
        ]  # fmt: skip
        return module.compile(tuple(signature))

    # Plain

    def _apply_plain(self, time: int, keys: Array, values: list[Array]) -> tuple[Columns | None, Array]:
        fold, table = self.fold, self.table
        emit = PlainRows([widest(kind) for _, kind in self._outputs])
        later = PlainRows(list(fold.pending.values()))
        signed = keys.view(np.int64)
        row = np.empty(1, np.int64)
        for i in range(len(keys)):
            table.ctl[kernels.AT] = i
            if not table.locate(keys[i : i + 1], row, fold.create):
                continue
            state = PlainState(table.entries, int(row[0]))
            later.key = int(keys[i])
            value = self._plain_value([column[i] for column in values])
            known = {
                "time": np.int64(time), "key": signed[i], "value": value, "state": state, "emit": emit, "later": later,
            }  # fmt: skip
            try:
                result = fold.function(*(known[name] for name in fold.parameters))
            except FloatingPointError as error:  # what compiled code raises
                raise ZeroDivisionError(*error.args) from error
            if result is not None:
                emit.row(*(result if fold.returns == "rows" else (result,)))
            if fold.forget is not None and getattr(state, fold.forget):
                table.forget(keys[i : i + 1])
        return self._from_words(emit.words()), later.words()

    def _plain_value(self, values: list[Any]) -> Any:
        if self._value is not None:
            return self._value(*values)
        return values[0] if values else None


class PlainState:
    """A row of state for folds that run uncompiled: its fields as attributes."""

    __slots__ = ("_entries", "_row")

    def __init__(self, entries: Array, row: int) -> None:
        object.__setattr__(self, "_entries", entries)
        object.__setattr__(self, "_row", row)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._entries[name][self._row]
        except ValueError:
            raise AttributeError(f"the state has no field {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in (self._entries.dtype.names or ()):
            raise AttributeError(f"the state has no field {name!r}")
        self._entries[name][self._row] = np.asarray(value).astype(self._entries.dtype[name].base)
