"""Configurations and events that several tests use."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from nexmark.events.config import SECOND, Config

Row = dict[str, Any]


def configs() -> st.SearchStrategy[Config]:
    """Options of every kind, the small and the awkward ones among them."""
    return st.builds(
        Config,
        seed=st.integers(0, 2**64 - 1),
        rate=st.sampled_from([1, 7, 1000, 3164, 1_000_000, 0.5]),
        base_time=st.sampled_from([0, 1, 1_700_000_000 * SECOND]),
        group=st.sampled_from([1, 2, 3, 7, 10, 1000, 954]),
        persons=st.integers(1, 5),
        auctions=st.integers(1, 5),
        bids=st.sampled_from([0, 1, 46, 100]),
        in_flight=st.sampled_from([0, 1, 100, 2592 * 1000]),
        active_people=st.sampled_from([1, 5, 1000]),
        hot_seller_ratio=st.integers(1, 5),
        hot_auction_ratio=st.sampled_from([1, 2, 3, 1000]),
        hot_bidder_ratio=st.integers(1, 5),
    )


def _table(names: str, rows: Sequence[tuple[Any, ...]], first_event: int) -> list[Row]:
    """Rows of a trace; its times are in seconds."""
    table = [dict(zip(names.split(), row, strict=True)) for row in rows]
    for event, row in enumerate(table, first_event):
        row["event"] = event
        for name in ("date_time", "expires"):
            if name in row:
                row[name] = round(row[name] * SECOND)
    return table


# The trace of the reference, small enough to be worked out by hand.
PERSONS = _table(
    "date_time id name city state",
    [(0, 1000, "ann", "bend", "OR"), (5, 1001, "bob", "kent", "WA"), (6, 1002, "cleo", "boise", "CA")],
    100,
)
AUCTIONS = _table(
    "date_time id seller category reserve expires",
    [
        (1, 1000, 1000, 10, 500, 20),
        (2, 1001, 1002, 10, 100, 8),
        (3, 1002, 1002, 10, 100_000, 30),
        (6, 1003, 1001, 11, 200, 9),
    ],
    200,
)
BIDS = _table(
    "date_time auction bidder price",
    [
        (2, 1000, 1001, 400),
        (2.5, 1001, 1001, 150),
        (3, 1000, 1001, 600),
        (4, 1000, 1003, 600),
        (5, 1003, 1004, 300),
        (7, 1003, 1004, 250),
        (8, 1001, 1001, 900),
        (9, 1107, 1001, 12345),
    ],
    300,
)
TRACE = {"person": PERSONS, "auction": AUCTIONS, "bid": BIDS}


def _person(id: int, date_time: int) -> Row:
    return {"event": 0, "id": id, "name": "ann", "city": "bend", "state": "OR", "date_time": date_time}


def _auction(event: int, id: int, date_time: int, expires: int, seller: int = 1000, reserve: int = 50) -> Row:
    opened = {"event": event, "id": id, "date_time": date_time, "expires": expires, "seller": seller}
    return opened | {"category": 10, "reserve": reserve}


def _bid(event: int, auction: int, bidder: int, price: int, date_time: int) -> Row:
    return {"event": event, "auction": auction, "bidder": bidder, "price": price, "date_time": date_time}


def adverse_inputs() -> dict[str, dict[str, list[Row]]]:
    """By name, inputs that queries trip over."""
    later = 30 * 3600 * SECOND
    return {
        "no events": _events(),
        "one person": _events(persons=[_person(1000, 0)]),
        "one auction": _events(auctions=[_auction(1, 1000, 0, 5)]),
        "one bid": _events(bids=[_bid(2, 1000, 1001, 100, 0)]),
        "the bids of the trace": _events(bids=BIDS),
        "bids for auctions that never come": _events(bids=[_bid(2, 5000, 1001, 100, 0), _bid(3, 5001, 1001, 100, 1)]),
        "all at the same time": _events(
            [_person(1000, 0)],
            [_auction(1, 1000, 0, 1)],
            [_bid(2, 1000, 1001, 100, 0), _bid(3, 1000, 1002, 200, 0), _bid(4, 1000, 1003, 200, 0)],
        ),
        "gaps of hours": _events(
            [_person(1000, 0)],
            [_auction(1, 1000, 0, SECOND), _auction(3, 1001, later, later + SECOND)],
            [_bid(2, 1000, 1001, 100, 0), _bid(4, 1001, 1001, 200, later)],
        ),
        "one at a time closes, in the order of ids": _events(
            auctions=[_auction(i, 1000 + i, 0, SECOND, seller=7) for i in reversed(range(12))],
            bids=[_bid(100 + i, 1000 + i, 1, 100 + i, 0) for i in range(12)],
        ),
    }


def _events(
    persons: Sequence[Row] = (), auctions: Sequence[Row] = (), bids: Sequence[Row] = ()
) -> dict[str, list[Row]]:
    return {"person": list(persons), "auction": list(auctions), "bid": list(bids)}
