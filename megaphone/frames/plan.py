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
from dataflow.windows.kinds import WindowKind
from megaphone.control.updates import Update
from megaphone.frames.expressions import Aggregation, Expression, col
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
    moments: bool

    @property
    def prepared(self) -> Making:
        """The columns that the window operator looks at."""
        plain = [col(name) for name in dict.fromkeys((*self.by, self.time))]
        made = [each.of.alias(f"{each.name} of") for each in self.aggregations if each.what != ("count",)]
        return Making({each.name: each for each in (*plain, *made)}, adds=False)

    def build(self, control: Stream[Update], stream: Stream[Columns], name: str) -> Stream[Columns]:
        """The operator."""
        wanted: Value = {
            each.name: "count" if each.what == ("count",) else (each.what[0], f"{each.name} of", *each.what[1:])
            for each in self.aggregations
        }
        return migratable_window(
            control, stream, self.kind, key=self.by, time=self.time, moments=self.moments, name=name, **wanted
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

    # What becomes of it

    def stream(self, scope: Scope, control: Stream[Update] | None = None) -> Stream[Columns]:
        """Builds the plan in a scope: a stream to go on with. What is keyed in it migrates, by the control stream of
        the scope unless you give one."""
        parts = self._parts()
        stream = self._read(scope, parts)
        if self.time is not None:
            stream = stream.event_time(self.time, self.delay, late=self.late, name="frame: event_time")
        number = 0
        while True:
            steps, windowed = parts[number]
            stages = (*steps, windowed.prepared) if windowed is not None else steps
            if stages:
                stream = stream.columns.map(partial(run, stages, None), name="frame: steps")
            if windowed is None:
                return stream
            number += 1
            stream = windowed.build(control or scope.control(), stream, f"frame: window {number}")

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
        columns = self._columns(self._parts())
        lines = [f"read {_described(self.source)}: {', '.join(columns) if columns is not None else 'all columns'}"]
        if self.time is not None:
            lines.append(f"event time {self.time!r}, delay {self.delay}, late records: {self.late}")
        for steps, windowed in self._parts():
            if steps:
                lines.append("in one pass: " + "; ".join(map(repr, steps)))
            if windowed is not None:
                lines.append(repr(windowed))
        return "\n".join(lines)

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

    def _columns(self, parts: Sequence[tuple[list[Stateless], Windowed | None]]) -> list[str] | None:
        """The columns to read; None: all."""
        steps, windowed = parts[0]
        wanted = needed(steps, None if windowed is None else windowed.prepared.needs)
        if wanted is None:
            return None
        return sorted(wanted | ({self.time} if self.time is not None else set()))

    def _read(self, scope: Scope, parts: Sequence[tuple[list[Stateless], Windowed | None]]) -> Stream[Columns]:
        columns, source = self._columns(parts), self.source
        if isinstance(source, Stream):
            return source
        if isinstance(source, str | os.PathLike):
            missing, decimals = self.repairs.missing, self.repairs.decimals
            file = sources.parquet(source, columns=columns, missing=missing, decimals=decimals)
            return scope.source(file, name="frame: source")
        if isinstance(source, Partitions):
            return scope.source(source, name="frame: source")
        whole = self._repaired()
        mine = whole if columns is None else whole.select(columns)
        return scope.source(mine if scope.worker == 0 else mine.slice(0, 0), name="frame: source")

    def _repaired(self) -> Columns:
        if self.repairs.nothing:
            return Columns(self.source)
        import pyarrow as pa

        return self.repairs.columns(pa.table(self.source))


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
        time = "window_end" if any(isinstance(step, Windowed) for step in frame.steps) else frame.time
        windowed = Windowed(self.kind, self.grouped.by, aggregations, time, frame.moments)
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
) -> PlannedFrame:
    """A plan over a frame (Arrow, pandas, polars, a mapping), a Parquet file or folder, a source with partitions, or a
    stream of columns. `time` names the column of the records' times, `delay` says how far out of order they come,
    `late` what becomes of those that come later; `moments=False` if times are integers. `missing` and `decimals`: what
    becomes of numbers that are missing, and of decimals, in frames and files: see `dataflow.sources.parquet`."""
    if not (isinstance(source, str | os.PathLike | Partitions | Stream | dict | Columns) or is_frame(source)):
        raise ConstructionError(f"a frame is made of columns, a Parquet file, a source or a stream, not of {source!r}")
    repairs = Repairs(missing, decimals or {})
    if not repairs.nothing and isinstance(source, Partitions | Stream):
        raise ConstructionError("missing= and decimals= are for frames and files: give them to the source itself")
    return PlannedFrame(source, time, delay, late, moments, repairs)


def _by_name(made: Sequence[Expression], named: dict[str, Expression]) -> dict[str, Expression]:
    for each in (*made, *named.values()):
        _require(each, Expression, "columns are made of expressions, such as (col('a') + 1).alias('b')")
    return {**{each.name: each for each in made}, **named}


def _require(value: object, kind: type[object], message: str) -> None:
    if not isinstance(value, kind):
        raise ConstructionError(f"{message}, not {value!r}")


def _described(source: Value) -> str:
    return str(Path(source)) if isinstance(source, str | os.PathLike) else type(source).__name__
