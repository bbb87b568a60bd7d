"""The auction with the most bids in each window: the last part of query 5.

Counts of slides come in at the end of their slide, stay for the length of a window, and are taken away again. At the
end of each slide the worker looks through all totals for the largest one. A bin ticks as long as there is something in
it, so that windows come out although nothing changes; the tick is a post-dated record and moves with its bin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from dataflow.columns import Columns
from dataflow.columns.hashing import unmix
from dataflow.columns.kernels import FIRST, ROOM, TOP
from dataflow.columns.pacts import key_words

TICK = 0  # the amount of a post-dated record that takes nothing away

STATE = {"bids": "i8"}
PENDING = {"amount": "i8", "window_end": "i8"}


def hottest(window: int, slide: int, grid: int) -> Callable[..., Any]:
    """The fold. All times in nanoseconds; the dataflow's times are multiples of `grid`."""

    def fold(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
        changes = _changes(notificator.due)
        if len(batch):
            changes = _joined(changes, (batch["auction"], batch["bids"], batch["pane_end"]))
            leaving = (batch["auction"], -batch["bids"], batch["pane_end"] + window)
            at = up(leaving[2], grid)
            later = at > time
            keys, amounts, ends = (column[later] for column in leaving)
            notificator.notify_at(at[later], keys, amount=amounts, window_end=ends)
            if not later.all():  # the grid is coarser than the window: some come and go at one time
                changes = _joined(changes, tuple(column[~later] for column in leaving))
        rows = []
        end = (time - grid) // slide * slide + slide
        while end <= time:
            _apply(state, changes, end)
            best = _best(state)
            if best is not None:
                rows.append((end, *best))
                end += slide
            else:  # nothing is left: on to what comes next, though it be hours
                later = changes[2][changes[2] > end]
                end = int(later.min()) if len(later) else time + 1
        anchors = state.anchors()
        if len(anchors):
            following = (time // slide + 1) * slide
            notificator.notify_at(int(up(np.array([following]), grid)[0]), anchors, amount=TICK, window_end=following)
        return dict(zip(("window_end", "auction", "bids"), np.array(rows, np.int64).T, strict=True)) if rows else None

    return fold


def up(times: Any, grid: int) -> Any:
    """The first times of the dataflow that are not before these."""
    return -(-times // grid) * grid


Changes = tuple[Any, ...]  # auctions, amounts, and the ends of the slides at which they change


def _changes(due: Columns) -> Changes:
    taken = due["amount"] != TICK
    return due["key"][taken], due["amount"][taken], due["window_end"][taken]


def _joined(some: Changes, others: Changes) -> Changes:
    return tuple(np.concatenate(both) for both in zip(some, others, strict=True))


def _apply(state: Any, changes: Changes, end: int) -> None:
    keys, amounts, ends = changes
    now = ends == end
    if now.any():
        words = key_words(keys[now])
        rows = state.rows(words)
        np.add.at(state["bids"], rows, amounts[now])
        state.forget(words[state["bids"][rows] == 0])


def _best(state: Any) -> tuple[int, int] | None:
    """The auction with the most bids here, and how many; ties to the smaller id."""
    place = state.dtype.fields["bids"][1] // 8  # in words, within a row
    auction, most = _most_bids(state.words, state.meta, state.stride, state.shift, place)
    return (auction, most) if most >= 0 else None


@njit("UniTuple(int64, 2)(uint64[::1], int32[::1, :], int64, uint64, int64)", cache=True)
def _most_bids(words: Any, meta: Any, stride: Any, shift: Any, place: Any) -> Any:
    """One pass over a table, in the order of memory: `table.scan` makes a list of all keys, and takes three times as
    long. See `kernels` for the layout."""
    auction, most = np.int64(0), np.int64(-1)
    for bin in range(meta.shape[0]):
        first = np.int64(meta[bin, FIRST])
        for row in range(first, first + meta[bin, ROOM]):
            tag = words[row * stride]
            bids = np.int64(words[row * stride + place])
            if tag and bids >= most:
                key = np.int64(unmix((tag & ~TOP) | ((np.uint64(bin) << shift) & TOP)))
                if bids > most or key < auction:
                    auction, most = key, bids
    return auction, most


def hottest_of_all(parts: Columns) -> Columns:
    """The best of what each worker found, for each window."""
    order = np.lexsort([parts["auction"], -parts["bids"], parts["window_end"]])
    ends = parts["window_end"][order]
    first = np.ones(len(order), bool)
    first[1:] = ends[1:] != ends[:-1]
    return parts.take(order[first]).select(("window_end", "auction", "bids"))
