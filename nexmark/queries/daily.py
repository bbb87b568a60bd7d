"""What each auction and bidder did in a day: queries 17, 18 and 19. The answer for a day comes when the day is over.

The records of a time are applied in the order of their dates, so a key has one day at a time: a record of the next day
shows that the day before is over, and if none comes, a post-dated record ends it.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Protocol

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from nexmark.events.kernels import Ints
from nexmark.queries.hot_auctions import up
from nexmark.queries.operators import Made, Operators
from nexmark.queries.options import Events, QueryOptions
from nexmark.queries.records import Emits, PostDates

CHEAP, DEAR = 10_000, 1_000_000  # the prices that divide bids into three ranks
TOP = 10
PENDING = {"day": "i8"}
TRADE = {
    "day": "i8", "bids": "i8", "cheap": "i8", "dear": "i8", "least": "i8", "most": "i8", "total": "i8", "over": "b1",
}  # fmt: skip
TRADED = {
    "auction": "i8", "day": "i8", "bids": "i8", "rank1": "i8", "rank2": "i8", "rank3": "i8",
    "least": "i8", "most": "i8", "average": "i8", "total": "i8",
}  # fmt: skip
LAST = {"day": "i8", "price": "i8", "date_time": "i8", "any": "b1", "over": "b1"}
LAST_OF = {"pair": "i8", "price": "i8", "date_time": "i8"}
BEST = {
    "day": "i8", "count": "i8", "prices": ("i8", TOP), "bidders": ("i8", TOP), "dates": ("i8", TOP), "over": "b1",
}  # fmt: skip
RANKED = {"auction": "i8", "day": "i8", "rank": "i8", "bidder": "i8", "price": "i8", "date_time": "i8"}


class DayBid(Protocol):
    """A bid, the day on which it was made, and the time at which that is over."""

    day: int
    close_at: int
    price: int
    bidder: int
    date_time: int


class TradeState(Protocol):
    """The bids for an auction on a day."""

    day: int
    bids: int
    cheap: int
    dear: int
    least: int
    most: int
    total: int
    over: bool


@fold(state=TRADE, output=TRADED, pending=PENDING)
def trade(key: int, value: DayBid, state: TradeState, later: PostDates, emit: Emits) -> None:
    if state.bids > 0 and state.day != value.day:
        middling = state.bids - state.cheap - state.dear
        average = state.total // state.bids
        emit.row(
            key, state.day, state.bids, state.cheap, middling, state.dear, state.least, state.most, average, state.total
        )
        state.bids = 0
    if state.bids == 0:
        state.day = value.day
        state.cheap = 0
        state.dear = 0
        state.total = 0
        state.least = value.price
        state.most = value.price
        later.at(value.close_at, value.day)
    state.bids += 1
    state.cheap += value.price < 10_000
    state.dear += value.price >= 1_000_000
    state.least = min(state.least, value.price)
    state.most = max(state.most, value.price)
    state.total += value.price


@fold(state=TRADE, output=TRADED, pending=PENDING, create=False, forget="over")
def end_trade(key: int, value: int, state: TradeState, emit: Emits) -> None:
    if state.day != value:
        return
    middling = state.bids - state.cheap - state.dear
    average = state.total // state.bids
    emit.row(
        key, state.day, state.bids, state.cheap, middling, state.dear, state.least, state.most, average, state.total
    )
    state.over = True


class LastState(Protocol):
    """The last bid of a bidder for an auction on a day."""

    day: int
    price: int
    date_time: int
    any: bool
    over: bool


@fold(state=LAST, output=LAST_OF, pending=PENDING)
def last_bid(key: int, value: DayBid, state: LastState, later: PostDates, emit: Emits) -> None:
    if state.any and state.day != value.day:
        emit.row(key, state.price, state.date_time)
        state.any = False
    if not state.any:
        state.any = True
        state.day = value.day
        later.at(value.close_at, value.day)
    state.price = value.price
    state.date_time = value.date_time


@fold(state=LAST, output=LAST_OF, pending=PENDING, create=False, forget="over")
def end_last_bid(key: int, value: int, state: LastState, emit: Emits) -> None:
    if state.day == value:
        emit.row(key, state.price, state.date_time)
        state.over = True


class BestState(Protocol):
    """The highest bids for an auction on a day, the highest first."""

    day: int
    count: int
    prices: MutableSequence[int]
    bidders: MutableSequence[int]
    dates: MutableSequence[int]
    over: bool


@fold(state=BEST, output=RANKED, pending=PENDING)
def rank_bid(key: int, value: DayBid, state: BestState, later: PostDates, emit: Emits) -> None:
    if state.count > 0 and state.day != value.day:
        for i in range(state.count):
            emit.row(key, state.day, i + 1, state.bidders[i], state.prices[i], state.dates[i])
        state.count = 0
    if state.count == 0:
        state.day = value.day
        later.at(value.close_at, value.day)
    place = state.count
    while place > 0 and state.prices[place - 1] < value.price:  # of equal ones, the earlier stays first
        place -= 1
    if place == 10:
        return
    state.count = min(state.count + 1, 10)
    for i in range(state.count - 1, place, -1):
        state.prices[i] = state.prices[i - 1]
        state.bidders[i] = state.bidders[i - 1]
        state.dates[i] = state.dates[i - 1]
    state.prices[place] = value.price
    state.bidders[place] = value.bidder
    state.dates[place] = value.date_time


@fold(state=BEST, output=RANKED, pending=PENDING, create=False, forget="over")
def end_ranks(key: int, value: int, state: BestState, emit: Emits) -> None:
    if state.day == value:
        for i in range(state.count):
            emit.row(key, state.day, i + 1, state.bidders[i], state.prices[i], state.dates[i])
        state.over = True


def q17(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Auction statistics: the bids for each auction on each day."""
    return ops.state_machine(
        with_days(events["bid"], options.q17_day, options.grid),
        key="auction", value=["price", "day", "close_at"], fold=trade, due=end_trade,
        order=("date_time",), name="q17",
    )  # fmt: skip


def q18(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Find the last bid: of each bidder for each auction, on each day."""
    pairs = with_days(events["bid"], options.q18_day, options.grid).columns.with_columns(_pairs)
    found = ops.state_machine(
        pairs,
        key="pair", value=["price", "date_time", "day", "close_at"], fold=last_bid, due=end_last_bid,
        order=("date_time", "event"), name="q18",
    )  # fmt: skip

    def apart(batch: Columns) -> Made:
        pair = batch["pair"]
        bid = {"auction": pair & (1 << 32) - 1, "bidder": pair >> 32}
        return {**bid, "price": batch["price"], "date_time": batch["date_time"]}

    return found.columns.map(apart, "apart")


def q19(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """The ten highest bids: for each auction on each day, with their ranks."""
    return ops.state_machine(
        with_days(events["bid"], options.q19_day, options.grid),
        key="auction", value=["price", "bidder", "date_time", "day", "close_at"], fold=rank_bid, due=end_ranks,
        order=("date_time", "event"), name="q19",
    )  # fmt: skip


def with_days(bids: Stream[Columns], length: int, grid: int) -> Stream[Columns]:
    """Bids with the day (its first moment) on which they were made, and the time at which that is over."""

    def days(batch: Columns) -> dict[str, Ints]:
        day = batch["date_time"] // length * length
        return {"day": day, "close_at": up(day + length, grid)}

    return bids.columns.with_columns(days)


def _pairs(bids: Columns) -> dict[str, Ints]:
    """Bidder and auction as one key."""
    bidder, auction = bids["bidder"], bids["auction"]
    if len(bids) and (int(bidder.max()) >= 1 << 31 or int(auction.max()) >= 1 << 32):
        raise ValueError("q18 keeps pairs of ids in 64 bits: bidders must be below 2^31, auctions below 2^32")
    return {"pair": np.left_shift(bidder, 32) | auction}
