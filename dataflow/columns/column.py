"""What a column is, in types: an array of numpy's, or one of Arrow's for strings and bytes.

Arrays whose values this package chooses say so (`Words`, `Integers`, `Mask`). What a user's column holds is known when
it arrives and not before: for these there are `Array` and `DType`, which admit every type of numpy's.

pyarrow publishes no types, and a program without strings does not import it. `ArrowArray` and its neighbours say what
we use of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dataflow.values import Value

Array: TypeAlias = NDArray[Any]
"""An array of numpy's with values that a user chose the type of."""
DType: TypeAlias = np.dtype[Any]
"""The type of a user's column."""
Words: TypeAlias = NDArray[np.uint64]
"""Keys and their hashes."""
Integers: TypeAlias = NDArray[np.int64]
"""Row numbers, counts and the like."""
Mask: TypeAlias = NDArray[np.bool_]
"""A boolean for each row."""


class ArrowType(Protocol):
    """A type of Arrow's. Its `str` is its name."""

    @property
    def tz(self) -> str | None:
        """The time zone of moments (other types have no such attribute)."""


class ArrowBuffer(Protocol):
    """Memory of Arrow's."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class ArrowArray(Protocol):
    """A column of Arrow's: one array, not in chunks."""

    @property
    def type(self) -> ArrowType: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def null_count(self) -> int: ...
    @property
    def offset(self) -> int: ...
    def __len__(self) -> int: ...
    def slice(self, offset: int, length: int, /) -> ArrowArray: ...
    def take(self, indices: Array | ArrowArray, /) -> ArrowArray: ...
    def cast(self, to: ArrowType, /) -> ArrowArray: ...
    def dictionary_encode(self, null_encoding: str) -> ArrowDictionary: ...
    def buffers(self) -> list[ArrowBuffer | None]: ...
    def get_total_buffer_size(self) -> int: ...
    def to_numpy(self, zero_copy_only: bool) -> Array: ...
    def to_pylist(self) -> list[Value]: ...
    def validate(self, *, full: bool) -> None: ...


class ArrowDictionary(ArrowArray, Protocol):
    """A column of Arrow's as places in a dictionary of its values."""

    @property
    def dictionary(self) -> ArrowArray: ...
    @property
    def indices(self) -> ArrowArray: ...


@runtime_checkable
class ArrowStreamable(Protocol):
    """Whatever speaks Arrow: tables and batches of Arrow's, frames of pandas and polars, `Columns`."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class ArrowTable(ArrowStreamable, Protocol):
    """A table of Arrow's."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def columns(self) -> Sequence[object]: ...
    def to_pandas(self) -> Value: ...


Column: TypeAlias = Array | ArrowArray
"""One column of a batch; invariant: an array has one dimension."""
