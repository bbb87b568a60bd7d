"""Queries 1 to 8, one body each. A query takes its stateful operators as an argument: `NativeOperators()` or
`MigratableOperators(...)`.

Times of the dataflow are nanoseconds, multiples of a `grid`, and a record is never sent at a time after its own. So
what must happen at `t` is post-dated to the first time of the grid that is not before `t`: by then every record before
`t` has been applied, and the date of a record says on which side of `t` it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from nexmark.events.config import SECOND
from nexmark.events.kernels import Ints
from nexmark.events.vocabulary import STATES
from nexmark.queries import folds
from nexmark.queries.counting import counts_of_batch
from nexmark.queries.highest_bids import highest_of_batch
from nexmark.queries.hot_auctions import PANES, PENDING, STATE, hottest, hottest_of_all, pane_of, up
from nexmark.queries.operators import Made, Operators

_SUGGESTED = [STATES.index(state) for state in ("OR", "ID", "CA")]


@dataclass(frozen=True)
class QueryOptions:
    """Lengths of windows, and the resolution of the dataflow's times, in nanoseconds."""

    grid: int = SECOND // 1000
    q5_window: int = 60 * SECOND
    q5_slide: int = SECOND
    q7_window: int = 10 * SECOND
    q8_window: int = 12 * 3600 * SECOND

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"{name} must be a positive number of nanoseconds, not {value}")
        if self.q5_window % self.q5_slide:
            raise ValueError(f"the window of q5 must be a multiple of its slide: {self.q5_window} and {self.q5_slide}")
        if self.q5_window // self.q5_slide >= PANES:
            raise ValueError(f"the window of q5 has more than {PANES} slides")


Events: TypeAlias = Mapping[str, Stream[Columns]]
Query: TypeAlias = Callable[[Events, Operators, QueryOptions], Stream[Columns]]


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
        auctions, events["bid"],
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
        key = counted["auction"] * PANES + end // pane % PANES
        return {"key": key, **counted, "close_at": up(end, grid)}

    counts = ops.state_machine(
        events["bid"].columns.map(panes, "panes"),
        key="key", value=["auction", "pane_end", "bids", "close_at"],
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


QUERIES: Mapping[str, Query] = {f"q{n}": query for n, query in enumerate((q1, q2, q3, q4, q5, q6, q7, q8), 1)}

NEEDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "q1": {"bid": ("auction", "bidder", "price", "date_time")},
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
}
"""The columns that each query reads: nothing else is made or sent."""
