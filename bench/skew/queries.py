"""The paper's workloads as dataflows over columns: word count, a windowed self-join, and the continuous TPC-H Q5.

One body each. `keep` has the stateful operators: `MigratingOperators(control, bins)`, whose state moves as a control
stream says; for the word count also `dataflow.state.native` itself, where it stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Required, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

import megaphone
import megaphone.plans
from dataflow import Stream
from dataflow.columns import Columns
from dataflow.columns.column import Column
from dataflow.state.folds.fold import Fold, fold
from megaphone.assembly import Migratable

YEAR = 365
ColumnStream: TypeAlias = Stream[Any]  # a stream of columns, which only its batches show


class FoldOptions(TypedDict, total=False):
    """How state by key is folded: see `dataflow.state.native.state_machine`."""

    key: Required[str]
    fold: Required[Fold]
    value: str | Sequence[str] | None
    due: Fold | None
    order: Sequence[str]
    ttl: int | None
    name: str


class JoinOptions(TypedDict, total=False):
    """How two streams are joined: see `dataflow.state.native.join`."""

    key: Required[str]
    value: Sequence[str]
    right_value: Sequence[str]
    unique: str | None
    name: str


class FoldTypes(TypedDict):
    """The types of a fold that post-dates."""

    state: dict[str, str]
    output: dict[str, str]
    pending: dict[str, str]


class KeyedFolding(Protocol):
    """Operators that migrate, or those of `dataflow.state.native`."""

    def state_machine(self, stream: ColumnStream, /, **options: Unpack[FoldOptions]) -> Stream[Columns]:
        """State by key."""


class StatefulOperators(KeyedFolding, Protocol):
    """What these queries need: operators that migrate."""

    def window_join(
        self, streams: Mapping[str, ColumnStream], query: megaphone.plans.Query, *, name: str
    ) -> Stream[Columns]:
        """Every pair of records of two streams that a query allows, within a window of time."""

    def join(self, left: ColumnStream, right: ColumnStream, /, **options: Unpack[JoinOptions]) -> Stream[Columns]:
        """Every pair of records with equal keys, whenever they come."""


class MigratingOperators:
    """Operators on one control stream. `made`: those that were built, for controllers."""

    def __init__(self, control: ColumnStream, bins: int = 256) -> None:
        self._bins = bins
        self._control = control
        self.made: list[Migratable] = []

    def state_machine(self, stream: ColumnStream, /, **options: Unpack[FoldOptions]) -> Migratable:
        """As `dataflow.state.native.state_machine`."""
        self.made.append(megaphone.state_machine(self._control, stream, bins=self._bins, **options))
        return self.made[-1]

    def window_join(
        self, streams: Mapping[str, ColumnStream], query: megaphone.plans.Query, *, name: str
    ) -> Migratable:
        """As `megaphone.window_join`, of two streams."""
        plan = " ".join(query.streams)
        self.made.append(megaphone.window_join(self._control, streams, query, plan=plan, bins=self._bins, name=name))
        return self.made[-1]

    def join(self, left: ColumnStream, right: ColumnStream, /, **options: Unpack[JoinOptions]) -> Migratable:
        """As `dataflow.state.native.join`."""
        self.made.append(megaphone.join(self._control, left, right, bins=self._bins, **options))
        return self.made[-1]


@fold(state={"count": "i8"}, output={"word": "i8", "count": "i8"})
def count_word(key, state):  # type: ignore[no-untyped-def]
    """The count of a word so far, for each time it comes."""
    state.count += 1
    return key, state.count


def word_count(words: ColumnStream, keep: KeyedFolding, window: int | None = None) -> Stream[Columns]:
    """Columns with `word`; out come `word` and `count`. `window`: words that were not seen for so long are
    forgotten."""
    return keep.state_machine(words, key="word", fold=count_word, ttl=window, name="word_count")


def same_player(buy, sell):  # type: ignore[no-untyped-def]
    """Whether who buys also sells."""
    return buy.player == sell.player


def self_join(trades: ColumnStream, keep: StatefulOperators, window: int) -> Stream[Columns]:
    """Each purchase of a stock with each sale of it by the same player, at most `window` times apart: players who are
    in many such pairs trade to and fro.

    Columns `stock`, `player` and `side`; out come `stock`, `player` and the columns of both trades but these
    (`buy_price`, `sell_price`, if there is a price), at the later of the two times.
    """
    buys = trades.columns.filter(lambda batch: batch["side"] > 0)
    sells = trades.columns.filter(lambda batch: batch["side"] < 0)
    query = megaphone.plans.Query(("buy", "sell"), window, on="stock", where={("buy", "sell"): same_player})
    pairs = keep.window_join({"buy": buys, "sell": sells}, query, name="self_join")

    def named(batch: Columns) -> dict[str, Column]:
        once = {"stock": batch.column("buy_stock"), "player": batch.column("buy_player")}
        both = {name: batch.column(name) for name in batch.names if name.partition("_")[2] not in _ONCE}
        return {**once, **both}

    return pairs.columns.map(named)


_ONCE = ("stock", "player", "side")
_REVENUE: FoldTypes = {
    "state": {"revenue": "i8"},
    "output": {"nation": "i8", "revenue": "i8"},
    "pending": {"sum": "i8"},
}


@fold(**_REVENUE)
def add_revenue(time, key, value, state, emit, later):  # type: ignore[no-untyped-def]
    """The revenue of a nation in the window, with a line more; until that leaves the window."""
    if value.until > time:
        state.revenue += value.revenue
        emit.row(key, state.revenue)
        later.at(value.until, value.revenue)


@fold(**_REVENUE)
def drop_revenue(key, value, state, emit):  # type: ignore[no-untyped-def]
    """The same without a line that leaves the window."""
    state.revenue -= value
    emit.row(key, state.revenue)


def q5(
    tables: dict[str, ColumnStream],
    keep: StatefulOperators,
    nations: NDArray[np.bool_],
    start: int,
    length: int = YEAR,
    *,
    window: int,
) -> Stream[Columns]:
    """Revenue of suppliers with customers of their own nation, by nation, over a sliding window of time.

    `tables`: streams of `customer`, `supplier`, `orders` and `lineitem`, columns as in `tpch`; orders and lines also
    have `at`, the time at which they are sent. `nations`: those of the region, a mask by nation key. Orders count from
    day `start` on, for `length` days. A line counts with its order while both are at most `window` times old. Customers
    and suppliers stay. Out come `nation` and `revenue` in hundredths of a cent, whenever it changes.
    """

    def of_the_year(orders: Columns) -> NDArray[np.bool_]:
        days: NDArray[np.int64] = orders["orderdate"]
        return (days >= start) & (days < start + length)

    def priced(sold: Columns) -> dict[str, Column]:
        revenue = sold["line_extendedprice"] * (100 - sold["line_discount"])
        until = np.minimum(sold["line_at"], sold["order_at"]) + window + 1
        return {"custkey": sold["order_custkey"], "suppkey": sold["line_suppkey"], "revenue": revenue, "until": until}

    query = megaphone.plans.Query(("line", "order"), window, on="orderkey")
    placed = tables["orders"].columns.filter(of_the_year)
    sold = keep.window_join({"line": tables["lineitem"], "order": placed}, query, name="q5 lines").columns.map(priced)
    suppliers = tables["supplier"].columns.map(lambda b: {"suppkey": b["suppkey"], "home": b["nationkey"]})
    bought = keep.join(
        sold, tables["customer"],
        key="custkey", value=["suppkey", "revenue", "until"], right_value=["nationkey"], unique="right",
        name="q5 customers",
    ).columns.filter(lambda batch: nations[batch["nationkey"]])  # fmt: skip
    supplied = keep.join(
        bought, suppliers,
        key="suppkey", value=["revenue", "until", "nationkey"], right_value=["home"], unique="right",
        name="q5 suppliers",
    )  # fmt: skip
    local = supplied.columns.filter(lambda batch: batch["home"] == batch["nationkey"])
    return keep.state_machine(
        local, key="nationkey", value=["revenue", "until"], fold=add_revenue, due=drop_revenue, name="q5 revenue"
    )
