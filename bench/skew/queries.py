"""The paper's workloads as dataflows over columns: word count, a windowed self-join, and the continuous TPC-H Q5.

One body each. `keep` has the stateful operators: `MigratingOperators(control, bins)`, whose state moves as a control
stream says, or `dataflow.state.native` itself, where it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Required, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

import megaphone
from dataflow import Stream
from dataflow.columns import Columns
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
    name: str


class JoinOptions(TypedDict, total=False):
    """How two streams are joined: see `dataflow.state.native.join`."""

    key: Required[str]
    value: Sequence[str]
    right_value: Sequence[str]
    unique: str | None
    name: str


class StatefulOperators(Protocol):
    """What these queries need: operators that migrate, or those of `dataflow.state.native`."""

    def state_machine(self, stream: ColumnStream, /, **options: Unpack[FoldOptions]) -> Stream[Columns]:
        """State by key."""

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

    def join(self, left: ColumnStream, right: ColumnStream, /, **options: Unpack[JoinOptions]) -> Migratable:
        """As `dataflow.state.native.join`."""
        self.made.append(megaphone.join(self._control, left, right, bins=self._bins, **options))
        return self.made[-1]


@fold(state={"count": "i8"}, output={"word": "i8", "count": "i8"})
def count_word(key, state):  # type: ignore[no-untyped-def]
    """The count of a word so far, for each time it comes."""
    state.count += 1
    return key, state.count


def word_count(words: ColumnStream, keep: StatefulOperators) -> Stream[Columns]:
    """Columns with `word`; out come `word` and `count`."""
    return keep.state_machine(words, key="word", fold=count_word, name="word_count")


_TRADES = {"buys": "i8", "sells": "i8", "idle": "b1"}


@fold(state=_TRADES, output={"stock": "i8", "player": "i8", "met": "i8"}, pending={"side": "i8"})
def trade(key, value, state, emit, later):  # type: ignore[no-untyped-def]
    """Meets the trades of the other side that are in the window."""
    met = state.sells if value.side > 0 else state.buys
    if met:
        emit.row(key, value.player, met)
    if value.side > 0:
        state.buys += 1
    else:
        state.sells += 1
    later.at(value.until, value.side)


@fold(state=_TRADES, output={"stock": "i8", "player": "i8", "met": "i8"}, pending={"side": "i8"}, forget="idle")
def leave_window(key, value, state, emit):  # type: ignore[no-untyped-def]
    """A trade leaves the window."""
    if value > 0:
        state.buys -= 1
    else:
        state.sells -= 1
    state.idle = state.buys == 0 and state.sells == 0


def self_join(trades: ColumnStream, keep: StatefulOperators, window: int) -> Stream[Columns]:
    """Each trade with those of the other side of the same stock, at most `window` times apart: how many it met.

    Columns `at` (the time at which they are sent), `stock`, `player` and `side`; out come `stock`, `player` and `met`,
    at the later of the two times. Of one time, sells come before buys, so that each pair is met once, whatever
    the order of records.
    """
    expiring = trades.columns.with_columns(lambda batch: {"until": batch["at"] + window})
    return keep.state_machine(
        expiring, key="stock", value=["player", "side", "until"], fold=trade, due=leave_window, order=["side"],
        name="self_join",
    )  # fmt: skip


@fold(state={"revenue": "i8"}, output={"nation": "i8", "revenue": "i8"})
def add_revenue(key, value, state):  # type: ignore[no-untyped-def]
    """The revenue of a nation so far."""
    state.revenue += value
    return key, state.revenue


def q5(
    tables: dict[str, ColumnStream], keep: StatefulOperators, nations: NDArray[np.bool_], start: int, length: int = YEAR
) -> Stream[Columns]:
    """Revenue of suppliers with customers of their own nation, by nation, as orders and lines come.

    `tables`: streams of `customer`, `supplier`, `orders` and `lineitem`, columns as in `tpch`. `nations`: those of the
    region, a mask by nation key. Orders count from day `start` on, for `length` days. Out come `nation` and `revenue`
    in hundredths of a cent.
    """

    def of_the_year(orders: Columns) -> NDArray[np.bool_]:
        days: NDArray[np.int64] = orders["orderdate"]
        return (days >= start) & (days < start + length)

    def priced(lines: Columns) -> dict[str, NDArray[np.int64]]:
        price: NDArray[np.int64] = lines["extendedprice"]
        return {"revenue": price * (100 - lines["discount"])}

    customers = tables["customer"].columns.filter(lambda batch: nations[batch["nationkey"]])
    suppliers = tables["supplier"].columns.map(lambda b: {"suppkey": b["suppkey"], "home": b["nationkey"]})
    placed = keep.join(
        tables["orders"].columns.filter(of_the_year), customers,
        key="custkey", value=["orderkey"], right_value=["nationkey"], unique="right", name="q5 orders",
    )  # fmt: skip
    sold = keep.join(
        tables["lineitem"].columns.with_columns(priced), placed,
        key="orderkey", value=["suppkey", "revenue"], right_value=["nationkey"], unique="right", name="q5 lines",
    )  # fmt: skip
    supplied = keep.join(
        sold, suppliers,
        key="suppkey", value=["revenue", "nationkey"], right_value=["home"], unique="right", name="q5 suppliers",
    )  # fmt: skip
    local = supplied.columns.filter(lambda batch: batch["home"] == batch["nationkey"])
    return keep.state_machine(local, key="nationkey", value="revenue", fold=add_revenue, name="q5 revenue")
