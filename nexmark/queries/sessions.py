"""Bids of one bidder that belong together: query 11 by sessions of event time, query 12 by the time at which they came.

The records of a time are applied in the order of their dates, and dates do not go back from one time to the next. So a
bidder has one session at a time: when a bid shows that it is over, it comes out; if none does, a post-dated record ends
it. That record is sent once for a session and again if bids have come since.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from nexmark.events.kernels import Ints
from nexmark.queries.operators import Operators
from nexmark.queries.options import Events, QueryOptions
from nexmark.queries.records import Emits, PostDates

SESSION = {"start": "i8", "last": "i8", "bids": "i8", "waits": "b1", "over": "b1"}
SESSIONS = {"bidder": "i8", "bids": "i8", "start": "i8", "end": "i8"}
LENGTHS = {"gap": "i8", "grid": "i8"}
ENTERED = {"window": "i8", "bids": "i8", "over": "b1"}
WINDOW = {"window": "i8", "end": "i8"}


class SessionBid(Protocol):
    """A bid, with the gap that ends sessions and the resolution of times."""

    date_time: int
    gap: int
    grid: int


class SessionState(Protocol):
    """The session that is open; `waits` says whether a record is post-dated to end it."""

    start: int
    last: int
    bids: int
    waits: bool
    over: bool


@fold(state=SESSION, output=SESSIONS, pending=LENGTHS)
def extend_session(key: int, value: SessionBid, state: SessionState, later: PostDates, emit: Emits) -> None:
    if state.bids > 0 and value.date_time - state.last > value.gap:
        emit.row(key, state.bids, state.start, state.last + value.gap)
        state.bids = 0
    if state.bids == 0:
        state.start = value.date_time
    state.bids += 1
    state.last = value.date_time
    if not state.waits:
        state.waits = True
        later.at(-(-(state.last + value.gap + 1) // value.grid) * value.grid, value.gap, value.grid)


@fold(state=SESSION, output=SESSIONS, pending=LENGTHS, create=False, forget="over")
def end_session(time: int, key: int, value: SessionBid, state: SessionState, later: PostDates, emit: Emits) -> None:
    close_at = -(-(state.last + value.gap + 1) // value.grid) * value.grid
    if close_at > time:
        later.at(close_at, value.gap, value.grid)
        return
    emit.row(key, state.bids, state.start, state.last + value.gap)
    state.over = True


class Lengths(Protocol):
    """Of windows, and the resolution of times."""

    length: int
    grid: int


class WindowEnd(Protocol):
    """The post-dated record that ends a window."""

    window: int
    end: int


class EnteredState(Protocol):
    """The bids that have come in the window that is open."""

    window: int
    bids: int
    over: bool


@fold(state=ENTERED, output=SESSIONS, pending=WINDOW)
def count_entered(time: int, key: int, value: Lengths, state: EnteredState, later: PostDates, emit: Emits) -> None:
    window = time // value.length * value.length
    if state.bids > 0 and state.window != window:
        emit.row(key, state.bids, state.window, state.window + value.length)
        state.bids = 0
    if state.bids == 0:
        state.window = window
        later.at(-(-(window + value.length) // value.grid) * value.grid, window, window + value.length)
    state.bids += 1


@fold(state=ENTERED, output=SESSIONS, pending=WINDOW, create=False, forget="over")
def end_entered(key: int, value: WindowEnd, state: EnteredState, emit: Emits) -> None:
    if state.window == value.window:
        emit.row(key, state.bids, state.window, value.end)
        state.over = True


def q11(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """User sessions: how many bids each bidder made in a row, with less than a gap between them."""
    return ops.state_machine(
        events["bid"].columns.with_columns(lambda bids: _constants(bids, gap=options.q11_gap, grid=options.grid)),
        key="bidder", value=["date_time", "gap", "grid"], fold=extend_session, due=end_session,
        order=("date_time",), name="q11",
    )  # fmt: skip


def q12(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Windows of processing time: how many bids of each bidder came in, by the time at which they entered."""
    return ops.state_machine(
        events["bid"].columns.with_columns(lambda bids: _constants(bids, length=options.q12_window, grid=options.grid)),
        key="bidder", value=["length", "grid"], fold=count_entered, due=end_entered, name="q12",
    )  # fmt: skip


def _constants(bids: Columns, **values: int) -> dict[str, Ints]:
    return {name: np.full(len(bids), value, np.int64) for name, value in values.items()}
