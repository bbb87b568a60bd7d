"""The auction with the most bids in each window: the last part of query 5.

Counts of slides come in at the end of their slide, stay for the length of a window, and are taken away again. At the
end of each slide the worker looks through all totals for the largest one. A bin ticks as long as there is something in
it, so that windows come out although nothing changes; the tick is a post-dated record and moves with its bin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dataflow.columns import Columns
from dataflow.columns.pacts import key_words

TICK = 0  # the amount of a post-dated record that takes nothing away

STATE = {"bids": "i8"}
PENDING = {"amount": "i8", "window_end": "i8"}


def hottest(window: int, slide: int, grid: int) -> Callable[..., Any]:
    """The fold. All times in nanoseconds; the dataflow's times are multiples of `grid`."""

    def fold(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
        due = notificator.due
        changes = _changes(batch, due)
        if len(batch):
            ends = batch["pane_end"] + window
            notificator.notify_at(up(ends, grid), batch["auction"], amount=-batch["bids"], window_end=ends)
        rows = []
        for end in range((time - grid) // slide * slide + slide, time + 1, slide):
            _apply(state, changes, end)
            best = _best(state)
            if best is not None:
                rows.append((end, *best))
        anchors = state.anchors()
        if len(anchors):
            following = (time // slide + 1) * slide
            notificator.notify_at(int(up(np.array([following]), grid)[0]), anchors, amount=TICK, window_end=following)
        return dict(zip(("window_end", "auction", "bids"), np.array(rows, np.int64).T, strict=True)) if rows else None

    return fold


def up(times: Any, grid: int) -> Any:
    """The first times of the dataflow that are not before these."""
    return -(-times // grid) * grid


def _changes(batch: Columns, due: Columns) -> tuple[Any, Any, Any]:
    """Auctions, amounts and the ends of the slides at which they change."""
    taken = due["amount"] != TICK
    keys, amounts, ends = due["key"][taken], due["amount"][taken], due["window_end"][taken]
    if not len(batch):
        return keys, amounts, ends
    return (
        np.concatenate([keys, batch["auction"]]),
        np.concatenate([amounts, batch["bids"]]),
        np.concatenate([ends, batch["pane_end"]]),
    )


def _apply(state: Any, changes: tuple[Any, Any, Any], end: int) -> None:
    keys, amounts, ends = changes
    now = ends == end
    if now.any():
        words = key_words(keys[now])
        rows = state.rows(words)
        np.add.at(state["bids"], rows, amounts[now])
        state.forget(words[state["bids"][rows] == 0])


def _best(state: Any) -> tuple[int, int] | None:
    """The auction with the most bids here, and how many; ties to the smaller id."""
    keys, rows = state.scan()
    if not len(keys):
        return None
    bids = state["bids"][rows]
    most = int(bids.max())
    return int(keys[bids == most].view(np.int64).min()), most


def hottest_of_all(parts: Columns) -> Columns:
    """The best of what each worker found, for each window."""
    order = np.lexsort([parts["auction"], -parts["bids"], parts["window_end"]])
    ends = parts["window_end"][order]
    first = np.ones(len(order), bool)
    first[1:] = ends[1:] != ends[:-1]
    return parts.take(order[first]).select(("window_end", "auction", "bids"))
