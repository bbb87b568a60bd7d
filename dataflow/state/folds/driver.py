"""The loop over a batch that applies a fold to each record: compiled, or plain Python for debugging."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from keyword import iskeyword
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dataflow.columns.batch import Columns
from dataflow.columns.schema import stored, widest
from dataflow.columns.zones import with_zone
from dataflow.state.arrays import Values, Words
from dataflow.state.folds.arithmetic import as_compiled
from dataflow.state.folds.emitter import PlainRows
from dataflow.state.folds.fold import SPELLED, Fold, FoldError
from dataflow.state.folds.loop import SAME_HASH, head, loop
from dataflow.state.memory import allocation
from dataflow.state.tables.table import Table
from dataflow.state.values import Value

if TYPE_CHECKING:
    from numba.core.types.abstract import Type

    from dataflow.state.folds.compiling import Drive

_INT64 = np.dtype(np.int64)


class FoldDriver:
    """One fold over one kind of table, with given value columns: what applies a batch.

    Compiled when it is made: before any record is accepted.
    """

    def __init__(
        self,
        fold: Fold,
        names: tuple[str, ...] | None,
        table: Table,
        alone: bool,
        given: dict[str, np.dtype[np.generic]] | None = None,  # the types of the columns, if the fold need not say
        spelled: int = 0,  # in how many words, behind the values, records say what their key is
    ) -> None:
        self.fold = fold
        self.spelled = spelled
        self.table = table
        self._alone = alone  # whether `value` is the one column itself
        self._names = names or ()
        kinds = fold.values or {}
        unknown = [name for name in kinds if name not in self._names and not (alone and name == "value")]
        if unknown:
            raise FoldError(f"{fold.name} declares the type of {unknown[0]!r}, which is not among its value columns")
        said = [kinds.get("value" if alone and "value" in kinds else name) for name in self._names]
        known = [_INT64 if given is None else given[name] for name in self._names]
        if given is not None and any(kind not in (None, known[i]) for i, kind in enumerate(said)):
            raise FoldError(f"{fold.name} declares other types of values than `pending` has: leave its values= out")
        self.kinds = [kind or known[i] for i, kind in enumerate(said)]
        self.units = [fold.units.get("value" if alone and "value" in kinds else name, "ns") for name in self._names]
        _check_names(fold, self._names, alone)
        if "value" in fold.parameters and not self._names:
            raise FoldError(f"{fold.name} has a parameter `value`, and the operator names no column for it: value=")
        self._value = namedtuple("Value", self._names) if self._names and not alone else None
        self._outputs = list(fold.output.items())
        self._has_times = any(kind.kind in "mM" for kind in fold.output.values())
        self._drive = self._compile() if fold.compiled else None

    def apply(self, time: int, keys: Words, values: Sequence[Values]) -> tuple[Columns | None, Words]:
        """Applies records; what comes out, and the words of post-dated records: (time, key, values...) each."""
        if self._drive is None:
            with compiled_arithmetic():
                return self._apply_plain(time, keys, values)
        table, returns = self.table, self.fold.returns != "nothing"
        outputs = [np.empty(len(keys) if returns else 0, stored(kind)) for _, kind in self._outputs]
        count, emitted, later = self._drive(
            table.entries, table.words, table.meta, table.ctl, table.homes, table.stride, table.shift, time, keys,
            keys.view(np.int64), *values, *outputs,
        )  # fmt: skip
        if count == allocation.FULL:
            raise table.full()
        if returns:
            out = {name: array[:count] for (name, _), array in zip(self._outputs, outputs, strict=True)}
            return Columns.trusted(self._timed(out) if self._has_times else out, int(count)), later
        return self._from_words(emitted), later

    def _from_words(self, words: Words) -> Columns | None:
        """The rows that were emitted, as columns."""
        width = len(self._outputs)
        if not width or not words.size:
            return None
        table = words.reshape(-1, width)
        columns = {}
        with np.errstate(all="ignore"):  # a float32 overflows as silently as in compiled code
            for i, (name, kind) in enumerate(self._outputs):
                columns[name] = np.ascontiguousarray(table[:, i]).view(widest(kind)).astype(stored(kind), copy=False)
        return Columns.trusted(self._timed(columns) if self._has_times else columns, len(table))

    def _timed(self, columns: dict[str, Values]) -> dict[str, Values]:
        """Counts as the moments and time spans that they are declared to be."""
        for name, kind in self._outputs:
            if kind.kind in "mM":
                columns[name] = with_zone(columns[name].view(kind), self.fold.zones.get(name))
        return columns

    # Compiled

    def _compile(self) -> Drive:
        from numba import typeof, types

        from dataflow.state.folds.compiling import Module

        module = Module(
            self.fold.function,
            head(() if self._value is None else self._names),
            loop(self.fold, self._names, self._alone, self.table.dense, self.spelled) + f"# {self._types()}\n",
        )
        table = self.table
        words = types.uint64[::1]

        def read(kind: np.dtype[np.generic] | type[np.generic]) -> Type:
            array: Type = typeof(np.empty(0, kind)).copy(readonly=True)  # what Arrow gives cannot be written to
            return array

        signature = [
            typeof(table.entries), words, types.int32[::1, :], types.int64[::1], words, types.int64, types.uint64,
            types.int64, read(np.uint64), read(np.int64), *(read(kind) for kind in self.kinds),
            *[read(np.uint64)] * self.spelled, *(typeof(np.empty(0, stored(kind))) for _, kind in self._outputs),
        ]  # fmt: skip
        return module.compile(tuple(signature))

    def _types(self) -> str:
        """What the compiled code depends on besides its text."""
        kinds = [str(kind) for kind in (*self.kinds, *(stored(kind) for _, kind in self._outputs))]
        return f"{self.table.dtype.descr} {kinds}"

    # Plain

    def _apply_plain(self, time: int, keys: Words, values: Sequence[Values]) -> tuple[Columns | None, Words]:
        fold, table = self.fold, self.table
        emit = PlainRows([widest(kind) for _, kind in self._outputs])
        later = PlainRows(list(fold.pending.values()))
        signed = keys.view(np.int64)
        row = np.empty(1, np.int64)
        for i in range(len(keys)):
            table.ctl[allocation.AT] = i
            if not table.locate(keys[i : i + 1], row, fold.create):
                continue
            state = PlainState(table.entries, int(row[0]))
            if fold.ttl is not None and state.last_seen and time - state.last_seen >= fold.ttl:
                first = 0 if table.dense else 1  # the tag of the key stays
                table.words[int(row[0]) * table.stride + first : (int(row[0]) + 1) * table.stride] = 0
            self._spell_plain(state, [column[i] for column in values[len(self._names) :]])
            later.key = int(keys[i])
            value = self._plain_value([column[i] for column in values[: len(self._names)]])
            known = {
                "time": np.int64(time), "key": signed[i], "value": value, "state": state, "emit": emit, "later": later,
            }  # fmt: skip
            try:
                result = fold(*(known[name] for name in fold.parameters))
            except (FloatingPointError, RuntimeWarning) as error:  # what compiled code raises
                raise ZeroDivisionError(*error.args) from error
            if fold.ttl is not None:
                state.last_seen = time + 1
            if result is not None:
                emit.row(*(result if fold.returns == "rows" else (result,)))
            if fold.forget is not None and getattr(state, fold.forget):
                table.forget(keys[i : i + 1])
        return self._from_words(emit.words()), later.words()

    def _spell_plain(self, state: PlainState, words: list[Value]) -> None:
        fields = [f"{SPELLED}{number}" for number in range(len(words))]
        if fields and getattr(state, fields[0]) == 0:
            for field, word in zip(fields, words, strict=True):
                setattr(state, field, word)
        elif any(getattr(state, field) != word for field, word in zip(fields, words, strict=True)):
            raise ValueError(SAME_HASH)

    def _plain_value(self, values: list[Value]) -> Value:
        if self._value is not None:
            return self._value(*values)
        return values[0] if values else None


def _check_names(fold: Fold, names: tuple[str, ...], alone: bool) -> None:
    """Several value columns are attributes of `value`."""
    for name in () if alone else names:
        if not name.isidentifier() or iskeyword(name) or name.startswith("_") or names.count(name) > 1:
            raise FoldError(f"{fold.name}: {name!r} cannot be an attribute of `value`: rename the column first")


@contextmanager
def compiled_arithmetic() -> Iterator[None]:
    """numpy's scalars as compiled code has them: integers wrap around, and dividing by zero is an error.

    Compiled code raises for 0/0 as well, which to numpy is as invalid as inf - inf, about which nobody complains.
    """
    with np.errstate(over="ignore", under="ignore", divide="raise", invalid="warn"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "invalid value", RuntimeWarning)
        division = r"invalid value encountered in (scalar )?(divide|floor_divide|remainder|divmod)"
        warnings.filterwarnings("error", division, RuntimeWarning)
        yield


class PlainArray(np.ndarray[tuple[int, ...], np.dtype[np.generic]]):
    """An array in the state, whose elements are those that compiled code would see."""

    def __getitem__(self, index: Value) -> Value:
        item: Value = super().__getitem__(index)
        return as_compiled(item) if isinstance(item, np.generic) else item


class PlainState:
    """A row of state for folds that run uncompiled: its fields as attributes."""

    __slots__ = ("_entries", "_row")

    def __init__(self, entries: NDArray[np.void], row: int) -> None:
        object.__setattr__(self, "_entries", entries)
        object.__setattr__(self, "_row", row)

    def __getattr__(self, name: str) -> Value:
        try:
            value = self._entries[name][self._row]
        except ValueError:
            raise AttributeError(f"the state has no field {name!r}") from None
        return value.view(PlainArray) if isinstance(value, np.ndarray) else as_compiled(value)

    def __setattr__(self, name: str, value: Value) -> None:
        if name not in (self._entries.dtype.names or ()):
            raise AttributeError(f"the state has no field {name!r}")
        self._entries[name][self._row] = np.asarray(value).astype(self._entries.dtype[name].base)
