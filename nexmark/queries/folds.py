"""The folds of the queries: what each does with one record, compiled."""

from __future__ import annotations

from dataflow.state.folds.fold import fold
from nexmark.queries.records import (
    AuctionState,
    AverageState,
    Candidate,
    Emits,
    FirstOffer,
    HighestState,
    LastTenState,
    NewcomerState,
    Offer,
    OpenedAuction,
    PaneCount,
    PaneEnd,
    PaneState,
    PostDates,
    Registration,
)

# The auctions that are open, with the best bid so far: for queries 4 and 6

AUCTION = {
    "date_time": "i8", "expires": "i8", "reserve": "i8", "category": "i8", "seller": "i8",
    "price": "i8", "event": "i8", "sold": "b1", "closed": "b1",
}  # fmt: skip
CLOSED = {"auction": "i8", "category": "i8", "seller": "i8", "expires": "i8", "price": "i8"}


@fold(state=AUCTION, output=CLOSED)
def open_auction(value: OpenedAuction, state: AuctionState, later: PostDates, emit: Emits) -> None:
    state.date_time = value.date_time
    state.expires = value.expires
    state.reserve = value.reserve
    state.category = value.category
    state.seller = value.seller
    later.at(value.close_at)


@fold(state=AUCTION, output=CLOSED, create=False)
def best_bid(value: Offer, state: AuctionState, emit: Emits) -> None:
    if value.price < state.reserve or value.date_time < state.date_time or value.date_time >= state.expires:
        return
    if state.sold and (value.price < state.price or (value.price == state.price and value.event > state.event)):
        return
    state.price = value.price
    state.event = value.event
    state.sold = True


@fold(state=AUCTION, output=CLOSED, create=False, forget="closed")
def close_auction(key: int, state: AuctionState) -> tuple[int, int, int, int, int] | None:
    state.closed = True
    if state.sold:
        return key, state.category, state.seller, state.expires, state.price
    return None


@fold(state={"total": "i8", "count": "i8"}, output={"category": "i8", "average": "i8"})
def average_of_all(key: int, value: int, state: AverageState) -> tuple[int, int]:
    state.total += value
    state.count += 1
    return key, state.total // state.count


@fold(state={"prices": ("i8", 10), "count": "i8"}, output={"seller": "i8", "average": "i8"})
def average_of_ten(key: int, value: int, state: LastTenState) -> tuple[int, int]:
    state.prices[state.count % 10] = value
    state.count += 1
    kept = min(state.count, 10)
    total = 0
    for i in range(kept):
        total += state.prices[i]
    return key, total // kept


# Bids for an auction in a slide of time: for query 5. The key is both, see `queries`.

PANE = {"bids": "i8", "over": "b1"}
COUNTED = {"auction": "i8", "pane_end": "i8", "bids": "i8"}


@fold(state=PANE, output=COUNTED, pending={"auction": "i8", "pane_end": "i8"})
def count_bids(value: PaneCount, state: PaneState, later: PostDates, emit: Emits) -> None:
    if state.bids == 0:
        later.at(value.close_at, value.auction, value.pane_end)
    state.bids += value.bids


@fold(state=PANE, output=COUNTED, pending={"auction": "i8", "pane_end": "i8"}, create=False, forget="over")
def end_pane(value: PaneEnd, state: PaneState) -> tuple[int, int, int]:
    state.over = True
    return value.auction, value.pane_end, state.bids


# The highest bid of a window: for query 7

HIGHEST = {"price": "i8", "event": "i8", "auction": "i8", "bidder": "i8", "any": "b1", "over": "b1"}
HIGHEST_OF = {"window_end": "i8", "auction": "i8", "bidder": "i8", "price": "i8"}


@fold(state=HIGHEST, output=HIGHEST_OF)
def highest_bid(value: Candidate, state: HighestState, later: PostDates, emit: Emits) -> None:
    if not state.any:
        state.any = True
        later.at(value.close_at)
    elif value.price < state.price or (value.price == state.price and value.event > state.event):
        return
    state.price = value.price
    state.event = value.event
    state.auction = value.auction
    state.bidder = value.bidder


@fold(state=HIGHEST, output=HIGHEST_OF, create=False, forget="over")
def end_window(key: int, state: HighestState) -> tuple[int, int, int, int]:
    state.over = True
    return key, state.auction, state.bidder, state.price


# Persons and the windows in which they registered and opened auctions: for query 8

NEWCOMER = {"name": "i8", "registered": "i8", "opened": "i8", "has_registered": "b1", "has_opened": "b1", "over": "b1"}
NEWCOMERS = {"person": "i8", "name": "i4", "window_start": "i8"}


@fold(state=NEWCOMER, output=NEWCOMERS, pending={"window": "i8"})
def register(key: int, value: Registration, state: NewcomerState, emit: Emits, later: PostDates) -> None:
    state.name = value.name
    state.registered = value.window
    state.has_registered = True
    later.at(value.close_at, value.window)
    if state.has_opened and state.opened == value.window:
        emit.row(key, state.name, value.window)


@fold(state=NEWCOMER, output=NEWCOMERS, pending={"window": "i8"})
def offer(key: int, value: FirstOffer, state: NewcomerState, emit: Emits, later: PostDates) -> None:
    if state.has_opened and state.opened == value.window:
        return
    if not state.has_registered:
        later.at(value.close_at, value.window)
    elif state.registered != value.window:
        return
    state.opened = value.window
    state.has_opened = True
    if state.has_registered:
        emit.row(key, state.name, value.window)


@fold(state=NEWCOMER, output=NEWCOMERS, pending={"window": "i8"}, create=False, forget="over")
def end_registration(value: int, state: NewcomerState, emit: Emits) -> None:
    state.over = (state.registered if state.has_registered else state.opened) == value
