"""Columns as the 64-bit numbers that compiled code and tables work with: exactly, or an error that says why not.

numpy's own conversions are silent: 2^64 - 1 becomes -1, 0.5 becomes 0, and 2^53 + 1 as a float is 2^53.
"""

from __future__ import annotations

import numpy as np

from dataflow.columns.column import Array, Column, DType, Mask, Words
from dataflow.columns.instants import counts

_EXACT = 1 << 53  # integers up to here are floats of 64 bits


def as_kind(column: Column, kind: DType, operator: str, name: str, unit: str = "ns") -> Array:
    """A column as an array of int64, uint64 or float64 that compiled code can read, not copied if it is one.

    Errors name the operator and the column. Dates, moments and time spans are counts of `unit`, whatever
    their own. Costs nothing where the type is the right one; else a look at all values.
    """
    if isinstance(column, np.ndarray) and column.dtype == kind and column.flags.c_contiguous and column.flags.aligned:
        return column
    what = f"{operator}: column {name!r}"
    if not isinstance(column, np.ndarray):
        raise TypeError(f"{what} holds strings, which a fold cannot use: encode it as integers")
    given = column.dtype
    if given.kind in "mM" and kind.kind == "i":
        return counts(column, unit, what)
    if not np.can_cast(given, kind, "same_kind"):
        say = {"f": f"say values={{{name!r}: 'f8'}} in fold(...)", "i": "make it unsigned, or leave out values="}
        raise TypeError(f"{what} is {given}, and the fold takes {kind}: {say.get(given.kind, 'make it a number')}")
    if len(column):
        _require_exact(column, kind, what)
    return np.require(column, kind, ["C", "A"])


def _require_exact(column: Array, kind: DType, what: str) -> None:
    """ValueError if a value is not the same in another type."""
    given = column.dtype
    if given.kind == "u" and kind.kind == "i" and given.itemsize == 8:
        if int(column.max()) > np.iinfo(np.int64).max:
            raise _lost(what, column, column > np.uint64(np.iinfo(np.int64).max), kind, "declare it as 'u8'")
    elif kind.kind == "f" and given.kind in "iu" and given.itemsize == 8:
        if int(column.max()) > _EXACT or int(column.min()) < -_EXACT:
            _require_exact_floats(column, kind, what)
    elif kind.kind == "f" and given.itemsize > 8:
        wrong = (column.astype(kind).astype(given) != column) & (column == column)
        if wrong.any():
            raise _lost(what, column, wrong, kind, "make it float64 first, with what that loses")


def _require_exact_floats(column: Array, kind: DType, what: str) -> None:
    """Compares the upper and the lower 32 bits, which floats hold exactly. To convert back is no test: what a float of
    2^63 or 2^64 becomes as an integer is undefined."""
    low = column.dtype.type((1 << 32) - 1)
    floats = column.astype(kind)
    upper = np.floor(floats / float(1 << 32))
    same = upper == (column >> column.dtype.type(32)).astype(kind)
    same &= floats - upper * float(1 << 32) == (column & low).astype(kind)
    if not same.all():
        raise _lost(what, column, ~same, kind, "leave it an integer, or make it float64 first, with what that loses")


def _lost(what: str, column: Array, wrong: Mask, kind: DType, say: str) -> ValueError:
    value = column[int(np.flatnonzero(wrong)[0])]
    return ValueError(f"{what} is {column.dtype}, and {value} cannot be told as {kind}, which the fold takes: {say}")


class KeySigns:
    """Whether keys of an operator are signed. As words -1 and 2^64 - 1 are the same, and would share their state."""

    def __init__(self) -> None:
        self._kind: DType | None = None  # of all keys so far, if they are of one
        self._seen: set[str] = set()

    def check(self, column: Array, words: Words, what: str) -> None:
        """ValueError for a key that may be another's. Costs nothing while all keys are of one type."""
        kind = column.dtype
        if kind is self._kind:
            return
        self._seen.add("unsigned" if kind.kind == "u" and kind.itemsize == 8 else "signed")
        if len(self._seen) == 1:
            self._kind = kind
            return
        self._kind = None
        if len(words) and int(words.max()) >= 1 << 63:
            raise ValueError(
                f"{what} is uint64 in some batches and signed in others, and here it is {column[int(words.argmax())]}, "
                "which may be another key there: send keys of one type"
            )
