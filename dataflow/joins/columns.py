"""Joins over event time on columns: how batches become groups of records by key, and pairs become columns.

Rows of a batch are at their own times, which a column has, and not at the batch's: that is not after any of them. What
comes out is likewise: columns, at a time that is not after any of their rows'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dataflow.build.builder import Context, unary
from dataflow.build.cuts import Keeps
from dataflow.build.stream import Stream
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.columns.grouping import group
from dataflow.columns.repairs import Missing, Repairs
from dataflow.columns.zones import plain, with_zone
from dataflow.events.moments import Moments
from dataflow.joins.folds import LEFT, RIGHT, Sided
from dataflow.time.timestamp import unit_of
from dataflow.values import Record, Value

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: its columns by their names in the result (those of the key are not told twice), the columns
    of its key, and that of its times. `removed`: of a table, the column that says which rows take others out."""

    names: Mapping[str, str]
    on: tuple[str, ...]
    time: str
    removed: str | None = None


@dataclass(frozen=True)
class ColumnJoin:
    """What a join of columns does before and behind its state. `types`: by column of the result, what is known of it.
    `panes`: times are rounded up to multiples of it, in the dataflow's unit. `stamp`: the column that says at which
    time a row of the result is, with moments or integers; None if the left side's time is that."""

    name: str
    left: JoinSide
    right: JoinSide
    types: Mapping[str, pa.DataType | None]
    missing: Missing
    panes: int | None
    stamp: str | None
    moments: bool | str  # or the name of the zone of the moments

    # Before the state

    def prepare(self, left: Stream[Columns], right: Stream[Columns]) -> Stream[Sided]:
        """The rows of both sides as (key, side, times, rows)."""
        return self._grouped(left, LEFT).concat(self._grouped(right, RIGHT))

    def _grouped(self, stream: Stream[Columns], side: int) -> Stream[Sided]:
        which = (self.left, self.right)[side]
        times = Moments(self.name, which.time, unit_of(stream.scope.domain))

        def step(input: InputPort, output: OutputPort[Sided]) -> None:
            for message, batch in input:
                if not isinstance(batch, Columns):
                    raise TypeError(f"{self.name} joins columns, and rows came")
                if len(batch):
                    output.give(message, self._groups(batch, times, which, side))

        def make(_: Context) -> Callable[[InputPort, OutputPort[Sided]], None]:
            return step

        title = f"{self.name} ({('left', 'right')[side]})"
        return unary(stream, title, make, keeps=Keeps.NOTHING)

    def _groups(self, batch: Columns, times: Moments, side: JoinSide, number: int) -> list[Sided]:
        at = times.of_columns(batch)
        if self.panes is not None:
            at = (at // self.panes + 1) * self.panes
        order, starts = group(batch, side.on)
        each = at[order].tolist()
        rows: list[Record] = batch.select([*side.names.values()]).take(order).rows()
        if side.removed is not None:
            gone = batch[side.removed][order].tolist()
            rows = [None if out else row for out, row in zip(gone, rows, strict=True)]
        keys = _keys(batch.select(side.on).take(order[starts]), side.on)
        bounds = [*starts.tolist(), len(rows)]
        return [
            (key, number, each[since:until], rows[since:until])
            for key, since, until in zip(keys, bounds[:-1], bounds[1:], strict=True)
        ]

    # Behind it

    def present(self, stream: Stream[Record]) -> Stream[Columns]:
        """Pairs as columns."""
        unit = unit_of(stream.scope.domain)

        def step(input: InputPort, output: OutputPort) -> None:
            for message, batch in input:
                output.give(message, self._in_columns(batch, unit))

        def make(_: Context) -> Callable[[InputPort, OutputPort], None]:
            return step

        return unary(stream, f"{self.name} (results)", make, keeps=Keeps.NOTHING)

    @cached_property
    def _places(self) -> list[int]:
        """Where the right side has the columns of the key, in the order of the left side's names."""
        theirs = [*self.right.names.values()]
        return [theirs.index(dict(zip(self.left.on, self.right.on, strict=True))[name]) for name in self.left.on]

    def _in_columns(self, batch: list[Record], unit: str) -> Columns:
        import pyarrow as pa

        rows = [self._row(left, right) for _, left, right in batch]
        arrays: list[pa.Array] = []
        names = [*self.left.names, *self._others]
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            array = pa.array(values, self.types.get(name))  # of an unknown type only strings may be missing
            arrays.append(array.cast(pa.string()) if pa.types.is_null(array.type) else array)
        table = pa.table(arrays, names)
        found = Repairs(self.missing).columns(table)
        if self.stamp is None:
            return found
        stamps = np.array([at for at, _, _ in batch], f"M8[{unit}]" if self.moments else np.int64)
        zone = self.moments if isinstance(self.moments, str) else None
        return found.with_columns({self.stamp: with_zone(stamps, zone)})

    @cached_property
    def _others(self) -> list[str]:
        """The columns of the right side but for those of its key."""
        return [name for name, own in self.right.names.items() if own not in self.right.on]

    @cached_property
    def _kept(self) -> list[int]:
        return [place for place, own in enumerate(self.right.names.values()) if own not in self.right.on]

    def _row(self, left: Record, right: Record) -> Sequence[Value]:
        if right is None:
            return (*left, *(None for _ in self._kept))
        others = [right[place] for place in self._kept]
        if left is not None:
            return (*left, *others)
        key = dict(zip(self.left.on, (right[place] for place in self._places), strict=True))
        return (*(key.get(own) for own in self.left.names.values()), *others)


def _keys(firsts: Columns, on: Sequence[str]) -> list[Value]:
    """The key of each row: a value, or a tuple of several. What is missing, or not a number, is None."""
    columns = [_comparable(firsts.select([name]), name) for name in on]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _comparable(batch: Columns, name: str) -> list[Value]:
    """Moments of any unit as nanoseconds, since both sides need not have one unit."""
    column = batch.column(name)
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        exact = plain(column).astype(f"{column.dtype.kind}8[ns]").view(np.int64).tolist()
        return [None if missing else each for missing, each in zip(np.isnat(column).tolist(), exact, strict=True)]
    return [None if value is None or value != value else value for (value,) in batch.rows()]
