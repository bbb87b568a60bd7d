"""Compiled heaps of post-dated records, one per bin, in segments (see `dataflow.state.memory.allocation`).

A row is (time, key, values...); the row with the least time of a bin is the first of its segment. `tree` has the least
time of each bin as a leaf (tree[bins + bin]) and the lesser of two children above them, so tree[1] is the least of all.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from dataflow.compiled.kernel import kernel
from dataflow.state.arrays import Int, Ints, Meta, Words
from dataflow.state.memory.allocation import FIRST, USED

_READ = types.Array(types.uint64, 1, "C", readonly=True)
NEVER = np.int64(2**63 - 1)


@njit()
def _set_leaf(tree: Ints, bin: Int, time: Int) -> None:
    node = tree.size // 2 + bin
    tree[node] = time
    node >>= 1
    while node:
        least = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == least:
            break
        tree[node] = least
        node >>= 1


@njit()
def _time_of(words: Words, row: Int, stride: Int) -> Int:
    return np.int64(words[row * stride])


@njit(inline="always")
def _copy(words: Words, stride: Int, target: Int, source: Int) -> None:
    for k in range(stride):
        words[target * stride + k] = words[source * stride + k]


@njit()
def _push(words: Words, meta: Meta, stride: Int, bin: Int, source: Words, at: Int) -> None:
    """Parents that are later move down, and the record goes into the gap that is left."""
    first, used = np.int64(meta[bin, FIRST]), np.int64(meta[bin, USED])
    time, gap = np.int64(source[at]), used
    while gap:
        parent = (gap - 1) >> 1
        if _time_of(words, first + parent, stride) <= time:
            break
        _copy(words, stride, first + gap, first + parent)
        gap = parent
    for k in range(stride):
        words[(first + gap) * stride + k] = source[at + k]
    meta[bin, USED] = used + 1


@kernel(
    types.void(types.uint64[::1], types.int32[::1, :], types.int64, types.int64[::1], _READ, types.int64[::1]),
)
def push_all(words: Words, meta: Meta, stride: Int, tree: Ints, rows: Words, bins: Ints) -> None:
    """Adds post-dated records, each to its bin, for which there is room."""
    for i in range(bins.size):
        bin = bins[i]
        _push(words, meta, stride, bin, rows, i * stride)
        least = _time_of(words, meta[bin, FIRST], stride)
        if least != tree[tree.size // 2 + bin]:
            _set_leaf(tree, bin, least)


@njit()
def _pop(words: Words, meta: Meta, stride: Int, bin: Int) -> None:
    """Takes the first record out: children that are due before the last record move up, and it goes into the gap."""
    first, used = np.int64(meta[bin, FIRST]), np.int64(meta[bin, USED]) - 1
    meta[bin, USED] = used
    last = first + used
    time, gap = _time_of(words, last, stride), 0
    while True:
        child = 2 * gap + 1
        if child >= used:
            break
        least = _time_of(words, first + child, stride)
        if child + 1 < used:
            other = _time_of(words, first + child + 1, stride)
            if other < least:
                child += 1
                least = other
        if time <= least:
            break
        _copy(words, stride, first + gap, first + child)
        gap = child
    if used:
        _copy(words, stride, first + gap, last)


@kernel("int64(uint64[::1], int32[::1,:], int64, int64[::1], int64, uint64[::1])")
def pop_due(words: Words, meta: Meta, stride: Int, tree: Ints, time: Int, out: Words) -> Int:
    """Takes out records that are due by a time, as many as there is room for; how many."""
    bins, taken = tree.size // 2, 0
    while tree[1] <= time and (taken + 1) * stride <= out.size:
        node = 1
        while node < bins:
            node = 2 * node if tree[2 * node] == tree[node] else 2 * node + 1
        bin = node - bins
        first = meta[bin, FIRST]
        for k in range(stride):
            out[taken * stride + k] = words[first * stride + k]
        taken += 1
        _pop(words, meta, stride, bin)
        _set_leaf(tree, bin, _time_of(words, first, stride) if meta[bin, USED] else NEVER)
    return taken


@kernel("void(int64[::1], int64, int64)")
def set_leaf(tree: Ints, bin: Int, time: Int) -> None:
    """A bin has arrived or left: this is its least time now."""
    _set_leaf(tree, bin, time)
