"""The records of one stream in the window: a ring that has their values as well, 64 bits for each column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dataflow.columns.batch import Array, Column, Columns
from dataflow.columns.zones import plain, with_zone, zone_of
from dataflow.comm.values.arrays import dtype_name, safe_dtype
from dataflow.state.arrays import Ints, Words
from dataflow.state.stores.join_store import Kind, narrow, widen
from dataflow.state.values import Value
from megaphone.plans.columns import kernels
from megaphone.plans.columns.rings import Ring


class Schema:
    """The columns of a stream, as its first batch or the first bin had them."""

    def __init__(self, names: Sequence[str], kinds: Sequence[Kind]) -> None:
        self.names = tuple(names)
        self.kinds = tuple(kinds)

    def encode(self) -> Value:
        """Plain data."""
        kinds = zip(self.names, self.kinds, strict=True)
        return [[name, dtype_name(kind.dtype), kind.zone] for name, kind in kinds]

    @staticmethod
    def decode(data: Value) -> Schema:
        """From plain data."""
        return Schema([name for name, *_ in data], [Kind(safe_dtype(dtype), zone) for _, dtype, zone in data])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self.names, self.kinds) == (other.names, other.kinds)

    def __hash__(self) -> int:
        return hash((self.names, self.kinds))

    def __str__(self) -> str:
        return ", ".join(f"{name} ({kind})" for name, kind in zip(self.names, self.kinds, strict=True))

    @property
    def record(self) -> np.dtype[np.void]:
        """A record as predicates see it: each field has 64 bits."""
        kinds = [{"f": "f8", "u": "u8"}.get(kind.dtype.kind, "i8") for kind in self.kinds]
        return np.dtype([*zip(self.names, kinds, strict=True)])


class SourceRing(Ring):
    """The records of one stream."""

    def __init__(self, name: str, stream: str, bins: int, shift: int) -> None:
        super().__init__(bins, shift, 0)
        self._what = f"{name}: the stream {stream!r}"
        self.schema: Schema | None = None
        self.values: Words = np.empty((len(self.rows), 0), np.uint64)

    def adopt(self, schema: Schema) -> None:
        """Learns its columns; TypeError if they were others."""
        if self.schema is None:
            self.schema = schema
            self.values = np.empty((len(self.rows), len(schema.names)), np.uint64)
        elif self.schema != schema:
            raise TypeError(
                f"{self._what} has the columns {schema}, and had {self.schema} before: send the same columns, each "
                "with one type, on all workers"
            )

    def words_of(self, batch: Columns) -> Words:
        """The values of a batch."""
        names = batch.names if self.schema is None else self.schema.names
        if set(names) != set(batch.names):
            raise TypeError(f"{self._what} has the columns {', '.join(batch.names)}, and had {', '.join(names)} before")
        arrays = [self._number(batch.column(name), name) for name in names]
        self.adopt(Schema(names, [Kind(array.dtype, zone_of(array)) for array in arrays]))
        values = np.empty((len(batch), len(arrays)), np.uint64)
        for i, array in enumerate(arrays):
            values[:, i] = widen(plain(array))
        return values

    def _number(self, column: Column, name: str) -> Array:
        if not isinstance(column, np.ndarray) or column.dtype.kind == "c" or column.itemsize > 8:
            raise TypeError(f"{self._what}: column {name!r} cannot be kept in a join: encode it as integers first")
        return column

    def put(self, values: Words) -> None:
        """Sets the values of the rows that are about to be added, for which there is room."""
        at, room = self.end & (len(self.rows) - 1), len(self.rows)
        fits = min(len(values), room - at)
        self.values[at : at + fits] = values[:fits]
        self.values[: len(values) - fits] = values[fits:]

    def resize(self, room: int) -> None:
        self.values = self.moved(self.values, room)
        super().resize(room)

    def columns(self, parts: Ints, place: int, prefix: str) -> dict[str, Array]:
        """The values of components, by the names of columns."""
        if self.schema is None:
            return {}
        out = np.empty((len(self.schema.names), len(parts)), np.uint64)
        kernels.gather(parts, place, self.values, out)
        return {
            prefix + name: with_zone(narrow(words, kind.dtype), kind.zone)
            for name, kind, words in zip(self.schema.names, self.schema.kinds, out, strict=True)
        }

    def records(self) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """The values as records, by row."""
        assert self.schema is not None, "there is a record"
        return self.values.view(self.schema.record).reshape(-1)
