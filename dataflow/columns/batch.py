"""A batch of named columns of one length: numpy arrays for numbers and dates, Arrow arrays for strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.columns import arrow
from dataflow.columns.zones import Zoned, zone_of

Array: TypeAlias = NDArray[Any]
Column: TypeAlias = Any
"""A numpy array of one dimension, or an Arrow array."""
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

    def __init__(self, data: Any) -> None:
        if isinstance(data, Columns):
            data = data._columns
        columns = data if isinstance(data, Mapping) else arrow.from_frame(data)
        self._columns: dict[str, Column] = {}  # invariant: one dimension, one length
        for name, values in columns.items():
            self._columns[str(name)] = _column(name, values)
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have one length: {lengths}")
        self._length = next(iter(lengths.values()), 0)

    @classmethod
    def trusted(cls, columns: dict[str, Column], length: int) -> Columns:
        """Takes over columns that are known to be right: no checks, no copies."""
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

    def __getitem__(self, name: str) -> Column:
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

    def filter(self, mask: Any) -> Columns:
        """The rows for which the mask is true."""
        keep = arrow.as_mask(mask, self._length)
        return self if keep.all() else self.take(np.flatnonzero(keep))

    def divide(self, numbers: Sequence[int], parts: int) -> list[Columns]:
        """So many batches: each row is in that of its number, in order."""
        order = np.asarray(numbers, np.int64)
        return [self.take(np.flatnonzero(order == part)) for part in range(parts)]

    def select(self, names: Sequence[str]) -> Columns:
        """Only these columns, in this order."""
        return Columns.trusted({name: self[name] for name in names}, self._length)

    def with_columns(self, columns: Mapping[str, Any]) -> Columns:
        """These columns added, or put in the place of those with their names."""
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
            plain = all(type(part) is np.ndarray and part.dtype is column.dtype for part in parts)
            columns[name] = np.concatenate(parts) if plain else arrow.join(name, parts)  # most are of one kind
        return Columns.trusted(columns, sum(map(len, batches)))

    @staticmethod
    def alike(batches: Sequence[Columns]) -> bool:
        """Whether batches have the same columns, all of them numpy's and of the same types: to put them together then
        changes nothing about any."""
        kinds = None
        for batch in batches:
            columns = batch._columns
            others = set(map(type, columns.values())) - _NUMPY
            if others - _ARRAYS:
                return False
            mine: list[Any] = [*columns, *(column.dtype for column in columns.values())]
            if others:
                mine += map(zone_of, columns.values())
            if kinds is None:
                kinds = mine
            elif mine != kinds:
                return False
        return True

    # Given back

    def to_dict(self) -> dict[str, Column]:
        """The columns by name."""
        return self.columns

    def rows(self) -> list[tuple[Any, ...]]:
        """As tuples of plain Python values. Slow: for tests and for people."""
        if not self._columns:
            return [()] * self._length
        return list(zip(*(arrow.to_list(column) for column in self._columns.values()), strict=True))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def to_arrow(self) -> Any:
        """As a pyarrow.Table; numbers are not copied."""
        return arrow.to_table(self._columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """As a pandas.DataFrame (pandas must be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """As a polars.DataFrame (polars must be installed)."""
        import polars

        return polars.from_arrow(self.to_arrow())


def _column(name: Any, values: Any) -> Column:
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
