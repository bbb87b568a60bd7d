"""The native operators of `dataflow.joins`, and what they share with those of `megaphone`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, TypeVar

from dataflow.build.builder import require_callable
from dataflow.build.stream import Stream
from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.events.moments import ticks
from dataflow.joins.folds import LEFT, RIGHT, AsOfFold, DuplicateFold, IntervalFold, JoinFold, Sided
from dataflow.state import native
from dataflow.time.durations import Duration
from dataflow.time.timestamp import unit_of
from dataflow.values import Key, Record, Value

L = TypeVar("L")
R = TypeVar("R")
KeyOf: TypeAlias = Callable[[Value], Key]
Outer: TypeAlias = Literal["inner", "left", "right", "outer"]

key_of = operator.itemgetter(0)  # of a record that has a side


def interval_join(
    left: Stream[L],
    right: Stream[R],
    *,
    key: Callable[[L], Key],
    right_key: Callable[[R], Key] | None = None,
    before: int | Duration = 0,
    after: int | Duration = 0,
    how: Outer = "inner",
    name: str = "interval_join",
) -> Stream[tuple[Key, L, R]]:
    """(key, left, right) for each pair in which the right record's time is from `before` before the left one's to
    `after` after it; at the later of the two times.

    `how`: "left", "right" or "outer" give records that meet none as well, with None, when none can come any more.
    """
    plan = interval_plan(left, right, key, right_key, before, after, how, name)
    return _native(plan, name)


def as_of_join(
    left: Stream[L],
    right: Stream[R],
    *,
    key: Callable[[L], Key],
    right_key: Callable[[R], Key] | None = None,
    tolerance: int | Duration | None = None,
    how: Outer = "left",
    name: str = "as_of_join",
) -> Stream[tuple[Key, L | None, R | None]]:
    """(key, left, right) for each left record, with the last right one at or before its time, at most `tolerance`
    before; with None if there is none (`how="inner"`: not at all).

    `how`: "right" or "outer" give right records that no left one got as well, when `tolerance` has passed since.
    """
    return _native(as_of_plan(left, right, key, right_key, tolerance, how, name), name)


def table_join(
    stream: Stream[L],
    table: Stream[tuple[Key, R | None]],
    *,
    key: Callable[[L], Key],
    how: Literal["inner", "left"] = "inner",
    name: str = "table_join",
) -> Stream[tuple[Key, L, R | None]]:
    """(key, record, row) for each record, with the row that a slowly changing table has for its key at its time.
    `table` is a stream of (key, row): a row replaces the one before, and None takes it out."""
    return _native(table_plan(stream, table, key, how, name), name)


def deduplicate(
    stream: Stream[L], *, key: Callable[[L], Key], within: int | Duration, name: str = "deduplicate"
) -> Stream[L]:
    """The first record of a key; those that follow it by less than `within` are left out. Of several at one time, the
    one that looks least."""
    return _native(duplicate_plan(stream, key, within, name), name)


def _native(plan: tuple[Stream[Sided], JoinFold], name: str) -> Stream[Value]:
    stream, fold = plan
    return native.unary(stream, key=key_of, fold=fold, state=dict, name=name)


# What is common to native and migratable ones: the records of all sides as one stream, and the fold


def interval_plan(
    left: Stream[Value],
    right: Stream[Value],
    key: KeyOf,
    right_key: KeyOf | None,
    before: int | Duration,
    after: int | Duration,
    how: str,
    name: str,
) -> tuple[Stream[Sided], JoinFold]:
    """The parts of an interval join."""
    fold = interval_fold(unit_of(left.scope.domain), before, after, how, name)
    return _sides(left, right, key, right_key or key, name), fold


def as_of_plan(
    left: Stream[Value],
    right: Stream[Value],
    key: KeyOf,
    right_key: KeyOf | None,
    tolerance: int | Duration | None,
    how: str,
    name: str,
) -> tuple[Stream[Sided], JoinFold]:
    """The parts of an as-of join."""
    fold = as_of_fold(unit_of(left.scope.domain), tolerance, how, name)
    return _sides(left, right, key, right_key or key, name), fold


def table_plan(
    stream: Stream[Value], table: Stream[Value], key: KeyOf, how: str, name: str
) -> tuple[Stream[Sided], JoinFold]:
    """The parts of a join with a table."""
    require_callable(key, name, "key")
    rows = table.map(partial(_row, name), name=f"{name} (table)")
    return _tagged(stream, key, LEFT, name).concat(rows), table_fold(how, name)


def duplicate_plan(
    stream: Stream[Value], key: KeyOf, within: int | Duration, name: str
) -> tuple[Stream[Sided], JoinFold]:
    """The parts of `deduplicate`."""
    length = ticks(within, unit_of(stream.scope.domain), f"{name}: within", least=1)
    return _tagged(stream, key, LEFT, name), DuplicateFold(length)


# The folds, on rows or on columns


def interval_fold(
    unit: str, before: int | Duration, after: int | Duration, how: str, name: str, columns: bool = False
) -> IntervalFold:
    """The fold of an interval join."""
    since, until = ticks(before, unit, f"{name}: before"), ticks(after, unit, f"{name}: after")
    return IntervalFold(since, until, _alone(how, name), columns)


def as_of_fold(unit: str, tolerance: int | Duration | None, how: str, name: str, columns: bool = False) -> AsOfFold:
    """The fold of an as-of join."""
    alone = _alone(how, name)
    if tolerance is None and alone[RIGHT]:
        raise ConstructionError(
            f"{name}: how={how!r} gives right records that no left one gets, and without tolerance= the last of them "
            "may be got at any time to come: say how long they count, or how='left'"
        )
    limit = None if tolerance is None else ticks(tolerance, unit, f"{name}: tolerance")
    return AsOfFold(limit, alone, columns)


def table_fold(how: str, name: str, columns: bool = False) -> AsOfFold:
    """The fold of a join with a table: a row counts until another replaces it."""
    alone = _alone(how, name)
    if alone[RIGHT]:
        raise ConstructionError(
            f"{name}: how is 'inner' or 'left', not {how!r}: a row of a table is there until it is replaced, whoever "
            "asks for it, so there is no time at which it comes out alone"
        )
    return AsOfFold(None, alone, columns)


def _alone(how: str, name: str) -> tuple[bool, bool]:
    if how not in ("inner", "left", "right", "outer"):
        raise ConstructionError(f"{name}: how is 'inner', 'left', 'right' or 'outer', not {how!r}")
    return how in ("left", "outer"), how in ("right", "outer")


def _sides(left: Stream[Value], right: Stream[Value], key: KeyOf, right_key: KeyOf, name: str) -> Stream[Sided]:
    return _tagged(left, key, LEFT, name).concat(_tagged(right, right_key, RIGHT, name))


def _tagged(stream: Stream[Value], key: KeyOf, side: int, name: str) -> Stream[Sided]:
    require_callable(key, name, "key")
    return stream.inspect_batch(partial(_require_rows, name), f"{name} (rows)").map(
        lambda record: (key(record), side, record), name=f"{name} ({('left', 'right')[side]})"
    )


def _require_rows(name: str, time: object, batch: object) -> None:
    if isinstance(batch, Columns):
        raise TypeError(f"{name} joins rows, and columns came: make rows of them with .flat_map(lambda row: [row])")


def _row(name: str, record: Record) -> Sided:
    try:
        key, row = record
    except (TypeError, ValueError):
        raise TypeError(f"{name}: a table is a stream of (key, row) pairs, and {record!r} came") from None
    return key, RIGHT, row
