"""Queries 1 to 8 one after the other over lists of rows: what every engine's answers are held against.

Each is the shortest program that says what its query means. They share no code with the queries that they judge, look
at everything before they answer, and take time and memory as they please. Events are lists of rows (dictionaries) by
kind, in any order; ids of persons and auctions are unique. An answer is a list of tuples; its order means nothing
except in 4 and 6, where it shows how the answer came about.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypedDict

Answer: TypeAlias = list[tuple[int | str, ...]]

SECOND = 1_000_000_000


class Person(TypedDict):
    """Somebody who registers."""

    event: int
    id: int
    name: str
    city: str
    state: str
    date_time: int


class Auction(TypedDict):
    """Somebody offers something."""

    event: int
    id: int
    item_name: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int


class Bid(TypedDict):
    """Somebody bids for it."""

    event: int
    auction: int
    bidder: int
    price: int
    date_time: int


class EventRows(TypedDict):
    """The events, by kind."""

    person: Sequence[Person]
    auction: Sequence[Auction]
    bid: Sequence[Bid]


def q1(events: EventRows) -> Answer:
    """Currency conversion: every bid, its price in euros."""
    return [(b["auction"], b["bidder"], b["price"] * 89 // 100, b["date_time"]) for b in events["bid"]]


def q2(events: EventRows) -> Answer:
    """Selection: the bids for certain auctions."""
    return [(b["auction"], b["price"]) for b in events["bid"] if b["auction"] % 123 == 0]


def q3(events: EventRows) -> Answer:
    """Local item suggestion: who sells in category 10 in certain states; whichever came first."""
    return [
        (p["name"], p["city"], p["state"], a["id"])
        for p in events["person"]
        if p["state"] in ("OR", "ID", "CA")
        for a in events["auction"]
        if a["seller"] == p["id"] and a["category"] == 10
    ]


def q4(events: EventRows) -> Answer:
    """Average price by category: after each auction that closes, that of its category so far."""
    prices: defaultdict[int, list[int]] = defaultdict(list)
    answer: Answer = []
    for auction, winner in closed_auctions(events):
        prices[auction["category"]].append(winner["price"])
        answer.append((auction["category"], sum(prices[auction["category"]]) // len(prices[auction["category"]])))
    return answer


def q5(events: EventRows, window: int = 60 * SECOND, slide: int = SECOND) -> Answer:
    """Hot items: in each window that has bids, the auction with the most; ties to the smaller id."""
    windows: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for b in events["bid"]:
        first_end = (b["date_time"] // slide + 1) * slide
        for end in range(first_end, b["date_time"] + window + 1, slide):  # end - window <= date_time < end
            windows[end][b["auction"]] += 1
    hottest = {end: min(counts, key=lambda id: (-counts[id], id)) for end, counts in windows.items()}
    return [(end, auction, windows[end][auction]) for end, auction in hottest.items()]


def q6(events: EventRows) -> Answer:
    """Average price by seller: after each auction that closes, that of the last ten of its seller."""
    prices: defaultdict[int, list[int]] = defaultdict(list)
    answer: Answer = []
    for auction, winner in closed_auctions(events):
        prices[auction["seller"]].append(winner["price"])
        last = prices[auction["seller"]][-10:]
        answer.append((auction["seller"], sum(last) // len(last)))
    return answer


def q7(events: EventRows, window: int = 10 * SECOND) -> Answer:
    """Highest bid: that of each window; ties to the smaller event id."""
    windows: defaultdict[int, list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        windows[(b["date_time"] // window + 1) * window].append(b)
    highest = {end: min(bids, key=_highest_first) for end, bids in windows.items()}
    return [(end, b["auction"], b["bidder"], b["price"]) for end, b in highest.items()]


def q8(events: EventRows, window: int = 12 * 3600 * SECOND) -> Answer:
    """New users who sell: registered and opened an auction in the same window."""
    opened = {(a["seller"], a["date_time"] // window) for a in events["auction"]}
    return [
        (p["id"], p["name"], p["date_time"] // window * window)
        for p in events["person"]
        if (p["id"], p["date_time"] // window) in opened
    ]


def closed_auctions(events: EventRows) -> list[tuple[Auction, Bid]]:
    """The auctions that closed with a winner, and the winning bid, in the order (expires, auction id)."""
    bids: defaultdict[int, list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        bids[b["auction"]].append(b)
    closed = []
    for a in sorted(events["auction"], key=lambda a: (a["expires"], a["id"])):
        valid = [b for b in bids[a["id"]] if b["price"] >= a["reserve"]]
        in_time = [b for b in valid if a["date_time"] <= b["date_time"] < a["expires"]]
        if in_time:
            closed.append((a, min(in_time, key=_highest_first)))
    return closed


def _highest_first(bid: Bid) -> tuple[int, int]:
    return -bid["price"], bid["event"]


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "q1": ("auction", "bidder", "price", "date_time"),
    "q2": ("auction", "price"),
    "q3": ("name", "city", "state", "auction"),
    "q4": ("category", "average"),
    "q5": ("window_end", "auction", "bids"),
    "q6": ("seller", "average"),
    "q7": ("window_end", "auction", "bidder", "price"),
    "q8": ("person", "name", "window_start"),
}
QUERIES: Mapping[str, Callable[..., Answer]] = {f.__name__: f for f in (q1, q2, q3, q4, q5, q6, q7, q8)}
