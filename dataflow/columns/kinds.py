"""What the columns of an operator hold, from the first batch on: whoever sends something else later is refused.

Windows put batches together only if these happen to meet: with records of one window, and of one key. Whether two time
zones are refused must not depend on that. So each worker notes what its columns hold (`ColumnKinds`), and tells all
others once (`agreed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dataflow.build.builder import unary
from dataflow.build.cuts import Keeps
from dataflow.channels.pact import Batch, Pact
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.arrow import type_name
from dataflow.columns.batch import Columns
from dataflow.columns.column import Column
from dataflow.columns.zones import zone_of

if TYPE_CHECKING:
    from dataflow.build.stream import Stream


class ColumnKinds:
    """What each of some columns holds. Units may differ from batch to batch, and so may the widths of numbers.

    `columns`: by name, the column that a user knows it as, or that it was made of.
    """

    def __init__(self, operator: str, columns: Mapping[str, str]) -> None:
        self._operator = operator
        self._columns = columns
        self._first: Columns | None = None  # the first batch, cut down to no row

    def check(self, batch: Columns) -> None:
        """TypeError if a column holds something else than before."""
        if not len(batch):
            return  # the type of an empty column means nothing
        if self._first is None:
            self._first = batch.select(tuple(self._columns)).take(np.empty(0, np.int64))
            return
        for name, known_as in self._columns.items():
            before, now = self._first.column(name), batch.column(name)
            if _kind(before) != _kind(now):
                raise TypeError(
                    f"{self._operator}: column {known_as!r} holds {type_name(before)} and {type_name(now)} in "
                    "different batches: make them one type first"
                )


def _kind(column: Column) -> tuple[str, str | None]:
    """Columns of one kind can be put together."""
    if not isinstance(column, np.ndarray):
        return type_name(column).removeprefix("large_"), None
    return (column.dtype.kind, zone_of(column)) if column.dtype.kind in "mM" else ("numbers", None)


class ToldOnce(Pact):
    """Every worker gets a row of the first batch, and nothing of the others."""

    name = "told once"
    validates = True  # or one worker would get all batches

    def __init__(self) -> None:
        self._told = False

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        if self._told or not isinstance(batch, Columns):  # the operator itself refuses rows
            return [[]] * peers
        self._told = True
        return [batch.slice(0, 1)] * peers


def agreed(stream: Stream[Columns], operator: str, columns: Mapping[str, str]) -> None:
    """Has all workers compare what these columns hold in a stream."""
    kinds = ColumnKinds(operator, columns)

    def step(input: InputPort[Columns], output: OutputPort[Columns]) -> None:
        for _, batch in input:
            kinds.check(batch)

    unary(stream, f"{operator} (types)", lambda _: step, pact=ToldOnce(), keeps=Keeps.NOTHING)
