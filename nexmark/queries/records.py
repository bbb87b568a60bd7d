"""What the folds of `folds` read and write, field by field: for readers and type checkers.

A fold runs on compiled records; these say which fields they have. What is written (a state) is also declared as a
schema beside the fold, with the width of each field.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Protocol


class Emits(Protocol):
    """What a fold's parameter `emit` is."""

    def row(self, *values: int) -> None:
        """Gives one row of output."""


class PostDates(Protocol):
    """What a fold's parameter `later` is."""

    def at(self, time: int, *values: int) -> None:
        """Has the operator's `due` fold run for this key at a time, with these values."""


# For queries 4 and 6


class OpenedAuction(Protocol):
    """An auction that opens; it is closed at the first time of the dataflow that is not before it expires."""

    date_time: int
    expires: int
    reserve: int
    category: int
    seller: int
    close_at: int


class Offer(Protocol):
    """A bid for an auction; `event` decides between equal prices."""

    price: int
    date_time: int
    event: int


class AuctionState(Protocol):
    """An open auction with the best bid so far."""

    date_time: int
    expires: int
    reserve: int
    category: int
    seller: int
    price: int
    event: int
    sold: bool
    closed: bool


class AverageState(Protocol):
    """Of all prices of a category."""

    total: int
    count: int


class LastTenState(Protocol):
    """The last ten prices of a seller, in a ring."""

    prices: MutableSequence[int]
    count: int


# For query 5


class PaneCount(Protocol):
    """The bids that a batch had for an auction in a pane."""

    auction: int
    pane_end: int
    bids: int
    close_at: int


class PaneEnd(Protocol):
    """The post-dated record that ends an auction's pane."""

    auction: int
    pane_end: int


class PaneState(Protocol):
    """The bids for an auction in a pane."""

    bids: int
    over: bool


# For query 7


class Candidate(Protocol):
    """The highest bid that a batch had in a window."""

    price: int
    event: int
    auction: int
    bidder: int
    close_at: int


class HighestState(Protocol):
    """The highest bid of a window so far; `any` says whether there is one."""

    price: int
    event: int
    auction: int
    bidder: int
    any: bool
    over: bool


# For query 8


class Registration(Protocol):
    """A person, with the window in which they registered."""

    name: int
    window: int
    close_at: int


class FirstOffer(Protocol):
    """An auction, with the window in which its seller opened it."""

    window: int
    close_at: int


class NewcomerState(Protocol):
    """The windows in which a person registered and opened an auction."""

    name: int
    registered: int
    opened: int
    has_registered: bool
    has_opened: bool
    over: bool
