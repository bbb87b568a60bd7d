"""`window`: the native operator, and what it shares with `megaphone.window`: how records are prepared and presented."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeVar

import numpy as np

from dataflow.build.builder import Context, unary
from dataflow.build.cuts import Keeps
from dataflow.build.stream import Stream
from dataflow.channels.blame import name_last, name_time
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.columns.column import Column
from dataflow.columns.zones import checked_zone, with_zone, zone_info
from dataflow.errors import ConstructionError
from dataflow.events.moments import Moments, TimeOf, ticks
from dataflow.state import native
from dataflow.time.durations import NANOSECONDS, Duration
from dataflow.time.timestamp import unit_of
from dataflow.values import Key, Record, Value
from dataflow.windows.aggregates import Wanted, WindowAggregates
from dataflow.windows.fold import CountFold, Prepared, SessionFold, SlidingFold, WindowFold
from dataflow.windows.kinds import Count, Session, Sliding, WindowKind
from dataflow.windows.partials import listed

D = TypeVar("D")
By: TypeAlias = str | Sequence[str] | Callable[[Record], Key] | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOUNDS = ("window_start", "window_end")


def window(
    stream: Stream[D],
    kind: WindowKind,
    *,
    key: By = None,
    time: TimeOf | None = None,
    early: int | Duration | None = None,
    moments: bool | str = False,
    name: str = "window",
    **aggregates: Wanted,
) -> Stream[Value]:
    """Aggregates of the records of each window, by key: `window(stream, tumbling("1m"), key="country", n="count")`.

    `key`: a function of a record (rows), or the name of a column or several (columns); without one, all records are of
    the key None. `time`: what the time of a record is, the dataflow's own time of it unless you say; columns need the
    name of theirs. Results are dictionaries with `key`, `window_start`, `window_end` and the aggregates, or columns of
    these names with the key's own; they come out when a window is complete, at the time of its end.

    `early`: results so far come out as well at multiples of this time, and `final` says which is which. `moments`:
    bounds of windows are moments (UTC, or in a zone that you name) and not times of the dataflow.
    """
    plan = WindowPlan(stream, kind, key, time, early, moments, name, aggregates)
    folded: Stream[Record] = native.unary(plan.prepare(stream), key=key_of, fold=plan.fold, state=dict, name=name)
    return plan.present(folded)


key_of = operator.itemgetter(0)  # of a record that was prepared


class WindowPlan:
    """What a window operator does before and behind its state."""

    def __init__(
        self,
        stream: Stream[Value],
        kind: WindowKind,
        key: By,
        time: TimeOf | None,
        early: int | Duration | None,
        moments: bool | str,
        name: str,
        aggregates: Mapping[str, Wanted],
    ) -> None:
        unit = unit_of(stream.scope.domain)
        self._name = name
        self._moments = bool(moments)
        self._zone = checked_zone(moments) if isinstance(moments, str) else None
        self._unit = unit
        self._columns = isinstance(key, str) or (key is not None and not callable(key))
        self._by: tuple[str, ...] = ()
        if not callable(key) and key is not None:
            self._by = (key,) if isinstance(key, str) else tuple(key)
            if time is None:
                raise ConstructionError(f"{name}: columns need time=, the name of the column of their times")
        self._key: Callable[[Record], Key] = key if callable(key) else lambda _: None
        self._time = None if time is None else Moments(name, time, unit)
        self.aggregates = WindowAggregates(aggregates, ("key", "final", *_BOUNDS, *self._by))
        if self._columns and self.aggregates.listed:
            raise ConstructionError(
                f"{name}: {', '.join(self.aggregates.listed)}: lists are no columns; use rows: key= as a function"
            )
        step = None if early is None else ticks(early, unit, f"{name}: early", least=1)
        self.fold = fold_of(name, kind, self.aggregates, step, unit)

    # Before the state

    def prepare(self, stream: Stream[Value]) -> Stream[Prepared]:
        """Records as (key, time, values)."""

        def step(input: InputPort, output: OutputPort[Prepared]) -> None:
            for message, batch in input:
                try:
                    output.give(message, self._prepared(message.time, batch))
                except Exception as error:
                    name_time(error, message.time)
                    raise

        def make(_: Context) -> Callable[[InputPort, OutputPort[Prepared]], None]:
            return step

        return unary(stream, f"{self._name} (values)", make, keeps=Keeps.NOTHING)

    def _prepared(self, now: int, batch: Value) -> list[Prepared]:
        if isinstance(batch, Columns):
            return self._of_columns(batch)
        if self._columns:
            raise TypeError(f"{self._name}: key= names columns, and rows came: give a function of a record")
        times = [now] * len(batch) if self._time is None else self._time.of_rows(batch)
        getters = [self._getter(value) for value in self.aggregates.values]
        key = self._key
        prepared: list[Prepared] = []
        records = iter(batch)
        try:
            for record, time in zip(records, times, strict=True):
                prepared.append((key(record), time, tuple(get(record) for get in getters)))
        except Exception as error:
            name_last(error, batch, records)
            raise
        return prepared

    def _getter(self, value: object) -> Callable[[Record], Value]:
        if value is None:
            return lambda _: None
        if isinstance(value, str):
            return operator.itemgetter(value)
        assert callable(value)
        return value

    def _of_columns(self, batch: Columns) -> list[Prepared]:
        if not self._columns or self._time is None:
            raise TypeError(f"{self._name}: columns came: name the key's columns (key=() for none), and time=")
        if not len(batch):
            return []
        times = self._time.of_columns(batch)
        # each not-a-number is a key of its own, as in rows
        plain = not any(_has_nan(batch.column(name)) for name in self._by)
        groups = self.fold.grouped(batch, self._by, times) if plain else None
        if groups is None:
            return self._row_by_row(batch, times.tolist())
        states = self.aggregates.of_groups(groups)
        ends = [[last, mine] for last, mine in zip(groups.lasts, states, strict=True)]
        return list(zip(groups.keys(self._by), groups.firsts, ends, strict=True))

    def _row_by_row(self, batch: Columns, times: list[int]) -> list[Prepared]:
        nothing = [None] * len(batch)
        values: list[Sequence[Value]] = []
        for value in self.aggregates.values:
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{self._name}: columns came, and an aggregate is of a function: name a column")
            values.append(nothing if value is None else listed(batch, value))
        keys: Iterable[Key]
        if len(self._by) == 1:
            keys = listed(batch, self._by[0])
        else:
            keys = zip(*(listed(batch, name) for name in self._by), strict=True) if self._by else nothing
        return list(zip(keys, times, zip(*values, strict=True), strict=True))

    # Behind it

    def present(self, stream: Stream[Record]) -> Stream[Value]:
        """Results as users see them."""
        if not self._columns and not self._moments:
            return stream

        def step(input: InputPort, output: OutputPort) -> None:
            for message, batch in input:
                output.give(message, self._in_columns(batch) if self._columns else self._with_moments(batch))

        def make(_: Context) -> Callable[[InputPort, OutputPort], None]:
            return step

        return unary(stream, f"{self._name} (results)", make, keeps=Keeps.NOTHING)

    def _with_moments(self, batch: list[Record]) -> list[Record]:
        each, zone = NANOSECONDS[self._unit], zone_info(self._zone) if self._zone else UTC

        def bound(time: int) -> datetime:
            return (_EPOCH + timedelta(microseconds=time * each / 1000)).astimezone(zone)

        return [{**row, **{name: bound(row[name]) for name in _BOUNDS}} for row in batch]

    def _in_columns(self, batch: list[Record]) -> Columns:
        columns: dict[str, Value] = {}
        keys = [row["key"] for row in batch]
        if len(self._by) == 1:
            columns[self._by[0]] = keys
        else:
            columns |= {name: [key[place] for key in keys] for place, name in enumerate(self._by)}
        for name in batch[0]:
            if name != "key":
                columns[name] = [row[name] for row in batch]
        if self._moments:
            columns |= {
                bound: with_zone(np.array(columns[bound], f"M8[{self._unit}]"), self._zone) for bound in _BOUNDS
            }
        return Columns(columns)


def _has_nan(column: Column) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f" and bool(np.isnan(column).any())


def fold_of(name: str, kind: WindowKind, aggregates: WindowAggregates, early: int | None, unit: str) -> WindowFold:
    """The fold of a kind of window."""
    if isinstance(kind, Sliding):
        return SlidingFold(name, aggregates, early, *kind.in_ticks(name, unit))
    if isinstance(kind, Session):
        return SessionFold(name, aggregates, early, kind.in_ticks(name, unit))
    if isinstance(kind, Count):
        return CountFold(name, aggregates, early, kind.size)
    raise ConstructionError(f"{name} needs a kind of window, such as windows.tumbling('1m'), not {kind!r}")
