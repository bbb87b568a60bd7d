"""A batch of named columns of one length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


class Columns:
    """Named arrays of one length: what a batch of records is when speed matters.

    >>> batch = Columns({"key": [1, 2, 3], "diff": [1, 1, 1]})
    >>> len(batch), batch["key"].sum(), batch.names
    (3, np.int64(6), ('key', 'diff'))
    """

    __slots__ = ("_arrays", "_length")

    def __init__(self, arrays: Mapping[str, ArrayLike]) -> None:
        self._arrays: dict[str, Array] = {}  # invariant: one dimension, one length
        for name, values in arrays.items():
            array = np.asarray(values)
            if array.ndim != 1:
                raise ValueError(f"column {name!r} has {array.ndim} dimensions; a column has one")
            if array.dtype.hasobject:
                raise TypeError(f"column {name!r} holds Python objects; a column holds numbers, dates or fixed strings")
            self._arrays[str(name)] = array
        lengths = {name: len(array) for name, array in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have one length: {lengths}")
        self._length = next(iter(lengths.values()), 0)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._arrays)

    @property
    def arrays(self) -> dict[str, Array]:
        """The columns by name (a new dictionary of the same arrays)."""
        return dict(self._arrays)

    @property
    def nbytes(self) -> int:
        """The size of the data."""
        return sum(array.nbytes for array in self._arrays.values())

    def __getitem__(self, name: str) -> Array:
        try:
            return self._arrays[name]
        except KeyError:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self.names)}") from None

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {array.dtype}" for name, array in self._arrays.items())
        return f"<{self._length} rows of {columns}>"
