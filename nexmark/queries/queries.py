"""Queries 1 to 8, one body each, and a table of all. A query takes its stateful operators as an argument:
`NativeOperators()` or `MigratableOperators(...)`.

Times of the dataflow are nanoseconds, multiples of a `grid`, and a record is never sent at a time after its own. So
what must happen at `t` is post-dated to the first time of the grid that is not before `t`: by then every record before
`t` has been applied, and the date of a record says on which side of `t` it belongs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from nexmark.events.kernels import Ints
from nexmark.events.vocabulary import STATES
from nexmark.queries import folds
from nexmark.queries.counting import counts_of_batch
from nexmark.queries.daily import q17, q18, q19
from nexmark.queries.distinct import q15, q16
from nexmark.queries.foremost import foremost_bids
from nexmark.queries.highest_bids import highest_of_batch
from nexmark.queries.hot_auctions import FINE, PANES, PENDING, STATE, hottest, hottest_of_all, pane_of, up
from nexmark.queries.lookups import q0, q10, q13, q14, q21, q22
from nexmark.queries.operators import Made, Operators
from nexmark.queries.options import Events, Query, QueryOptions
from nexmark.queries.sessions import q11, q12
from nexmark.queries.winners import q9, q20

_SUGGESTED = [STATES.index(state) for state in ("OR", "ID", "CA")]


def q1(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Currency conversion."""

    def convert(bids: Columns) -> Made:
        price = bids["price"] * 89 // 100
        return {"auction": bids["auction"], "bidder": bids["bidder"], "price": price, "date_time": bids["date_time"]}

    return ops.stateless(events["bid"], "auction", convert, "q1")


def q2(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Selection."""

    def select(bids: Columns) -> Made:
        return bids.filter(bids["auction"] % 123 == 0).select(("auction", "price"))

    return ops.stateless(events["bid"], "auction", select, "q2")


def q3(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Local item suggestion."""
    auctions = events["auction"].columns.filter(lambda a: a["category"] == 10)
    persons = events["person"].columns.filter(lambda p: np.isin(p["state"], _SUGGESTED))
    pairs = ops.join(
        auctions.columns.map(lambda a: {"seller": a["seller"], "auction": a["id"]}),
        persons,
        key="seller", right_key="id", value=["auction"], right_value=["name", "city", "state"],
        unique="right", name="q3",
    )  # fmt: skip
    return pairs.columns.project("name", "city", "state", "auction")


def closed_auctions(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Every auction that was sold, when it closes, with its price."""
    auctions = events["auction"].columns.with_columns(lambda a: {"close_at": up(a["expires"], options.grid)})
    return ops.binary(
        auctions, foremost_bids(events["auction"], events["bid"]),
        key="id", value=["date_time", "expires", "reserve", "category", "seller", "close_at"], fold=folds.open_auction,
        right_key="auction", right_value=["price", "date_time", "event"], right_fold=folds.best_bid,
        due=folds.close_auction, name="closed auctions",
    )  # fmt: skip


def q4(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Average price by category."""
    closed = closed_auctions(events, ops, options)
    order = ("expires", "auction")
    return ops.state_machine(closed, key="category", value="price", fold=folds.average_of_all, order=order, name="q4")


def q5(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Hot items."""
    slide, grid = options.q5_slide, options.grid
    pane = pane_of(options.q5_window, slide, grid)

    def panes(bids: Columns) -> Made:
        counted = counts_of_batch(bids, pane)
        end = counted["pane_end"]
        return {"key": counted["auction"] * PANES + end // pane % PANES, **counted, "close_at": up(end, grid)}

    counts = events["bid"].columns.map(panes, "panes")
    if pane >= FINE * grid:  # a pane has many times: what they count is added up first
        counts = ops.state_machine(
            counts, key="key", value=["auction", "pane_end", "bids", "close_at"],
            fold=folds.count_bids, due=folds.end_pane, name="q5 panes",
        )  # fmt: skip
    fold = hottest(options.q5_window, slide, grid)
    best = ops.unary(counts, key="auction", fold=fold, state=STATE, pending=PENDING, name="q5 windows")
    return best.columns.gather("window_end", hottest_of_all, name="q5")


def q6(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Average selling price by seller."""
    closed = closed_auctions(events, ops, options)
    order = ("expires", "auction")
    return ops.state_machine(closed, key="seller", value="price", fold=folds.average_of_ten, order=order, name="q6")


def q7(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Highest bid."""

    def candidates(bids: Columns) -> Made:
        best = highest_of_batch(bids, options.q7_window)
        return best.with_columns({"close_at": up(best["window_end"], options.grid)})

    return ops.state_machine(
        events["bid"].columns.map(candidates, "candidates"),
        key="window_end", value=["price", "event", "auction", "bidder", "close_at"],
        fold=folds.highest_bid, due=folds.end_window, name="q7",
    )  # fmt: skip


def q8(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Monitor new users."""
    length = options.q8_window

    def windows(batch: Columns) -> dict[str, Ints]:
        start = batch["date_time"] // length * length
        return {"window": start, "close_at": up(start + length, options.grid)}

    return ops.binary(
        events["person"].columns.with_columns(windows), events["auction"].columns.with_columns(windows),
        key="id", value=["name", "window", "close_at"], fold=folds.register,
        right_key="seller", right_value=["window", "close_at"], right_fold=folds.offer,
        due=folds.end_registration, name="q8",
    )  # fmt: skip


_BIDS = ("auction", "bidder", "price", "date_time")

QUERIES: Mapping[str, Query] = {
    f"q{n}": query
    for n, query in enumerate(
        (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22)
    )
}
PAPERS: Sequence[str] = tuple(f"q{n}" for n in range(1, 9))
"""Those that Megaphone's paper has; the others are the wider community's."""

NEEDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "q0": {"bid": _BIDS},
    "q1": {"bid": _BIDS},
    "q2": {"bid": ("auction", "price")},
    "q3": {"person": ("id", "name", "city", "state"), "auction": ("id", "seller", "category")},
    "q4": {
        "auction": ("id", "date_time", "expires", "reserve", "category", "seller"),
        "bid": ("auction", "price", "date_time", "event"),
    },
    "q5": {"bid": ("auction", "date_time")},
    "q6": {
        "auction": ("id", "date_time", "expires", "reserve", "category", "seller"),
        "bid": ("auction", "price", "date_time", "event"),
    },
    "q7": {"bid": ("event", "auction", "bidder", "price", "date_time")},
    "q8": {"person": ("id", "name", "date_time"), "auction": ("seller", "date_time")},
    "q9": {
        "auction": ("id", "date_time", "expires", "reserve", "category", "seller"),
        "bid": (*_BIDS, "event"),
    },
    "q10": {"bid": _BIDS},
    "q11": {"bid": ("bidder", "date_time")},
    "q12": {"bid": ("bidder",)},
    "q13": {"bid": _BIDS},
    "q14": {"bid": (*_BIDS, "extra")},
    "q15": {"bid": _BIDS},
    "q16": {"bid": (*_BIDS, "channel")},
    "q17": {"bid": ("auction", "price", "date_time")},
    "q18": {"bid": (*_BIDS, "event")},
    "q19": {"bid": (*_BIDS, "event")},
    "q20": {"auction": ("id", "item_name", "initial_bid", "reserve", "expires", "seller", "category"), "bid": _BIDS},
    "q21": {"bid": ("auction", "bidder", "price", "channel", "url")},
    "q22": {"bid": ("auction", "bidder", "price", "channel", "url")},
}
"""The columns that each query reads: nothing else is made or sent."""
