"""Joins over event time whose state migrates: see `dataflow.joins`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.joins import operator as parts
from dataflow.joins.columns import ColumnJoin
from dataflow.joins.folds import JoinFold, Sided
from dataflow.joins.operator import Outer
from dataflow.state.values import Key, Value
from dataflow.time.durations import Duration
from megaphone.assembly import INTERVAL, Migratable
from megaphone.control.updates import Update
from megaphone.operators import rows

L = TypeVar("L")
R = TypeVar("R")


def interval_join(
    control: Stream[Update],
    left: Stream[L],
    right: Stream[R],
    *,
    key: Callable[[L], Key],
    right_key: Callable[[R], Key] | None = None,
    before: int | Duration = 0,
    after: int | Duration = 0,
    how: Outer = "inner",
    bins: int = 256,
    interval: float | Duration | None = INTERVAL,
    name: str = "interval_join",
) -> Migratable[tuple[Key, L, R]]:
    """Pairs of records of which the right one is near the left one: `dataflow.joins.interval_join`."""
    plan = parts.interval_plan(left, right, key, right_key, before, after, how, name)
    return _migratable(control, plan, bins, interval, name)


def as_of_join(
    control: Stream[Update],
    left: Stream[L],
    right: Stream[R],
    *,
    key: Callable[[L], Key],
    right_key: Callable[[R], Key] | None = None,
    tolerance: int | Duration | None = None,
    how: Outer = "left",
    bins: int = 256,
    interval: float | Duration | None = INTERVAL,
    name: str = "as_of_join",
) -> Migratable[tuple[Key, L | None, R | None]]:
    """Left records with the last right one at or before their time: `dataflow.joins.as_of_join`."""
    plan = parts.as_of_plan(left, right, key, right_key, tolerance, how, name)
    return _migratable(control, plan, bins, interval, name)


def table_join(
    control: Stream[Update],
    stream: Stream[L],
    table: Stream[tuple[Key, R | None]],
    *,
    key: Callable[[L], Key],
    how: Literal["inner", "left"] = "inner",
    bins: int = 256,
    interval: float | Duration | None = INTERVAL,
    name: str = "table_join",
) -> Migratable[tuple[Key, L, R | None]]:
    """Records with the row that a slowly changing table has at their time: `dataflow.joins.table_join`."""
    return _migratable(control, parts.table_plan(stream, table, key, how, name), bins, interval, name)


def deduplicate(
    control: Stream[Update],
    stream: Stream[L],
    *,
    key: Callable[[L], Key],
    within: int | Duration,
    bins: int = 256,
    interval: float | Duration | None = INTERVAL,
    name: str = "deduplicate",
) -> Migratable[L]:
    """The first record of a key within a time: `dataflow.joins.deduplicate`."""
    return _migratable(control, parts.duplicate_plan(stream, key, within, name), bins, interval, name)


def column_join(
    control: Stream[Update],
    left: Stream[Columns],
    right: Stream[Columns],
    plan: ColumnJoin,
    fold: JoinFold,
    *,
    bins: int = 256,
    interval: float | Duration | None = INTERVAL,
) -> Migratable[Columns]:
    """A join of columns, as frames have it."""
    joined = _migratable(control, (plan.prepare(left, right), fold), bins, interval, plan.name)
    return Migratable(plan.present(joined), joined.handle)


def _migratable(
    control: Stream[Update],
    plan: tuple[Stream[Sided], JoinFold],
    bins: int,
    interval: float | Duration | None,
    name: str,
) -> Migratable[Value]:
    stream, fold = plan
    return rows.unary(
        control,
        stream,
        key=parts.key_of,
        fold=fold,
        state=dict,
        by_key=True,
        bins=bins,
        name=name,
        interval=interval,
    )
