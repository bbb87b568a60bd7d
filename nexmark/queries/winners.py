"""Bids together with their auctions: queries 9 and 20."""

from __future__ import annotations

from typing import Protocol

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from nexmark.queries.foremost import foremost_bids
from nexmark.queries.hot_auctions import up
from nexmark.queries.operators import Operators
from nexmark.queries.options import Events, QueryOptions
from nexmark.queries.records import AuctionState, Emits, Offer, OpenedAuction, PostDates

WINNER = {
    "date_time": "i8", "expires": "i8", "reserve": "i8", "category": "i8", "seller": "i8",
    "bidder": "i8", "price": "i8", "bid_time": "i8", "event": "i8", "sold": "b1", "closed": "b1",
}  # fmt: skip
WON = {
    "auction": "i8", "seller": "i8", "category": "i8", "date_time": "i8", "expires": "i8",
    "bidder": "i8", "price": "i8", "bid_time": "i8",
}  # fmt: skip


class FullOffer(Offer, Protocol):
    """A bid for an auction, and whose it is."""

    bidder: int


class WinnerState(AuctionState, Protocol):
    """An open auction with the best bid so far, whole."""

    bidder: int
    bid_time: int


@fold(state=WINNER, output=WON)
def offer_for_sale(value: OpenedAuction, state: WinnerState, later: PostDates, emit: Emits) -> None:
    state.date_time = value.date_time
    state.expires = value.expires
    state.reserve = value.reserve
    state.category = value.category
    state.seller = value.seller
    later.at(value.close_at)


@fold(state=WINNER, output=WON, create=False)
def best_whole_bid(value: FullOffer, state: WinnerState, emit: Emits) -> None:
    if value.price < state.reserve or value.date_time < state.date_time or value.date_time >= state.expires:
        return
    if state.sold and (value.price < state.price or (value.price == state.price and value.event > state.event)):
        return
    state.bidder = value.bidder
    state.price = value.price
    state.bid_time = value.date_time
    state.event = value.event
    state.sold = True


@fold(state=WINNER, output=WON, create=False, forget="closed")
def sell(key: int, state: WinnerState) -> tuple[int, int, int, int, int, int, int, int] | None:
    state.closed = True
    if state.sold:
        return (
            key, state.seller, state.category, state.date_time, state.expires,
            state.bidder, state.price, state.bid_time,
        )  # fmt: skip
    return None


def q9(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Winning bids: every auction that was sold, when it closes, with the bid that won."""
    auctions = events["auction"].columns.with_columns(lambda a: {"close_at": up(a["expires"], options.grid)})
    return ops.binary(
        auctions, foremost_bids(events["auction"], events["bid"]),
        key="id", value=["date_time", "expires", "reserve", "category", "seller", "close_at"], fold=offer_for_sale,
        right_key="auction", right_value=["price", "date_time", "event", "bidder"], right_fold=best_whole_bid,
        due=sell, name="q9",
    )  # fmt: skip


def q20(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Expand a bid with its auction: all columns of both, for category 10. Bids for other auctions meet these, too, so
    that they do not wait for ever."""
    pairs = ops.join(
        events["bid"], events["auction"],
        key="auction", right_key="id", value=["bidder", "price", "date_time"],
        right_value=["item_name", "initial_bid", "reserve", "expires", "seller", "category"],
        unique="right", name="q20",
    )  # fmt: skip
    return pairs.columns.filter(lambda both: both["category"] == 10)
