"""Steps without state, in one pass of Arrow's functions over each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow.columns import Columns, arrow
from dataflow.columns.column import Column
from megaphone.frames.expressions import Expression


@dataclass(frozen=True)
class Keeping:
    """Keeps the rows for which an expression is true."""

    where: Expression

    @property
    def needs(self) -> frozenset[str]:
        """The columns that it looks at."""
        return self.where.needs

    def __repr__(self) -> str:
        return f"filter {self.where.arrow}"


@dataclass(frozen=True)
class Making:
    """Makes columns; the others stay (`adds`) or go."""

    columns: Mapping[str, Expression]
    adds: bool

    @property
    def needs(self) -> frozenset[str]:
        """The columns that it looks at."""
        return frozenset().union(*(each.needs for each in self.columns.values()))

    def __repr__(self) -> str:
        made = ", ".join(f"{name} = {each.arrow}" for name, each in self.columns.items())
        return f"{'with columns' if self.adds else 'select'} {made}"


Stateless: TypeAlias = Keeping | Making


def run(steps: Sequence[Stateless], wanted: Sequence[str] | None, batch: Columns) -> Columns:
    """All steps over a batch, in one pass. `wanted`: the columns that are left at the end; None: all. Columns that
    nobody needs any more are left behind, and those that stay as they are cost nothing."""
    after = None if wanted is None else frozenset(wanted)
    columns: dict[str, Column] = batch.columns
    length = len(batch)
    for place, step in enumerate(steps):
        values = _Values(columns)
        if isinstance(step, Keeping):
            mask = _mask(step.where.evaluate(values), length)
            live = needed(steps[place + 1 :], after)
            numbers = mask.to_numpy(zero_copy_only=False)
            columns = {
                name: column[numbers] if isinstance(column, np.ndarray) else pc.filter(column, mask)
                for name, column in columns.items()
                if live is None or name in live
            }
            length = int(np.count_nonzero(numbers))
        else:
            made = {name: _made(each, columns, values, length) for name, each in step.columns.items()}
            columns = {**columns, **made} if step.adds else made
    return Columns(columns if wanted is None else {name: columns[name] for name in wanted})


class _Values(dict[str, pa.Array]):
    """Columns as Arrow has them, made when they are first asked for."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = columns

    def __call__(self, name: str) -> pa.Array:
        if name not in self:
            if name not in self._columns:
                raise KeyError(f"there is no column {name!r}; there are {', '.join(self._columns)}")
            column = self._columns[name]
            self[name] = arrow.to_arrow(name, column) if isinstance(column, np.ndarray) else column
        return self[name]


def _made(each: Expression, columns: Mapping[str, Column], values: _Values, length: int) -> Column:
    if each.is_column and (name := next(iter(each.needs))) in columns:
        return columns[name]
    found = each.evaluate(values)
    made: Column = pa.repeat(found, length) if isinstance(found, pa.Scalar) else found
    return made


def _mask(found: pa.Array | pa.Scalar, length: int) -> pa.Array:
    """Which rows are kept: not those of which nobody knows."""
    mask = pa.repeat(found, length) if isinstance(found, pa.Scalar) else found
    if not pa.types.is_boolean(mask.type):
        raise TypeError(f"a filter needs an expression that is true or false, and this is {mask.type}")
    return mask.fill_null(False) if mask.null_count else mask


def needed(steps: Sequence[Stateless], after: frozenset[str] | None) -> frozenset[str] | None:
    """The columns that steps need so that those of `after` come out; None: nobody knows, so all."""
    for step in reversed(steps):
        if isinstance(step, Keeping):
            after = None if after is None else after | step.needs
        elif step.adds:
            after = None if after is None else (after - frozenset(step.columns)) | step.needs
        else:
            after = step.needs
    return after
