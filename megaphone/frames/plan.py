"""`frame(...)`: a plan in steps. Each step gives a new frame; nothing runs until it is built or collected."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from dataflow import Scope, Stream, sources, windows
from dataflow.columns import Columns
from dataflow.columns.frames import is_frame
from dataflow.columns.repairs import Missing, Repairs
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Partitions
from dataflow.state.values import Value
from dataflow.time.durations import Duration
from dataflow.time.timestamp import unit_of
from dataflow.windows.kinds import WindowKind
from megaphone.control.updates import Update
from megaphone.frames import schema
from megaphone.frames.expressions import Aggregation, Expression, col
from megaphone.frames.joining import AsOf, How, Interval, Joined, JoinTerms, Matching, On, SameWindow, WithTable, joined
from megaphone.frames.running import Keeping, Making, Stateless, needed, run
from megaphone.operators.windowing import window as migratable_window

if TYPE_CHECKING:
    from dataflow.notebook import LiveRun

Length: TypeAlias = "int | Duration"


@dataclass(frozen=True)
class Windowed:
    """Aggregates by window and key."""

    kind: WindowKind
    by: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]
    time: str

    @property
    def prepared(self) -> Making:
        """The columns that the window operator looks at."""
        plain = [col(name) for name in dict.fromkeys((*self.by, self.time))]
        made = [each.of.alias(f"{each.name} of") for each in self.aggregations if each.what != ("count",)]
        return Making({each.name: each for each in (*plain, *made)}, adds=False)

    def build(
        self, control: Stream[Update], stream: Stream[Columns], moments: bool | str, name: str
    ) -> Stream[Columns]:
        """The operator."""
        wanted: Value = {
            each.name: "count" if each.what == ("count",) else (each.what[0], f"{each.name} of", *each.what[1:])
            for each in self.aggregations
        }
        return migratable_window(
            control, stream, self.kind, key=self.by, time=self.time, moments=moments, name=name, **wanted
        )

    def __repr__(self) -> str:
        made = ", ".join(f"{each.name} = {each.what[0]}({each.of.arrow})" for each in self.aggregations)
        return f"{self.kind} by {', '.join(self.by) or 'nothing'}: {made} (keyed, migratable)"


@dataclass(frozen=True, eq=False)
class PlannedFrame:
    """A plan. `moments`: whether times are moments, and so bounds of windows are."""

    source: Value
    time: str | None
    delay: Length
    late: Literal["error", "stream", "count"]
    moments: bool
    repairs: Repairs
    steps: tuple[Stateless | Windowed, ...] = ()
    idle_after: float | Duration | None = None

    # Steps

    def filter(self, where: Expression) -> PlannedFrame:
        """The rows for which an expression is true."""
        _require(where, Expression, "filter needs an expression, such as col('price') > 3")
        return replace(self, steps=(*self.steps, Keeping(where)))

    def with_columns(self, *made: Expression, **named: Expression) -> PlannedFrame:
        """All columns, and these."""
        return replace(self, steps=(*self.steps, Making(_by_name(made, named), adds=True)))

    def select(self, *made: Expression | str, **named: Expression) -> PlannedFrame:
        """These columns only."""
        given = [col(each) if isinstance(each, str) else each for each in made]
        return replace(self, steps=(*self.steps, Making(_by_name(given, named), adds=False)))

    def group_by(self, *by: str) -> Grouped:
        """Windows by these columns follow."""
        return Grouped(self, by)

    # Joins

    def join(
        self,
        right: PlannedFrame,
        *,
        on: On = None,
        left_on: On = None,
        right_on: On = None,
        within: Length | None = None,
        before: Length | None = None,
        after: Length | None = None,
        window: Length | None = None,
        how: How = "inner",
        missing: Missing = "nan",
        suffix: str = "_right",
    ) -> PlannedFrame:
        """Pairs of rows with equal keys that are near in time: at most `within` apart; or the right one from `before`
        before the left one to `after` after it; or both in one tumbling `window`. The column `joined_at`
        (`window_end`, with `window`) has the time of a pair, the later one of its rows.

        `how`: "left", "right" or "outer" give rows that meet none as well, when none can come any more. What such a row
        lacks is not-a-number (integers become floats), not-a-time or a missing string, or the value that `missing` has
        for its column. Columns of one name get the `suffix` on the right; those of the key are told once."""
        bounds = [each for each in (before, after) if each is not None]
        if sum([within is not None, bool(bounds), window is not None]) != 1:
            raise ConstructionError("join: say within='10s', or before= and after=, or window='1m': one of these")
        matching: Matching = Interval(before or 0, after or 0)
        if within is not None:
            matching = Interval(within, within)
        elif window is not None:
            matching = SameWindow(window)
        return self._joined(right, matching, JoinTerms(on, left_on, right_on, how, missing, suffix))

    def join_asof(
        self,
        right: PlannedFrame,
        *,
        on: On = None,
        left_on: On = None,
        right_on: On = None,
        tolerance: Length | None = None,
        how: How = "left",
        missing: Missing = "nan",
        suffix: str = "_right",
    ) -> PlannedFrame:
        """Each row with the last one of the other frame of its key at or before its time, at most `tolerance` before.
        `how`, `missing`, `suffix`: as with `join`; "right" and "outer" need a tolerance."""
        return self._joined(right, AsOf(tolerance), JoinTerms(on, left_on, right_on, how, missing, suffix))

    def join_table(
        self,
        table: PlannedFrame,
        *,
        on: On = None,
        left_on: On = None,
        right_on: On = None,
        removed: str | None = None,
        how: Literal["inner", "left"] = "inner",
        missing: Missing = "nan",
        suffix: str = "_right",
    ) -> PlannedFrame:
        """Each row with the row that a slowly changing table has for its key at its time: a row replaces the one
        before. `removed` names a column of booleans: rows for which it is true take theirs out."""
        return self._joined(table, WithTable(removed), JoinTerms(on, left_on, right_on, how, missing, suffix))

    def _joined(self, right: PlannedFrame, matching: Matching, terms: JoinTerms) -> PlannedFrame:
        _require(right, PlannedFrame, "a frame is joined with a frame, megaphone.frame(...)")
        source = joined(self, right, matching, terms)
        return PlannedFrame(source, source.stamp or self.clock, self.delay, self.late, self.moments, Repairs())

    @property
    def clock(self) -> str:
        """The column of the times of what comes out."""
        windowed = any(isinstance(step, Windowed) for step in self.steps)
        return "window_end" if windowed or self.time is None else self.time

    @property
    def streams_late(self) -> bool:
        """Whether a source of it gives late records as a stream."""
        if isinstance(self.source, Joined):
            return self.source.left.streams_late or self.source.right.streams_late
        return self.time is not None and self.late == "stream"

    @property
    def bounds(self) -> bool | str:
        """Whether bounds of windows are moments; the zone of these, if that of the records' times is known."""
        kind = (self._given() or {}).get(self.time or "") if self.moments else None
        zone: str | None = getattr(kind, "tz", None)  # of Arrow's timestamps
        return zone or self.moments

    def types(self) -> schema.Types | None:
        """The columns that come out with their types, as far as they are known before it runs; None if not even their
        names are."""
        found = self._given()
        for steps, windowed in self._parts():
            found = schema.behind_steps(steps, found)
            if windowed is not None:
                prepared = schema.behind_steps([windowed.prepared], found)
                found = schema.behind_window(windowed.by, windowed.aggregations, prepared or {}, self.bounds)
        return found

    def _given(self) -> schema.Types | None:
        source = self.source
        if isinstance(source, Joined):
            return source.types()
        if isinstance(source, Stream | Partitions):
            return None
        if isinstance(source, str | os.PathLike):
            return schema.of_files(source, self.repairs)
        return schema.of_table(self._repaired(), self.repairs)

    # What becomes of it

    def stream(self, scope: Scope, control: Stream[Update] | None = None) -> FrameStream:
        """Builds the plan in a scope: a stream to go on with. What is keyed in it migrates, by the control stream of
        the scope unless you give one. With `late="stream"` its `.late` has the streams of late records, one for each
        source, the left side's first."""
        stream, late = self.build(scope, control, "frame")
        return FrameStream(stream, tuple(late))

    def build(
        self, scope: Scope, control: Stream[Update] | None, title: str, wanted: frozenset[str] | None = None
    ) -> tuple[Stream[Columns], list[Stream[Value]]]:
        """The operators of the plan, whose names begin with a title: what comes out (these columns at least, or all),
        and late records."""
        parts = self._parts()
        columns = self._columns(parts, wanted)
        late: list[Stream[Value]] = []
        if isinstance(self.source, Joined):
            stream, late = self.source.build(scope, control, columns, f"{title}: join")
        else:
            stream, late = self._timed(scope, columns, title)
        number = 0
        while True:
            steps, windowed = parts[number]
            stages = (*steps, windowed.prepared) if windowed is not None else steps
            if stages:
                stream = stream.columns.map(partial(run, stages, None), name=f"{title}: steps")
            if windowed is None:
                return stream, late
            number += 1
            stream = windowed.build(control or scope.control(), stream, self.bounds, f"{title}: window {number}")

    def head(self, rows: int = 5, *, to: Literal["arrow", "polars", "pandas", "columns"] = "arrow") -> Value:
        """The first rows that come out, as a table; then the run is ended. With windows they come when the first of
        these are complete."""
        from megaphone.frames.collecting import head

        return head(self, rows, to)

    def live(self, *, workers: int = 1, every: float = 0.5) -> LiveRun[Columns]:
        """Runs it in the background; in a notebook, with a view of rate, latency, frontier and bins, and a button that
        stops it. See `dataflow.notebook.live`."""
        from megaphone.frames.collecting import live

        return live(self, workers=workers, every=every)

    def explain(self) -> str:
        """What will be done, step by step."""
        return "\n".join(self.explained(None))

    def explained(self, wanted: frozenset[str] | None) -> list[str]:
        """The same in lines, if these columns are asked for (None: all)."""
        columns = self._columns(self._parts(), wanted)
        lines = []
        if isinstance(self.source, Joined):
            lines = self.source.explained(columns)
        else:
            shown = ", ".join(columns) if columns is not None else "all columns"
            lines.append(f"read {_described(self.source)}: {shown}")
        if self.time is not None and not isinstance(self.source, Joined):
            lines.append(f"event time {self.time!r}, delay {self.delay}, late records: {self.late}")
        for steps, windowed in self._parts():
            if steps:
                lines.append("in one pass: " + "; ".join(map(repr, steps)))
            if windowed is not None:
                lines.append(repr(windowed))
        return lines

    def _parts(self) -> list[tuple[list[Stateless], Windowed | None]]:
        """Runs of steps without state, each with the window that follows it; the last has none."""
        parts: list[tuple[list[Stateless], Windowed | None]] = []
        steps: list[Stateless] = []
        for step in self.steps:
            if isinstance(step, Windowed):
                parts.append((steps, step))
                steps = []
            else:
                steps.append(step)
        return [*parts, (steps, None)]

    def _columns(
        self, parts: Sequence[tuple[list[Stateless], Windowed | None]], wanted: frozenset[str] | None
    ) -> list[str] | None:
        """The columns to read; None: all."""
        steps, windowed = parts[0]
        found = needed(steps, wanted if windowed is None else windowed.prepared.needs)
        if found is None:
            return None
        return sorted(found | ({self.time} if self.time is not None else set()))

    def _timed(
        self, scope: Scope, columns: list[str] | None, title: str
    ) -> tuple[Stream[Columns], list[Stream[Value]]]:
        """What is read, at its own times, and what of it is late. Sources with partitions name the times themselves:
        each partition then has its own watermark, and the plan can have recovery and workers that join and leave."""
        source = self._source(columns)
        name = f"{title}: source"
        if self.time is None:
            return self._read(scope, source, columns, name), []
        if isinstance(source, Partitions) and not source.timed:
            unit, idle = unit_of(scope.domain), self.idle_after
            if self.late == "stream":
                given = sources.event_timed(source, self.time, self.delay, unit=unit, late="stream", idle_after=idle)
                apart = scope.source(given, name=name)
                return apart, [apart.late]
            named = sources.event_timed(source, self.time, self.delay, unit=unit, late=self.late, idle_after=idle)
            return scope.source(named, name=name), []
        stream = self._read(scope, source, columns, name)
        timed = stream.event_time(
            self.time, self.delay, late=self.late, idle_after=self.idle_after, name=f"{title}: event_time"
        )
        return timed, [timed.late] if self.late == "stream" else []

    def _source(self, columns: list[str] | None) -> Value:
        if isinstance(self.source, str | os.PathLike):
            missing, decimals = self.repairs.missing, self.repairs.decimals
            return sources.parquet(self.source, columns=columns, missing=missing, decimals=decimals)
        return self.source

    def _read(self, scope: Scope, source: Value, columns: list[str] | None, name: str) -> Stream[Columns]:
        if isinstance(source, Stream):
            return source
        if isinstance(source, Partitions):
            return scope.source(source, name=name)
        whole = self._repaired()
        mine = whole if columns is None else whole.select(columns)
        return scope.source(mine if scope.worker == 0 else mine.slice(0, 0), name=name)

    def _repaired(self) -> Columns:
        if self.repairs.nothing:
            return Columns(self.source)
        import pyarrow as pa

        return self.repairs.columns(pa.table(self.source))


class FrameStream(Stream[Columns]):
    """What comes out of a frame. `late`: the streams of late records of its sources, where it says `late="stream"`."""

    def __init__(self, stream: Stream[Columns], late: tuple[Stream[Value], ...]) -> None:
        super().__init__(stream.scope, stream.source)
        self.late = late


@dataclass(frozen=True)
class Grouped:
    """A frame whose windows are by key."""

    frame: PlannedFrame
    by: tuple[str, ...]

    def window(self, size: Length, every: Length | None = None) -> WindowsToCome:
        """Windows of one size, one after the other, or one every so often."""
        kind = windows.tumbling(size) if every is None else windows.sliding(size, every)
        return WindowsToCome(self, kind)

    def session(self, gap: Length) -> WindowsToCome:
        """Windows that end when a key is silent for so long."""
        return WindowsToCome(self, windows.session(gap))

    def count(self, rows: int) -> WindowsToCome:
        """Windows of so many rows of a key, in the order of their times."""
        return WindowsToCome(self, windows.count(rows))

    def agg(self, *aggregations: Aggregation) -> PlannedFrame:
        """Refused: a stream has no end, so what is aggregated needs a window."""
        raise ConstructionError("a stream has no end: say group_by(...).window('1m').agg(...)")


@dataclass(frozen=True)
class WindowsToCome:
    """Windows that lack their aggregates."""

    grouped: Grouped
    kind: WindowKind

    def agg(self, *aggregations: Aggregation) -> PlannedFrame:
        """One row for each window and key."""
        frame = self.grouped.frame
        if frame.time is None:
            raise ConstructionError("windows need the records' time: frame(source, time='t', delay='10s')")
        for each in aggregations:
            _require(each, Aggregation, "agg needs aggregates, such as col('amount').sum()")
        names = [each.name for each in aggregations]
        if len(set(names)) < len(names):
            raise ConstructionError(f"two aggregates have one name, of {', '.join(names)}: give one an .alias('...')")
        windowed = Windowed(self.kind, self.grouped.by, aggregations, frame.clock)
        return replace(frame, steps=(*frame.steps, windowed))


def frame(
    source: Value,
    *,
    time: str | None = None,
    delay: Length = 0,
    late: Literal["error", "stream", "count"] = "error",
    moments: bool = True,
    missing: Missing = "error",
    decimals: Mapping[str, int] | None = None,
    idle_after: float | Duration | None = None,
) -> PlannedFrame:
    """A plan over a frame (Arrow, pandas, polars, a mapping), a Parquet file or folder, a source with partitions, or a
    stream of columns. `time` names the column of the records' times, `delay` says how far out of order they come,
    `late` what becomes of those that come later; `moments=False` if times are integers. `missing` and `decimals`: what
    becomes of numbers that are missing, and of decimals, in frames and files: see `dataflow.sources.parquet`.
    `idle_after`: partitions that are silent for so long hold nobody back."""
    if not (isinstance(source, str | os.PathLike | Partitions | Stream | dict | Columns) or is_frame(source)):
        raise ConstructionError(f"a frame is made of columns, a Parquet file, a source or a stream, not of {source!r}")
    repairs = Repairs(missing, decimals or {})
    if not repairs.nothing and isinstance(source, Partitions | Stream):
        raise ConstructionError("missing= and decimals= are for frames and files: give them to the source itself")
    return PlannedFrame(source, time, delay, late, moments, repairs, idle_after=idle_after)


def _by_name(made: Sequence[Expression], named: dict[str, Expression]) -> dict[str, Expression]:
    for each in (*made, *named.values()):
        _require(each, Expression, "columns are made of expressions, such as (col('a') + 1).alias('b')")
    return {**{each.name: each for each in made}, **named}


def _require(value: object, kind: type[object], message: str) -> None:
    if not isinstance(value, kind):
        raise ConstructionError(f"{message}, not {value!r}")


def _described(source: Value) -> str:
    return str(Path(source)) if isinstance(source, str | os.PathLike) else type(source).__name__
