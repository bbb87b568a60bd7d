"""Tables of columns as lists of rows, for people, tests and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from nexmark.events.generator import ENCODED
from nexmark.events.kernels import Column
from nexmark.events.vocabulary import dictionary

Value: TypeAlias = int | str
Row: TypeAlias = dict[str, Value]


def rows(table: Mapping[str, Column | pa.Array]) -> list[Row]:
    """The rows of a table, its codes replaced by words.

    >>> import numpy as np
    >>> rows({"id": np.array([1000, 1001]), "state": np.array([3, 1])})
    [{'id': 1000, 'state': 'OR'}, {'id': 1001, 'state': 'CA'}]
    """
    columns = [_values(name, column) for name, column in table.items()]
    return [dict(zip(table, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(name: str, column: Column | pa.Array) -> list[Value]:
    values = column.tolist()
    if name not in ENCODED:
        return list(values)
    words = dictionary(name)
    return [words[code] for code in values]
