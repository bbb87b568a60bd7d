"""Windows over a column of times: which a record belongs to, and when they are complete.

The column holds integers in the dataflow's own unit, or dates, moments or time spans of any unit: a dataflow's time
counts nanoseconds since 1970 (UTC) then, unless it was built with another unit. A window's end comes out as what the
column holds, in its unit and time zone; in a finer unit where the ends would lie between two of its own.
"""

from __future__ import annotations

import operator
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder, unary
from dataflow.build.capability import MessageCapability
from dataflow.build.crossings import Waiting
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.arrow import type_name
from dataflow.columns.batch import Columns
from dataflow.columns.column import Array, DType, Integers
from dataflow.columns.grouping import Aggregates
from dataflow.columns.instants import counts, length_of
from dataflow.columns.kinds import ColumnKinds, agreed
from dataflow.columns.pact import ExchangeColumns, require_columns
from dataflow.columns.zones import UNITS, plain, with_zone, zone_of
from dataflow.errors import ConstructionError
from dataflow.time.durations import NANOSECONDS, Duration, nanoseconds
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.stream import Stream

END = "window_end"
_MOST = np.iinfo(np.int64).max


class Windows:
    """Windows of one length, one every `slide`. Lengths are kept in nanoseconds."""

    def __init__(self, name: str, column: str, size: int | Duration, slide: int | Duration, unit: str) -> None:
        self._name = name
        self.column = column
        self._time = NANOSECONDS[unit]
        self.size, self.slide = (self._length(length) for length in (size, slide))
        if self.size < 1 or self.slide < 1:
            raise ConstructionError(f"{name}: a window has a length and a slide above zero, not {size} and {slide}")
        if self.size < self.slide or self.size % self.slide:
            raise ConstructionError(f"{name}: the size of a window must be a multiple of its slide: {size} and {slide}")

    def _length(self, length: int | Duration) -> int:
        """In nanoseconds. A number is one of the dataflow's times."""
        try:
            if isinstance(length, timedelta | np.timedelta64 | str):
                return nanoseconds(length)
            return operator.index(length) * self._time
        except (ValueError, TypeError) as error:
            raise ConstructionError(f"{self._name}: {error}") from None

    # The ends of the first windows that records are in

    def ends(self, batch: Columns) -> Array:
        """For each record the first end of a window after it."""
        column = batch[self.column]
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iufmM":
            raise TypeError(
                f"{self._name}: column {self.column!r} holds {type_name(column)}; windows are over integers, dates, "
                "moments or time spans"
            )
        if column.dtype.kind in "mM":
            kind = self._kind(column.dtype)
            numbers = self._following(counts(column, np.datetime_data(kind)[0], self._what), self._length_of(kind))
            return with_zone(numbers.view(kind), zone_of(column))
        if self.slide % self._time:
            raise TypeError(
                f"{self._name}: column {self.column!r} holds integers, of which windows of {self.slide} ns are no "
                "whole number: make it datetimes first, or give the dataflow another unit: worker.dataflow(time='ns')"
            )
        return self._following(self._integers(column), self._time)

    @property
    def _what(self) -> str:
        return f"{self._name}: column {self.column!r}"

    def _kind(self, kind: DType) -> DType:
        """The type of the ends: that of the column, if they are never between two of its values."""
        length = length_of(kind)
        if length is not None and self.slide % length == 0 and np.datetime_data(kind)[1] == 1:
            return kind.newbyteorder("=")
        most = length or NANOSECONDS["s"]
        fits = (unit for unit in UNITS if self.slide % NANOSECONDS[unit] == 0 and NANOSECONDS[unit] <= most)
        return np.dtype(f"{kind.kind}8[{next(fits)}]")

    def _length_of(self, kind: DType) -> int:
        length = length_of(kind)
        assert length is not None
        return length

    def _integers(self, column: Array) -> Integers:
        if column.dtype.kind == "f":
            column = np.floor(column)
        if len(column) and not (column.min() >= -_MOST and column.max() < _MOST):  # false for what is not a number
            raise ValueError(f"{self._what} has values that are no times: not a number, or beyond 64 bits")
        return column.astype(np.int64, copy=False)

    def _following(self, numbers: Integers, length: int) -> Integers:
        slide = self.slide // length
        ends = (numbers // slide + 1) * slide
        if len(ends) and not (ends > numbers).all():
            raise ValueError(f"{self._what} is {numbers.max()} in a row, and the end of that window is beyond 64 bits")
        return ends

    def too_late(self, pane: np.generic, end: int, now: Time) -> str:
        """Why the records before a pane's end cannot be taken any more."""
        if end <= 0:
            began = "1970" if pane.dtype.kind == "M" else "0"
            return (
                f"column {self.column!r} has records of the window that ends at {pane}. Windows come out at their end, "
                f"and the times of a dataflow begin at {began}: leave these records out, or shift their times"
            )
        return f"a record of the window that ends at {pane} came at {now!r}: too late"

    # The windows that a pane is part of

    def of_pane(self, pane: np.generic) -> list[tuple[int, Array]]:
        """The windows that have the records before an end: (the dataflow's time, the end) of each.

        A window whose end is between two times comes out at the second.
        """
        length = self._time if pane.dtype.kind == "i" else self._length_of(pane.dtype)
        first = int(pane.astype(np.int64)) * length
        ends = range(first, first + self.size, self.slide)
        return [(-(-end // self._time), np.asarray(end // length, np.int64).view(pane.dtype)) for end in ends]


def windows(stream: Stream[Columns], name: str, plan: Aggregates, of: Windows) -> Stream[Columns]:
    """Aggregates by window: each worker its own records, then all of a group on one worker."""
    kept = {**plan.sources, END: of.column}  # what a partial holds, and what users call it
    given = {column: column for column in kept.values()}
    here = ColumnKinds(name, given)

    def panes(batch: Columns) -> Columns:
        here.check(batch)
        return plan.partial(batch.with_columns({END: of.ends(batch)}))

    def step(input: InputPort[Columns], output: OutputPort[Columns]) -> None:
        for message, batch in input:
            output.give(message, panes(require_columns(batch, name)))

    agreed(stream, name, given)
    local = unary(stream, f"{name} (local)", lambda _: step, keeps=Keeps.NOTHING)
    return _merged(local, name, plan, of, ColumnKinds(name, kept))


def _merged(stream: Stream[Columns], name: str, plan: Aggregates, of: Windows, kinds: ColumnKinds) -> Stream[Columns]:
    """Puts each pane into the windows that it is part of; a window comes out at its end."""
    dataflow = stream.scope.dataflow
    builder = OperatorBuilder(stream.scope, name)
    pact = ExchangeColumns(plan.by[1:])
    builder.add_input(stream, pact)
    builder.add_output(initial=dataflow.recovers, entry=False)

    def put_off(message: MessageCapability, batch: Columns, waiting: Waiting[Columns]) -> None:
        kinds.check(batch)
        column = plain(batch[END])
        for pane in np.unique(column):
            part = batch.filter(column == pane)
            for time, end in of.of_pane(pane):
                if time <= message.time:
                    raise ValueError(f"{name}: {of.too_late(pane, time, message.time)}")
                waiting.add(message, time, _ending(part, end), message.time)

    def make(context: Context) -> Step:
        (input,), (output,) = context.inputs, context.outputs
        context.stay("use megaphone.window, whose state can move")
        waiting: Waiting[Columns] = Waiting(context, name, dataflow, pact)

        def step() -> None:
            for message, batch in input:
                put_off(message, batch, waiting)
            for capability, parts in waiting.due():
                output.give(capability, plan.finish(plan.merge(parts), f"{name} at {capability.time!r}"))

        return step

    (out,) = builder.build(make, frontier=True, keeps=Keeps.SHARE)
    return out


def _ending(part: Columns, end: Array) -> Columns:
    ends = with_zone(np.full(len(part), end), zone_of(part[END]))
    return part.with_columns({END: ends})
