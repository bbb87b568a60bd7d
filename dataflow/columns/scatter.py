"""One batch per owner: rows are copied to where their owner's rows lie together, column by column."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

import numpy as np
from numba import types
from numba.core.types.abstract import Type
from numba.core.typing.templates import Signature
from numpy.typing import NDArray

from dataflow.columns.batch import Columns
from dataflow.columns.column import Array, Column, Integers
from dataflow.columns.zones import plain, with_zone, zone_of
from dataflow.compiled.kernel import kernel

Owner: TypeAlias = NDArray[np.uint16]
"""The owner of each row."""

_FEW = 1 << 12  # rows: below, a call for each column costs more than looking up each row's number
_OWNERS = types.Array(types.uint16, 1, "C", readonly=True)
_1 = np.uint64(1)


@kernel(types.void(_OWNERS, types.int64[::1]))
def count_owners(to: Owner, counts: Integers) -> None:
    """How many rows each owner gets, added to `counts`."""
    if counts.size == 2:
        ones = 0
        for i in range(to.size):
            ones += to[i]
        counts[0] += to.size - ones
        counts[1] += ones
        return
    for i in range(to.size):
        counts[to[i]] += 1


def _kind(word: Type) -> Signature:
    return types.void(_OWNERS, types.int64[::1], types.Array(word, 1, "C", readonly=True), word[::1])


@kernel(*[_kind(word) for word in (types.uint8, types.uint16, types.uint32, types.uint64)])
def scatter(to: Owner, firsts: Integers, column: Array, out: Array) -> None:
    """Copies each row to the next place of its owner, whose first one is in `firsts`.

    The next places of two owners are kept in registers: if they were in memory, each row would wait for the one before.
    """
    if firsts.size == 2:
        zero, one = np.uint64(firsts[0]), np.uint64(firsts[1])
        for i in range(to.size):
            owner = np.uint64(to[i])
            out[one if owner else zero] = column[i]
            one += owner
            zero += _1 - owner
        return
    places = firsts.astype(np.uint64)
    for i in range(to.size):
        owner = np.uint64(to[i])
        out[places[owner]] = column[i]
        places[owner] += _1


def split(batch: Columns, to: Owner, owners: int) -> list[Columns]:
    """One batch for each of `owners`; `to` has the owner of each row. Rows keep their order."""
    counts = np.zeros(owners, np.int64)
    count_owners(to, counts)
    if counts.max() == len(batch):  # nothing need be copied
        empty = batch.slice(0, 0)
        return [batch if count else empty for count in counts.tolist()]
    ends = np.cumsum(counts)
    firsts = ends - counts
    moved = _take(batch, to, firsts) if len(batch) < _FEW else _scatter(batch, to, firsts)
    return [moved.slice(first, end) for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]


def _take(batch: Columns, to: Owner, firsts: Integers) -> Columns:
    order = np.empty(len(to), np.int64)
    scatter(to, firsts, np.arange(len(to), dtype=np.uint64), order.view(np.uint64))
    return batch.take(order)


def _scatter(batch: Columns, to: Owner, firsts: Integers) -> Columns:
    columns = batch.columns
    rest = Columns.trusted({name: column for name, column in columns.items() if not _is_plain(column)}, len(batch))
    taken = _take(rest, to, firsts).columns if rest.names else {}
    for name, column in columns.items():
        if _is_plain(column):
            word = f"u{column.itemsize}"
            moved = np.empty_like(plain(column))
            scatter(to, firsts, plain(column).view(word), moved.view(word))
            taken[name] = with_zone(moved, zone_of(column))
    return Columns.trusted({name: taken[name] for name in columns}, len(batch))


def _is_plain(column: Column) -> TypeGuard[Array]:
    """Whether a column's values are words that can be copied as they are."""
    if not isinstance(column, np.ndarray) or column.itemsize > 8:
        return False
    return column.dtype.isnative and column.flags.c_contiguous and column.flags.aligned
