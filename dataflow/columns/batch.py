"""A batch of named columns of one length: numpy arrays for numbers and dates, Arrow arrays for strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dataflow.columns import arrow
from dataflow.columns.column import Array, Column
from dataflow.columns.zones import Zoned, zone_of
from dataflow.values import Value

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Array", "Column", "Columns"]

Given: TypeAlias = Value
"""What a user makes a batch or a column of: arrays, lists, strings, frames. Checked when it arrives."""
_NUMPY = {np.ndarray}
_ARRAYS = {np.ndarray, Zoned}


class Columns:
    """Named columns of one length: what a batch of records is when speed matters. Not to be changed in place.

    Made from a mapping of names to arrays, lists or strings; from an Arrow table or batch, a pandas or polars frame, or
    anything else with `__arrow_c_stream__`. Numbers are not copied.

    >>> batch = Columns({"key": [1, 2, 3], "word": ["a", "b", "a"]})
    >>> len(batch), batch["key"].sum(), batch.names
    (3, np.int64(6), ('key', 'word'))
    >>> batch.filter(batch["key"] > 1).rows()
    [(2, 'b'), (3, 'a')]
    """

    __slots__ = ("_columns", "_length")

    def __init__(self, data: Given) -> None:
        if isinstance(data, Columns):
            data = data._columns
        given = data if isinstance(data, Mapping) else arrow.from_frame(data)
        self._columns: Mapping[str, Column]  # invariant: one dimension, one length
        self._columns = {str(name): _column(name, values) for name, values in given.items()}
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have one length: {lengths}")
        self._length = next(iter(lengths.values()), 0)

    @classmethod
    def trusted(cls, columns: Mapping[str, Column], length: int) -> Columns:
        """Takes over columns that are known to be right: no checks, no copies. Nobody may change the mapping later."""
        made = cls.__new__(cls)
        made._columns = columns
        made._length = length
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name (a new dictionary of the same columns)."""
        return dict(self._columns)

    @property
    def nbytes(self) -> int:
        """The size of the data."""
        return sum(column.nbytes for column in self._columns.values())

    def __getitem__(self, name: str) -> Value:
        """A column, for whoever knows what it holds: arithmetic on numbers, Arrow's functions on strings."""
        return self.column(name)

    def column(self, name: str) -> Column:
        """A column, for whoever has to ask what it holds."""
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self.names)}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {arrow.type_name(column)}" for name, column in self._columns.items())
        return f"<{self._length} rows of {columns}>"

    def __eq__(self, other: object) -> bool:
        """Equal names, in order, and equal values; not-a-number and not-a-time equal themselves here."""
        if not isinstance(other, Columns) or self.names != other.names or len(self) != len(other):
            return NotImplemented if not isinstance(other, Columns) else False
        return all(_same(self._columns[name], other._columns[name]) for name in self._columns)

    __hash__ = None  # type: ignore[assignment]

    # Parts, and other columns

    def slice(self, start: int, end: int) -> Columns:
        """Rows from `start` up to `end`, without copying."""
        start, end, _ = slice(start, end).indices(self._length)
        length = max(0, end - start)
        columns = {
            name: column[start : start + length] if type(column) is np.ndarray else arrow.part(column, start, length)
            for name, column in self._columns.items()
        }
        return Columns.trusted(columns, length)

    def take(self, rows: Array) -> Columns:
        """The rows with these numbers, in this order."""
        numbers = np.asarray(rows, None if len(rows) else np.int64)
        return Columns.trusted({name: c.take(numbers) for name, c in self._columns.items()}, len(numbers))

    def filter(self, mask: Given) -> Columns:
        """The rows for which the mask is true."""
        keep = arrow.as_mask(mask, self._length)
        return self if keep.all() else self.take(np.flatnonzero(keep))

    def divide(self, numbers: Sequence[int], parts: int) -> list[Columns]:
        """`parts` batches: row i goes to batch `numbers[i]`. Rows keep their order."""
        order = np.asarray(numbers, np.int64)
        return [self.take(np.flatnonzero(order == part)) for part in range(parts)]

    def select(self, names: Sequence[str]) -> Columns:
        """Only these columns, in this order."""
        return Columns.trusted({name: self.column(name) for name in names}, self._length)

    def with_columns(self, columns: Mapping[str, Given]) -> Columns:
        """The batch with these columns added; a column with a name that is there already replaces that one."""
        return Columns({**self._columns, **columns})

    @staticmethod
    def concat(batches: Sequence[Columns]) -> Columns:
        """All rows of several batches with the same columns."""
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return Columns({})
        first = batches[0]._columns
        for batch in batches:
            if batch._columns.keys() != first.keys():
                raise ValueError(f"batches have different columns: {batches[0].names} and {batch.names}")
        columns: dict[str, Column] = {}
        for name, column in first.items():
            parts = [batch._columns[name] for batch in batches]
            kind = column.dtype if isinstance(column, np.ndarray) else None
            plain = [part for part in parts if type(part) is np.ndarray and part.dtype is kind]
            columns[name] = np.concatenate(plain) if len(plain) == len(parts) else arrow.join(name, parts)
        return Columns.trusted(columns, sum(map(len, batches)))

    @staticmethod
    def alike(batches: Sequence[Columns]) -> bool:
        """Whether batches have the same columns, all of them numpy's and of the same types: concatenating them then
        changes no type."""
        kinds = None
        for batch in batches:
            columns = batch._columns
            others = set(map(type, columns.values())) - _NUMPY
            if others - _ARRAYS:
                return False
            mine: list[object] = [*columns, *(c.dtype for c in columns.values() if isinstance(c, np.ndarray))]
            if others:
                mine += map(zone_of, columns.values())
            if kinds is None:
                kinds = mine
            elif mine != kinds:
                return False
        return True

    # Batches in other forms

    def to_dict(self) -> dict[str, Column]:
        """The columns by name."""
        return self.columns

    def rows(self) -> list[tuple[Value, ...]]:
        """As tuples of plain Python values. Slow: for tests and for people."""
        if not self._columns:
            return [()] * self._length
        return list(zip(*(arrow.to_list(column) for column in self._columns.values()), strict=True))

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.rows())

    def to_arrow(self, decimals: Mapping[str, int] | None = None) -> pyarrow.Table:
        """As a pyarrow.Table; numbers are not copied. `decimals`: by column of scaled integers, how many digits are
        behind the point."""
        table: pyarrow.Table = arrow.to_table(self._columns)
        if not decimals:
            return table
        from dataflow.columns.repairs import unscaled

        return unscaled(table, decimals)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas.DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a polars.DataFrame (polars must be installed)."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame


def _column(name: object, values: Given) -> Column:
    known = type(values) is np.ndarray and values.dtype.kind in "iufcbmM"
    column: Column = values if known else arrow.to_column(name, values)
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise ValueError(f"column {name!r} has {column.ndim} dimensions; a column has one")
    return column


def _same(left: Column, right: Column) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        if zone_of(left) != zone_of(right):
            return False
        both = {left.dtype.kind, right.dtype.kind}
        return bool(np.array_equal(left, right, equal_nan=both <= set("fc") or both == {"M"} or both == {"m"}))
    return arrow.to_list(left) == arrow.to_list(right)
