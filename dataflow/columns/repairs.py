"""What columns cannot hold, made into what they can: missing numbers, and decimals.

A column of numbers has no missing values, and no decimals: compiled code could not work with them. Data from outside
has both. So whoever reads it says what they mean: `missing` and `decimals`, of sources of columns and of frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

Missing: TypeAlias = 'Literal["error", "drop", "nan"] | Mapping[str, Value]'
"""What becomes of missing numbers: an error; their rows are left out; not-a-number (not-a-time), which makes floats of
integers; or by column the value in their place, in which case strings are filled in as well."""
_MOST = 18  # digits behind the point of a scaled integer
_NOT_A_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Repairs:
    """What is to be made of what columns cannot hold. `decimals`: by column, how many digits behind the point are kept:
    3.14 is the integer 314 with two. Digits beyond them are an error, never rounded."""

    missing: Missing = "error"
    decimals: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.missing, Mapping) and self.missing not in ("error", "drop", "nan"):
            raise ConstructionError(
                f"missing= is 'error', 'drop', 'nan' or values by column, such as {{'price': 0}}, not {self.missing!r}"
            )
        for name, digits in self.decimals.items():
            if type(digits) is not int or not 0 <= digits <= _MOST:
                raise ConstructionError(f"decimals= of {name!r} is a number of digits up to {_MOST}, not {digits!r}")

    @property
    def nothing(self) -> bool:
        """Whether nothing is to be done."""
        return self.missing == "error" and not self.decimals

    def columns(self, given: Value) -> Columns:
        """The columns of a table, batch or frame that speaks Arrow."""
        if self.nothing:
            return Columns(given)
        import pyarrow as pa

        table = pa.table(given)
        for place, name in enumerate(table.column_names):
            column = table.column(place)
            if name in self.decimals:
                column = scaled(column, self.decimals[name], name)
            if column.null_count and self.missing not in ("error", "drop"):
                column = self._filled(column, name)
            table = table.set_column(place, name, column)
        return Columns(_without_missing(table) if self.missing == "drop" else table)

    def _filled(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(self.missing, Mapping):
            try:
                return pc.fill_null(column, self.missing[name]) if name in self.missing else column
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise TypeError(
                    f"column {name!r} cannot have {self.missing[name]!r} for what is missing: {error}"
                ) from None
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            try:
                return pc.fill_null(column.cast(pa.float64()), float("nan"))
            except pa.ArrowInvalid as error:
                raise ValueError(f"column {name!r} cannot be floats, as missing='nan' makes it: {error}") from None
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            return pc.fill_null(column.cast(pa.int64()), _NOT_A_TIME).cast(kind)
        return column  # strings may be missing; of others, what is missing is an error that names it


def _without_missing(table: pa.Table) -> pa.Table:
    """The rows of which no number is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    views = (pa.types.is_string_view, pa.types.is_binary_view, pa.types.is_dictionary)
    for column in table.columns:
        if column.null_count and not any(test(column.type) for test in (*texts, *views)):
            table = table.filter(pc.is_valid(column))
            return _without_missing(table)
    return table


def scaled(column: pa.ChunkedArray, digits: int, name: str) -> pa.ChunkedArray:
    """Decimals (or integers) as integers of 64 bits, by so many digits behind the point. ValueError if one has more
    digits, or does not fit."""
    import pyarrow as pa

    if not (pa.types.is_decimal(column.type) or pa.types.is_integer(column.type)):
        raise TypeError(f"column {name!r} holds {column.type}, and decimals= is for decimals")
    try:
        chunks = [_words(chunk.cast(pa.decimal128(38, digits)), name) for chunk in column.chunks]
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {name!r} has decimals of which {digits} digits lose something: {error}") from None
    return pa.chunked_array(chunks, pa.int64())


def _words(chunk: pa.Array, name: str) -> pa.Array:
    """The integers under decimals of 128 bits."""
    import pyarrow as pa

    data = chunk.buffers()[1]
    halves = np.frombuffer(data, np.int64).reshape(-1, 2)[chunk.offset : chunk.offset + len(chunk)]
    low, high = np.ascontiguousarray(halves[:, 0]), halves[:, 1]
    there = np.asarray(chunk.is_valid())
    if ((high != low >> 63) & there).any():
        raise ValueError(f"column {name!r} has decimals that are no integers of 64 bits: keep fewer digits")
    return pa.array(low, mask=~there)


def unscaled(table: pa.Table, decimals: Mapping[str, int]) -> pa.Table:
    """The other way: integers as decimals with so many digits behind the point."""
    import pyarrow as pa

    for name, digits in decimals.items():
        place = table.schema.get_field_index(name)
        if place < 0 or not pa.types.is_integer(table.schema.field(place).type):
            raise TypeError(f"decimals=: there is no column {name!r} of integers; there are {table.column_names}")
        low = np.asarray(table.column(place).cast(pa.int64()))
        halves = np.stack([low, low >> 63], axis=1)
        column = pa.Array.from_buffers(pa.decimal128(20, digits), len(low), [None, pa.py_buffer(halves)])
        table = table.set_column(place, name, column)
    return table
