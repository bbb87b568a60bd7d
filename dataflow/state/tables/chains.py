"""Compiled chains of rows by key, for joins that remember: each key has the numbers of its first row on either side.

A row is (next row of its key, values...), rows are numbered within their bin's segment from 1, and 0 ends a chain: a
segment can so be copied as it lies. Rows that are no longer needed form a chain of their own, whose start is in `meta`
(where tables count records).
"""

from __future__ import annotations

import numpy as np

from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Int, Ints, Meta, Words
from dataflow.state.memory.allocation import FIRST, RECORDS, USED

_FREE = RECORDS  # a pool of rows counts no records: its fourth number begins the chain of free rows


@kernel("int64(int64[::1], uint64[::1], int32[::1,:], int64, int64[::1], int64[::1])")
def count_matches(heads: Ints, words: Words, meta: Meta, stride: Int, bins: Ints, counts: Ints) -> Int:
    """How many rows each record's chain has; the total. `heads` has the first row of each record's key, or 0."""
    total = 0
    for i in range(heads.size):
        row, first, count = heads[i], meta[bins[i], FIRST], 0
        while row:
            count += 1
            row = np.int64(words[(first + row - 1) * stride])
        counts[i] = count
        total += count
    return total


@kernel("void(int64[::1], uint64[::1], int32[::1,:], int64, int64[::1], int64[::1], int64[::1])")
def list_matches(heads: Ints, words: Words, meta: Meta, stride: Int, bins: Ints, records: Ints, rows: Ints) -> None:
    """Every pair of a record and a row of its chain; rows are numbered in the whole array."""
    at = 0
    for i in range(heads.size):
        row, first = heads[i], meta[bins[i], FIRST]
        while row:
            records[at] = i
            rows[at] = first + row - 1
            at += 1
            row = np.int64(words[(first + row - 1) * stride])


@kernel("void(int64[:], int64[::1], uint64[::1], int32[::1,:], int64, int64[::1], uint64[:,::1])")
def append_rows(heads: Ints, places: Ints, words: Words, meta: Meta, stride: Int, bins: Ints, values: Words) -> None:
    """Adds a row for each record to the front of its key's chain. `heads` by table row; `places`: each record's."""
    for i in range(places.size):
        bin = bins[i]
        first, row = meta[bin, FIRST], meta[bin, _FREE]
        if row:
            meta[bin, _FREE] = np.int64(words[(first + row - 1) * stride])
        else:
            meta[bin, USED] += 1
            row = meta[bin, USED]
        at = (first + row - 1) * stride
        words[at] = np.uint64(heads[places[i]])
        for k in range(values.shape[1]):
            words[at + 1 + k] = values[i, k]
        heads[places[i]] = row


@kernel("void(int64[:], int64[::1], uint64[::1], int32[::1,:], int64, int64[::1])")
def drop_chains(heads: Ints, places: Ints, words: Words, meta: Meta, stride: Int, bins: Ints) -> None:
    """Gives the rows of keys back."""
    for i in range(places.size):
        bin = bins[i]
        first, row = meta[bin, FIRST], heads[places[i]]
        heads[places[i]] = 0
        while row:
            at = (first + row - 1) * stride
            following = np.int64(words[at])
            words[at] = np.uint64(meta[bin, _FREE])
            meta[bin, _FREE] = row
            row = following
