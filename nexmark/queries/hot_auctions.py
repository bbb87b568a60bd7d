"""The auction with the most bids in each window: the last part of query 5.

Bids come counted by auction and pane: of a whole pane when that is over, or of one batch at once, if a pane has few of
these. A count enters at the end of its pane; or at once if no slide ends before, since nobody looks until then. It
stays for the length of a window after its pane, and is taken away again. At the end of each slide the worker knows its
largest total. A bin ticks as long as there is something in it, so that windows come out although nothing changes; the
tick is a post-dated record and moves with its bin.

A pane may be a part of a slide: then what comes and goes does so all the time, and not at the end of each slide at
once, where everything else would have to wait for it. For the same reason the largest total is not looked for among all
of them: the table keeps it (see `dataflow.state.tables.leaders`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dataflow.columns import Columns
from dataflow.columns.pact import key_words
from dataflow.state.stores.batch_store import BatchNotificator
from dataflow.state.tables.leaders import Leaders
from dataflow.state.tables.table import Table
from nexmark.events.kernels import Ints
from nexmark.queries.operators import BatchFold

PANES = 1 << 24  # the most that query 5 can tell apart at a time
FINE = 8  # times of the dataflow that a pane has at least, where it is a part of a slide
TICK = 0  # the amount of a post-dated record that takes nothing away

STATE = {"bids": "i8"}
PENDING = {"amount": "i8", "window_end": "i8"}


def pane_of(window: int, slide: int, grid: int) -> int:
    """The length of a pane: a slide, or a part of it that has many times of the dataflow still."""
    for parts in (64, 32, 16, 8, 4, 2):
        if slide % parts == 0 and slide // parts >= FINE * grid and window // slide * parts < PANES:
            return slide // parts
    return slide


def hottest(window: int, slide: int, grid: int) -> BatchFold:
    """The fold. All times in nanoseconds; the dataflow's times are multiples of `grid`."""
    known: dict[Table, Best] = {}  # by table: that of all bins, and those of pinned keys

    def fold(time: int, batch: Columns, state: Table, notificator: BatchNotificator) -> dict[str, Ints] | None:
        best = known[state] if state in known else known.setdefault(state, Best(state, window, grid))
        following = (time // slide + 1) * slide
        entering, changes = best.split(batch, time, following, notificator)
        rows = []
        done, end = time - grid, (time - grid) // slide * slide + slide
        while end <= time:
            best.apply(changes, done, end)
            done = end
            most = best.of_all()
            if most is not None:
                rows.append((end, *most))
                end += slide
            else:  # nothing is left: skip to the next change, which may be hours away
                coming = changes[2][changes[2] > end]
                end = int(up(coming, slide).min()) if len(coming) else time + 1
        best.apply(changes, done, time)
        best.apply(entering, time, following)
        anchors = best.to_be_ticked(following)
        if len(anchors):
            notificator.notify_at(int(up(np.array([following]), grid)[0]), anchors, amount=TICK, window_end=following)
        return dict(zip(("window_end", "auction", "bids"), np.array(rows, np.int64).T, strict=True)) if rows else None

    return fold


def up(times: Ints, grid: int) -> Ints:
    """The first times of the dataflow that are not before these."""
    return -(-times // grid) * grid


Changes: TypeAlias = tuple[Ints, Ints, Ints]  # auctions, amounts, and the ends of the slides at which they change


def _changes(due: Columns) -> Changes:
    taken = due["amount"] != TICK
    return due["key"][taken], due["amount"][taken], due["window_end"][taken]


_NOTHING: Changes = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def _only(some: Changes, chosen: NDArray[np.bool_]) -> Changes:
    auctions, amounts, ends = (column[chosen] for column in some)
    return auctions, amounts, ends


def _joined(some: Changes, others: Changes) -> Changes:
    auctions, amounts, ends = (np.concatenate(both) for both in zip(some, others, strict=True))
    return auctions, amounts, ends


class Best:
    """The totals of a table, of which the largest is known at any time."""

    def __init__(self, state: Table, window: int, grid: int) -> None:
        self._state = state
        self._window = window
        self._grid = grid
        self._totals: Leaders = state.leaders("bids")
        self._ticked = np.zeros(state.bins, bool)  # bins that have a tick at `_following`
        self._following = -1

    def apply(self, changes: Changes, after: int, until: int) -> None:
        """Applies what changes after a time and until another."""
        keys, amounts, ends = changes
        now = (ends > after) & (ends <= until)
        if now.any():
            self._totals.add(key_words(keys[now]), amounts[now])

    def split(
        self, batch: Columns, time: int, following: int, notificator: BatchNotificator
    ) -> tuple[Changes, Changes]:
        """Counts that enter at once, and what changes by `time`. Others are put off: what enters when a slide has ended
        that is not over by `following`, the end of the next, and what leaves with its window."""
        changes = _changes(notificator.due)
        if not len(batch):
            return _NOTHING, changes
        coming = (batch["auction"], batch["bids"], batch["pane_end"])
        leaving = (coming[0], -coming[1], coming[2] + self._window)
        changes = _joined(changes, self._put_off(leaving, time, notificator))
        late = coming[2] > following
        if late.any():
            self._put_off(_only(coming, late), time, notificator)
            coming = _only(coming, ~late)
        return coming, _joined(changes, _only(coming, coming[2] <= time))

    def _put_off(self, some: Changes, time: int, notificator: BatchNotificator) -> Changes:
        """Has changes come back at their time; those whose time is this one (the grid may be coarser than a window)."""
        at = up(some[2], self._grid)
        later = at > time
        if later.all():
            notificator.notify_at(at, some[0], amount=some[1], window_end=some[2])
            return _NOTHING
        keys, amounts, ends = _only(some, later)
        notificator.notify_at(at[later], keys, amount=amounts, window_end=ends)
        return _only(some, ~later)

    def of_all(self) -> tuple[int, int] | None:
        """The auction with the most bids here, and how many; ties to the smaller id."""
        return self._totals.first()

    def to_be_ticked(self, following: int) -> NDArray[np.uint64]:
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


def hottest_of_all(parts: Columns) -> Columns:
    """The best of what each worker found, for each window."""
    order = np.lexsort([parts["auction"], -parts["bids"], parts["window_end"]])
    ends = parts["window_end"][order]
    first = np.ones(len(order), bool)
    first[1:] = ends[1:] != ends[:-1]
    return parts.take(order[first]).select(("window_end", "auction", "bids"))
