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
from megaphone.plans.columns.pages import Pages, stride
from megaphone.plans.columns.rings import Delta, Ring


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
        """A row as predicates see it: the record's fields, of 64 bits each, behind what every row has."""
        kinds = [{"f": "f8", "u": "u8"}.get(kind.dtype.kind, "i8") for kind in self.kinds]
        offsets = [8 * (kernels.PARTS + i) for i in range(len(kinds))]
        size = 8 * stride(kernels.PARTS + len(kinds))
        return np.dtype({"names": [*self.names], "formats": kinds, "offsets": offsets, "itemsize": size})


class SourceRing(Ring):
    """The records of one stream."""

    is_source = True

    def __init__(self, name: str, stream: str, bins: int, shift: int) -> None:
        super().__init__(bins, shift, 0)
        self._what = f"{name}: the stream {stream!r}"
        self.schema: Schema | None = None

    def adopt(self, schema: Schema) -> None:
        """Learns its columns; TypeError if they were others."""
        if self.schema is None:
            self.schema = schema
            self.width = len(schema.names)
            self.pages = Pages(kernels.PARTS + self.width, large=True)
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

    def put(self, delta: Delta, stamp: int, values: Words) -> None:
        """Adds records with their values."""
        self._insert(delta, stamp, values.view(np.int64))

    def columns(self, parts: Ints, place: int, prefix: str) -> dict[str, Array]:
        """The values of components, by the names of columns."""
        if self.schema is None:
            return {}
        out = np.empty((len(self.schema.names), len(parts)), np.uint64)
        kernels.gather(parts, place, self.pages.rows, self.pages.where, out)
        return {
            prefix + name: with_zone(narrow(words, kind.dtype), kind.zone)
            for name, kind, words in zip(self.schema.names, self.schema.kinds, out, strict=True)
        }

    def records(self) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """The values as records, by place."""
        assert self.schema is not None, "there is a record"
        return self.pages.rows.view(self.schema.record).reshape(-1)

    def values_of(self, numbers: Ints) -> list[Ints | Words]:
        """The hashes, the times and the values of some records."""
        some = self.pages.rows[self.pages.places(numbers)]
        values = np.ascontiguousarray(some[:, kernels.PARTS : kernels.PARTS + self.width])
        return [some[:, kernels.HASH], some[:, kernels.FIRST], values.view(np.uint64)]

    def keys_of(self, numbers: Ints) -> tuple[Words, Ints]:
        """The hashes of the keys of some records, and their times."""
        rows, places = self.pages.rows, self.pages.places(numbers)
        return rows[places, kernels.HASH].view(np.uint64), rows[places, kernels.FIRST]
