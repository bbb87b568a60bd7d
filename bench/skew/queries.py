"""The paper's workloads as dataflows over columns: word count, a windowed self-join, and the continuous TPC-H Q5.

One body each. `keep` has the stateful operators: `Migratable(control, bins)`, whose state moves as a control stream
says, or `dataflow.state.native` itself, where it stays.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import megaphone
from dataflow import Stream
from dataflow.columns import Columns
from megaphone import fold
from megaphone.assembly import Migratable as Operator

YEAR = 365


class Migratable:
    """Operators on one control stream. `made`: those that were built, for controllers."""

    def __init__(self, control: Stream[Any], bins: int = 256, **options: Any) -> None:
        self._options = {"bins": bins, **options}
        self._control = control
        self.made: list[Operator] = []

    def state_machine(self, stream: Stream[Any], **options: Any) -> Operator:
        """As `dataflow.state.native.state_machine`."""
        return self._keep(partial(megaphone.state_machine, self._control, stream), options)

    def join(self, left: Stream[Any], right: Stream[Any], **options: Any) -> Operator:
        """As `dataflow.state.native.join`."""
        return self._keep(partial(megaphone.join, self._control, left, right), options)

    def _keep(self, build: Any, options: dict[str, Any]) -> Operator:
        self.made.append(build(**options, **self._options))
        return self.made[-1]


@fold(state={"count": "i8"}, output={"word": "i8", "count": "i8"})
def count_word(key, state):  # type: ignore[no-untyped-def]
    """The count of a word so far, for each time it comes."""
    state.count += 1
    return key, state.count


def word_count(words: Stream[Any], keep: Any) -> Any:
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


def self_join(trades: Stream[Any], keep: Any, window: int) -> Any:
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


def q5(tables: dict[str, Stream[Any]], keep: Any, nations: Any, start: int, length: int = YEAR) -> Any:
    """Revenue of suppliers with customers of their own nation, by nation, as orders and lines come.

    `tables`: streams of `customer`, `supplier`, `orders` and `lineitem`, columns as in `tpch`. `nations`: those of the
    region, a mask by nation key. Orders count from day `start` on, for `length` days. Out come `nation` and `revenue`
    in hundredths of a cent.
    """

    def of_the_year(orders: Columns) -> Any:
        days: Any = orders["orderdate"]
        return (days >= start) & (days < start + length)

    def priced(lines: Columns) -> Any:
        price: Any = lines["extendedprice"]
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
