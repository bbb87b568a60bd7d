"""One key of a store: its row, its post-dated records and its chains, taken out and put in elsewhere.

A store is taken apart into numbered parts, each an array of words, the table first. An empty array
for the table says that the key is there, with a state of no fields. Rows of dense and of hashed tables differ in the
word of the key alone, which does not travel: a key may leave the one kind and arrive in the other.

Costs: a row O(1), post-dated records O(those of the bin), chains O(their length).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from dataflow.state.arrays import Ints, Words
from dataflow.state.memory import allocation
from dataflow.state.memory.segments import Part
from dataflow.state.tables import chains as joins
from dataflow.state.tables import hash_kernels, heaps
from dataflow.state.tables.pending import Pending
from dataflow.state.tables.table import Table

KeyPart: TypeAlias = tuple[int, int, Words]
"""(number, rows, words): so many rows of equal length."""


def take_row(table: Table, key: Words, keep: bool = False) -> Words | None:
    """The state of a key (an array of one), which the table then has no longer unless it is to be kept; None if it has
    none."""
    row = row_of(table, key)
    if row is None:
        return None
    skip = 0 if table.dense else 1
    words = table.words[row * table.stride + skip : (row + 1) * table.stride].copy()
    if keep:
        return words
    table.rows_changed(table.bins_of(key))
    if table.dense:
        table.words[row * table.stride : (row + 1) * table.stride] = 0
    else:
        hash_kernels.remove_all(table.words, table.meta, table.ctl, table.stride, table.shift, key)
    return words


def row_of(table: Table, key: Words) -> int | None:
    """The row of a key (an array of one); None if it has none here."""
    if table.dense:
        bin = int(table.bins_of(key)[0])
        if not table.meta[bin, allocation.ROOM]:
            return None
        return int(table.meta[bin, allocation.FIRST] + (int(key[0]) >> table.shift))
    row = np.empty(1, np.int64)
    hash_kernels.find_rows(table.words, table.meta, table.stride, table.reach, key, row)
    return None if row[0] < 0 else int(row[0])


def rows_found(table: Table, keys: Words) -> Ints:
    """The row of each key of a hashed table, -1 for those that have none here."""
    rows = np.empty(len(keys), np.int64)
    hash_kernels.find_rows(table.words, table.meta, table.stride, table.reach, keys, rows)
    return rows


def put_row(table: Table, key: Words, words: Words) -> None:
    """Gives a key its state."""
    row = make_row(table, key)
    start = row * table.stride + (0 if table.dense else 1)
    count = min(len(words), (row + 1) * table.stride - start)
    table.words[start : start + count] = words[:count]


def make_row(table: Table, key: Words) -> int:
    """The row of a key, made if need be."""
    bins = table.bins_of(key)
    table.rows_changed(bins)
    counted = table.records[bins]
    row = int(table.rows(key)[0])
    table.records[bins] = counted  # it was no record
    return row


def take_pending(pending: Pending, bin: int, key: Words, keep: bool = False) -> Words:
    """The post-dated records of a key, as words. The rest, sorted by time, is a heap still."""
    segments = pending.segments
    rows = segments.contents(bin).reshape(-1, pending.stride)
    chosen = rows[:, 1] == key[0]
    if not chosen.any():
        return np.empty(0, np.uint64)
    taken, rest = rows[chosen], rows[~chosen]
    if keep:
        return np.ascontiguousarray(taken).reshape(-1)
    order = np.argsort(rest[:, 0].view(np.int64), kind="stable")
    rows[: len(rest)] = rest[order]
    segments.meta[bin, allocation.USED] = len(rest)
    heaps.set_leaf(pending.tree, bin, int(rows[0, 0].view(np.int64)) if len(rest) else heaps.NEVER)
    words: Words = taken.reshape(-1)
    return words


def put_pending(pending: Pending, bin: int, words: Words) -> None:
    """Adds post-dated records."""
    pending.add(np.ascontiguousarray(words), np.full(len(words) // pending.stride, bin, np.int64))


def take_chain(table: Table, field: str, pool: Part, key: Words, keep: bool = False) -> tuple[int, Words]:
    """The rows of a key on one side of a join, as words without their links; the key has none of them then."""
    row = row_of(table, key)
    segments = pool.segments
    if row is None:
        return 0, np.empty(0, np.uint64)
    bins = table.bins_of(key)
    heads = np.array([table[field][row]], np.int64)
    total = joins.count_matches(heads, segments.words, segments.meta, segments.stride, bins, np.empty(1, np.int64))
    records, rows = np.empty(total, np.int64), np.empty(total, np.int64)
    joins.list_matches(heads, segments.words, segments.meta, segments.stride, bins, records, rows)
    whole = segments.words[: len(segments.words) // segments.stride * segments.stride].reshape(-1, segments.stride)
    values = whole[rows[::-1], 1:]  # the oldest first: they are put in front of one another
    if keep:
        return int(total), np.ascontiguousarray(values).reshape(-1)
    place = np.array([row], np.int64)
    joins.drop_chains(table[field], place, segments.words, segments.meta, segments.stride, bins)
    return int(total), np.ascontiguousarray(values).reshape(-1)


def put_chain(table: Table, field: str, pool: Part, key: Words, count: int, words: Words) -> None:
    """Adds `count` rows to a key."""
    row = make_row(table, key)
    segments = pool.segments
    bins = np.repeat(table.bins_of(key), count)
    segments.reserve(bins)
    values = np.ascontiguousarray(words.reshape(count, segments.stride - 1))
    places = np.full(count, row, np.int64)
    joins.append_rows(table[field], places, segments.words, segments.meta, segments.stride, bins, values)
