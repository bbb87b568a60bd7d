"""The auction with the most bids in each window: the last part of query 5.

Bids are counted by auction and pane. Counts come in at the end of their pane, stay for the length of a window, and are
taken away again. At the end of each slide the worker knows its largest total. A bin ticks as long as there is something
in it, so that windows come out although nothing changes; the tick is a post-dated record and moves with its bin.

A pane may be a part of a slide: then what comes and goes does so all the time, and not at the end of each slide at
once, where everything else would have to wait for it. For the same reason the largest total is not looked for among all
of them: it is kept for each bin, and looked for only where the auction that had it has lost some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from dataflow.columns import Columns
from dataflow.columns.hashing import WORDS, mix, unmix
from dataflow.columns.kernels import FIRST, ROOM, TOP, USED
from dataflow.columns.pacts import key_words

PANES = 1 << 24  # that query 5 tells apart at a time
TICK = 0  # the amount of a post-dated record that takes nothing away

STATE = {"bids": "i8"}
PENDING = {"amount": "i8", "window_end": "i8"}


def pane_of(window: int, slide: int, grid: int) -> int:
    """The length of a pane: a slide, or a part of it that has many times of the dataflow still."""
    for parts in (64, 32, 16, 8, 4, 2):
        if slide % parts == 0 and slide // parts >= 8 * grid and window // slide * parts < PANES:
            return slide // parts
    return slide


def hottest(window: int, slide: int, grid: int) -> Callable[..., Any]:
    """The fold. All times in nanoseconds; the dataflow's times are multiples of `grid`."""
    known: dict[int, Best] = {}  # by table: that of bins, and that of keys that live apart

    def fold(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
        best = known.setdefault(id(state), Best(state))
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
        done, end = time - grid, (time - grid) // slide * slide + slide
        while end <= time:
            best.apply(changes, done, end)
            done = end
            most = best.of_all()
            if most is not None:
                rows.append((end, *most))
                end += slide
            else:  # nothing is left: on to what comes next, though it be hours
                later = changes[2][changes[2] > end]
                end = int(up(later.min(), slide)) if len(later) else time + 1
        best.apply(changes, done, time)
        following = (time // slide + 1) * slide
        anchors = best.to_be_ticked(following)
        if len(anchors):
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


class Best:
    """The totals of a table, with the largest of each bin as far as that is known."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._place = state.dtype.fields["bids"][1] // 8  # of a total, in words, within a row
        self._auctions = np.zeros(state.bins, np.int64)
        self._most = np.zeros(state.bins, np.int64)
        self._known = np.zeros(state.bins, bool)
        self._moves: Any = state.moves.copy()  # as they were when `_known` was last looked through
        self._ticked = np.zeros(state.bins, bool)  # bins that have a tick at `_following`
        self._following = -1

    def apply(self, changes: Changes, after: int, until: int) -> None:
        """Applies what changes after a time and until another."""
        keys, amounts, ends = changes
        now = (ends > after) & (ends <= until)
        if not now.any():
            return
        state, words, amounts = self._state, key_words(keys[now]), np.ascontiguousarray(amounts[now])
        self._forget_moved()
        rows = state.rows(words)
        _change(
            state.words, state.stride, state.shift, self._place, words, rows, amounts,
            self._auctions, self._most, self._known,
        )  # fmt: skip
        state.forget(words[state["bids"][rows] == 0])

    def of_all(self) -> tuple[int, int] | None:
        """The auction with the most bids here, and how many; ties to the smaller id."""
        self._forget_moved()
        state = self._state
        auction, most = _most_of_all(
            state.words, state.meta, state.stride, state.shift, self._place, self._auctions, self._most, self._known
        )
        return (auction, most) if most >= 0 else None

    def to_be_ticked(self, following: int) -> Any:
        """A key of each bin that has something in it, and no tick at that time yet."""
        state = self._state
        if following != self._following:
            self._following = following
            self._ticked[:] = False
        anchors = state.anchors()
        if state.single:
            return anchors
        bins = state.bins_of(anchors)
        fresh = ~self._ticked[bins]
        self._ticked[bins] = True  # a tick goes and comes back with its bin
        return anchors[fresh]

    def _forget_moved(self) -> None:
        moved = self._state.moves != self._moves
        if moved.any():
            self._known[moved] = False
            self._moves = self._state.moves.copy()


_INTS = types.int64[::1]


@njit(
    types.void(
        types.uint64[::1], types.int64, types.uint64, types.int64, WORDS, _INTS, _INTS, _INTS, _INTS, types.boolean[::1]
    ),
    cache=True,
)  # fmt: skip
def _change(
    words: Any, stride: Any, shift: Any, place: Any, keys: Any, rows: Any, amounts: Any,
    auctions: Any, best: Any, known: Any,
) -> None:  # fmt: skip
    """Adds amounts to totals; what is known of the bins' largest totals stays true."""
    for i in range(rows.size):
        at = rows[i] * stride + place
        bids = np.int64(words[at]) + amounts[i]
        words[at] = np.uint64(bids)
        bin, key = np.int64(mix(keys[i]) >> shift), np.int64(keys[i])
        if not known[bin]:
            continue
        if key == auctions[bin]:
            known[bin] = amounts[i] > 0
            best[bin] = bids
        elif bids > best[bin] or (bids == best[bin] and key < auctions[bin]):
            auctions[bin], best[bin] = key, bids


@njit(
    "UniTuple(int64, 2)(uint64[::1], int32[::1, :], int64, uint64, int64, int64[::1], int64[::1], boolean[::1])",
    cache=True,
)
def _most_of_all(
    words: Any, meta: Any, stride: Any, shift: Any, place: Any, auctions: Any, best: Any, known: Any
) -> Any:
    """The largest total of all bins; where it is not known it is looked for, in the order of memory: `table.scan` makes
    a list of all keys, and takes three times as long. See `kernels` for the layout."""
    auction, most = np.int64(0), np.int64(-1)
    for bin in range(meta.shape[0]):
        if meta[bin, USED] == 0:
            known[bin] = False
            continue
        if not known[bin]:
            best[bin] = -1
            first = np.int64(meta[bin, FIRST])
            for row in range(first, first + meta[bin, ROOM]):
                tag = words[row * stride]
                bids = np.int64(words[row * stride + place])
                if tag and bids >= best[bin]:
                    key = np.int64(unmix((tag & ~TOP) | ((np.uint64(bin) << shift) & TOP)))
                    if bids > best[bin] or key < auctions[bin]:
                        auctions[bin], best[bin] = key, bids
            known[bin] = True
        if best[bin] > most or (best[bin] == most and auctions[bin] < auction):
            auction, most = auctions[bin], best[bin]
    return auction, most


def hottest_of_all(parts: Columns) -> Columns:
    """The best of what each worker found, for each window."""
    order = np.lexsort([parts["auction"], -parts["bids"], parts["window_end"]])
    ends = parts["window_end"][order]
    first = np.ones(len(order), bool)
    first[1:] = ends[1:] != ends[:-1]
    return parts.take(order[first]).select(("window_end", "auction", "bids"))
