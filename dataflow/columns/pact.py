"""Who gets which rows of a batch of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dataflow.channels.hashing import stable_hash
from dataflow.channels.pact import Batch, Pact
from dataflow.columns.batch import Columns
from dataflow.columns.column import Column, Integers, Words
from dataflow.columns.instants import words

if TYPE_CHECKING:
    from dataflow.columns.hashing import Owners


def require_columns(batch: Batch, what: str) -> Columns:
    """TypeError unless a batch is columns."""
    if not isinstance(batch, Columns):
        raise TypeError(
            f"{what} works on columns, and rows came: send a mapping of names to arrays, such as {{'key': array}} "
            "(as an item of a source: `Columns({'key': array})`)"
        )
    return batch


class ExchangeColumns(Pact):
    """Rows with equal values in the key columns go to the same worker."""

    def __init__(self, by: Sequence[str]) -> None:
        _load_kernels()
        self._by = tuple(by)
        self.name = f"exchange by {', '.join(self._by)}"

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        from dataflow.columns.hashing import route_modulo
        from dataflow.columns.scatter import split

        columns = require_columns(batch, self.name)
        to = np.empty(len(columns), np.uint16)
        route_modulo(self._words(columns), peers, to)
        return split(columns, to, peers)

    def _words(self, columns: Columns) -> Words:
        from dataflow.columns.hashing import mix_all

        if not self._by:
            return np.zeros(len(columns), np.uint64)
        first, *others = (route_words(columns.column(name)) for name in self._by)
        for other in others:
            mixed = np.empty(len(first), np.uint64)
            mix_all(first, mixed)
            first = mixed ^ other
        return first


class ExchangeBinsOfColumns(Pact):
    """Rows go to the worker that has the bin of their key: bin mod workers, as Megaphone deals bins out at first. So a
    bin is one worker's, and can be saved and given to another."""

    def __init__(self, key: str, bins: int, by: int, dense: bool) -> None:
        """`by`: the mask of dense keys, or how far hashes are shifted."""
        _load_kernels()
        self._key = key
        self._bins = bins
        self._by = by
        self._dense = dense
        self.name = f"exchange of bins by {key}"

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        from dataflow.columns.hashing import Owners, route_dense, route_hashed
        from dataflow.columns.scatter import split

        columns = require_columns(batch, self.name)
        if self._owners is None:
            self._owners = Owners((np.arange(self._bins) % peers).astype(np.uint16), peers)
        to = np.empty(len(columns), np.uint16)
        find = route_dense if self._dense else route_hashed
        find(key_words(columns.column(self._key)), self._by, self._owners.words, self._owners.width, to)
        return split(columns, to, peers)

    _owners: Owners | None = None


def _load_kernels() -> None:
    """Reads the compiled code of a split while the graph is built: at the first batch it would cost tens of ms."""
    import dataflow.columns.hashing
    import dataflow.columns.scatter  # noqa: F401


def key_words(column: Column) -> Words:
    """The words as which a table knows keys: integers and booleans themselves, and dates as counts of nanoseconds.

    TypeError for anything else: strings would have to be hashed, and two of them may have the same hash.
    """
    from dataflow.columns.hashing import as_words

    return as_words(column, "key")


def route_words(column: Column) -> Words:
    """A word for each value, equal for equal ones in every process, to choose a worker by. Other values may have the
    same word: integers are their own, strings and floats are hashed, and dates are nanoseconds modulo 2^64.
    """
    from dataflow.columns.hashing import words_of

    if isinstance(column, np.ndarray):
        if column.dtype.kind == "f":
            plain = np.ascontiguousarray(column + 0.0, np.float64)  # + 0.0: one zero
            plain[np.isnan(plain)] = np.nan  # one bit pattern for all that are not a number
            return plain.view(np.uint64)
        if column.dtype.kind == "c":
            raise TypeError("complex numbers cannot be keys: use their parts, as two columns")
        return words(column) if column.dtype.kind in "mM" else words_of(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    hashes = np.array([stable_hash(value) for value in encoded.dictionary.to_pylist()], np.uint64)
    indices: Integers = encoded.indices.to_numpy(zero_copy_only=False)
    return hashes[indices]
