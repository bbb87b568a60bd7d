"""Joins of two frames by key and time: what is asked for, what each side has to give, and the operator that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa

from dataflow import Scope, Stream
from dataflow.columns import Columns
from dataflow.columns.repairs import Missing
from dataflow.errors import ConstructionError
from dataflow.events.moments import ticks
from dataflow.joins.columns import ColumnJoin, JoinSide
from dataflow.joins.folds import JoinFold
from dataflow.joins.operator import as_of_fold, interval_fold, table_fold
from dataflow.state.values import Value
from dataflow.time.durations import Duration
from dataflow.time.timestamp import unit_of
from megaphone.control.updates import Update
from megaphone.frames.schema import Types, of_times
from megaphone.operators.timed_joins import column_join

if TYPE_CHECKING:
    from megaphone.frames.plan import PlannedFrame

Length: TypeAlias = "int | Duration"
How: TypeAlias = Literal["inner", "left", "right", "outer"]
On: TypeAlias = str | Sequence[str] | None


@dataclass(frozen=True)
class Interval:
    """Pairs of which the right row is from `before` before the left one to `after` after it."""

    before: Length
    after: Length
    stamps = True

    def fold(self, unit: str, how: str, name: str) -> JoinFold:
        """What the operator does."""
        return interval_fold(unit, self.before, self.after, how, name, columns=True)

    def __repr__(self) -> str:
        return f"join, right from {self.before} before to {self.after} after"


@dataclass(frozen=True)
class SameWindow:
    """Pairs of which both are in one tumbling window."""

    size: Length
    stamps = True

    def fold(self, unit: str, how: str, name: str) -> JoinFold:
        """An interval of no length: the rows of a window are all at its end."""
        return interval_fold(unit, 0, 0, how, name, columns=True)

    def __repr__(self) -> str:
        return f"join in windows of {self.size}"


@dataclass(frozen=True)
class AsOf:
    """Each left row with the last right one at or before its time."""

    tolerance: Length | None
    stamps = False

    def fold(self, unit: str, how: str, name: str) -> JoinFold:
        """What the operator does."""
        return as_of_fold(unit, self.tolerance, how, name, columns=True)

    def __repr__(self) -> str:
        return "as-of join" if self.tolerance is None else f"as-of join, at most {self.tolerance} before"


@dataclass(frozen=True)
class WithTable:
    """Each left row with the row that a table has at its time."""

    removed: str | None
    stamps = False

    def fold(self, unit: str, how: str, name: str) -> JoinFold:
        """What the operator does."""
        return table_fold(how, name, columns=True)

    def __repr__(self) -> str:
        return "join with a table" + (f", rows with {self.removed} taken out" if self.removed else "")


Matching: TypeAlias = Interval | SameWindow | AsOf | WithTable


@dataclass(frozen=True, eq=False)
class Joined:
    """A join, where a frame has its source."""

    left: PlannedFrame
    right: PlannedFrame
    matching: Matching
    on: tuple[str, ...]
    right_on: tuple[str, ...]
    how: How
    missing: Missing
    suffix: str

    @property
    def stamp(self) -> str | None:
        """The column that has the time of a row of the result; None if that is the left side's time."""
        if isinstance(self.matching, SameWindow):
            return "window_end"
        return "joined_at" if self.matching.stamps or self.how in ("right", "outer") else None

    @cached_property
    def names(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """By side, its columns by their names in the result."""
        lefts, rights = known(self.left, "left"), known(self.right, "right")
        ours = {name: name for name in lefts}
        taken = {*ours, *([self.stamp] if self.stamp else [])}
        theirs = {}
        for name in rights:
            if name == getattr(self.matching, "removed", None):
                continue
            shown = f"{name}{self.suffix}" if name in taken or name in self.right_on else name
            if shown in theirs or (shown in taken and name not in self.right_on):
                raise ConstructionError(f"join: two columns would be called {shown!r}: give another suffix=")
            theirs[shown] = name
        return ours, theirs

    def types(self) -> Types:
        """The types of the result, where known: integers that may be missing are floats."""
        found: dict[str, pa.DataType | None] = {}
        for side, frame, names, others in (
            ("left", self.left, self.names[0], ("right", "outer")),
            ("right", self.right, self.names[1], ("left", "outer")),
        ):
            before = known(frame, side)
            for shown, name in names.items():
                kind = before[name]
                if name in (self.on if side == "left" else self.right_on):
                    if side == "left":
                        found[shown] = kind
                    continue
                found[shown] = self._may_be_missing(shown, kind, side) if self.how in others else kind
        if self.stamp:
            found[self.stamp] = of_times(self.left.bounds)
        return found

    def _may_be_missing(self, name: str, kind: pa.DataType | None, side: str) -> pa.DataType | None:
        fill = self.missing.get(name) if isinstance(self.missing, Mapping) else None
        if fill is not None:
            return kind if kind is not None else pa.scalar(fill).type
        if kind is None:
            raise ConstructionError(
                f"join: how={self.how!r}, and the type of {name!r} on the {side} side is not known before there are "
                f"records: say what stands for it where it is missing, missing={{{name!r}: ...}}"
            )
        if pa.types.is_integer(kind):
            return pa.float64()
        can = (pa.types.is_floating, pa.types.is_string, pa.types.is_large_string, pa.types.is_timestamp)
        more = (pa.types.is_duration, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string_view)
        if not any(test(kind) for test in (*can, *more)):
            raise ConstructionError(
                f"join: how={self.how!r}, and {name!r} on the {side} side holds {kind}, of which none can be missing: "
                f"say what stands for it, missing={{{name!r}: ...}}"
            )
        return kind

    def asked(self, wanted: Sequence[str] | None) -> tuple[frozenset[str], frozenset[str]]:
        """What each side has to give, so that the result has what is wanted of it (None: everything)."""
        sides = []
        for frame, names, on in ((self.left, self.names[0], self.on), (self.right, self.names[1], self.right_on)):
            shown = {name for shown, name in names.items() if wanted is None or shown in wanted}
            sides.append(frozenset(shown) | {*on, frame.clock})
        removed = getattr(self.matching, "removed", None)
        return sides[0], sides[1] | ({removed} if removed else set())

    def build(
        self, scope: Scope, control: Stream[Update] | None, wanted: Sequence[str] | None, name: str
    ) -> tuple[Stream[Columns], list[Stream[Value]]]:
        """The operator; and the streams of late records of both sides."""
        asked = self.asked(wanted)
        left, late = self.left.build(scope, control, f"{name}: left", asked[0])
        right, more = self.right.build(scope, control, f"{name}: right", asked[1])
        unit, (ours, theirs) = unit_of(scope.domain), self.names
        size = self.matching.size if isinstance(self.matching, SameWindow) else None
        removed = self.matching.removed if isinstance(self.matching, WithTable) else None
        plan = ColumnJoin(
            name=name,
            left=JoinSide(_given(ours, asked[0]), self.on, self.left.clock),
            right=JoinSide(_given(theirs, asked[1]), self.right_on, self.right.clock, removed),
            types=self.types(),
            missing=self.missing,
            panes=None if size is None else ticks(size, unit, f"{name}: window", least=1),
            stamp=self.stamp,
            moments=self.left.bounds,
        )
        fold = self.matching.fold(unit, self.how, name)
        return column_join(control or scope.control(), left, right, plan, fold), [*late, *more]

    def explained(self, wanted: Sequence[str] | None) -> list[str]:
        """What will be done, side by side."""
        pairs = ", ".join(a if a == b else f"{a} = {b}" for a, b in zip(self.on, self.right_on, strict=True))
        lines = []
        for title, side, asked in zip(("left", "right"), (self.left, self.right), self.asked(wanted), strict=True):
            lines += [f"{title}:", *(f"  {line}" for line in side.explained(asked))]
        return [*lines, f"{self.how} {self.matching!r}, by {pairs} (keyed, migratable)"]


def _given(names: Mapping[str, str], asked: frozenset[str]) -> dict[str, str]:
    """Of the columns of a side those that come."""
    return {shown: name for shown, name in names.items() if name in asked}


def known(frame: PlannedFrame, side: str) -> Types:
    """The columns of a frame; ConstructionError if nobody knows them."""
    types = frame.types()
    if types is None:
        raise ConstructionError(
            f"join: which columns the {side} side has is not known before there are records: say .select('...') first"
        )
    return types


@dataclass(frozen=True)
class JoinTerms:
    """Which rows meet, and what becomes of those that meet none, in the words of `PlannedFrame.join`."""

    on: On
    left_on: On
    right_on: On
    how: How
    missing: Missing
    suffix: str


def joined(left: PlannedFrame, right: PlannedFrame, matching: Matching, terms: JoinTerms) -> Joined:
    """A join of two frames, checked."""
    on, left_on, right_on = terms.on, terms.left_on, terms.right_on
    ours, theirs = _listed(on if left_on is None else left_on), _listed(on if right_on is None else right_on)
    if not ours or len(ours) != len(theirs):
        raise ConstructionError(
            "join: name the columns of the key, on='customer', or left_on= and right_on= of one length"
        )
    for frame, side, by in ((left, "left", ours), (right, "right", theirs)):
        if frame.time is None:
            raise ConstructionError(f"join: the {side} side has no time: frame(source, time='t', delay='10s')")
        lacking = [name for name in (*by, frame.clock) if name not in known(frame, side)]
        if lacking:
            raise ConstructionError(f"join: the {side} side has no column {lacking[0]!r}, the key's or the time's")
    if left.moments != right.moments:
        raise ConstructionError("join: the times of one frame are moments and those of the other are integers")
    found = Joined(left, right, matching, ours, theirs, terms.how, terms.missing, terms.suffix)
    found.matching.fold("ns", terms.how, "join")  # which refuses what makes no sense
    found.types()
    return found


def _listed(on: On) -> tuple[str, ...]:
    return () if on is None else (on,) if isinstance(on, str) else tuple(on)
