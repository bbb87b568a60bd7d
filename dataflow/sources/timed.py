"""Sources whose times are those of their records: each partition is where its watermark is.

So there is one time line from the source on, and snapshots of it: this is event time for programs with recovery.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Literal, TypeVar, overload

import numpy as np

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.columns.column import Integers, Mask
from dataflow.errors import ConstructionError
from dataflow.events.late import Late, LateRecords
from dataflow.events.moments import Moments, TimeOf, ticks
from dataflow.events.operator import checked_idle
from dataflow.events.watermarks import Watermarks
from dataflow.operators.inputs import to_batch
from dataflow.operators.latecomers import LateApart, marked, unmarked
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.operators.source import Reader
from dataflow.time.durations import NANOSECONDS, Duration

D = TypeVar("D")
_END = object()


class _EventTimed(Partitions[D]):
    """A source that names its times. A position is [the position, the latest time before it]."""

    timed = True

    def __init__(
        self,
        source: Partitions[D],
        times: Moments,
        delay: int,
        told_delay: int | Duration,
        late: Late,
        idle_after: float | None,
    ) -> None:
        """`told_delay`: the delay as its user wrote it."""
        self._source = source
        self._times = times
        self._delay = delay
        self._told_delay = told_delay
        self._late: Late = late
        self._latecomers: dict[str, LateRecords] = {}  # by partition
        self.idle_after = idle_after
        self.follow, self.look_every, self.moves = source.follow, source.look_every, source.moves and source.resumable

    async def partitions(self) -> Collection[str]:
        """Those of the source."""
        return await self._source.partitions()

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The rest of a partition: each batch at the watermark before it, which is not after any of its records."""
        inner, latest = _parts(position)
        marks = Watermarks(self._delay)
        marks.late_of(partition, [latest])
        late = LateRecords(f"partition {partition!r}", self._late, self._told_delay, self._times)
        self._latecomers[partition] = late
        reader = Reader(self._source.read(partition, inner))
        try:
            while (item := await reader.next(_END)) is not _END:
                inner, time, batch = item
                if time is not None:
                    raise SourceError(f"{self._source!r} names its times itself: it needs no event time")
                before = marks.of(partition)
                given = to_batch(batch)
                rows = given if isinstance(given, Columns) else list(given)
                times = self._times_of(rows)
                latest = max(latest, int(times.max(initial=0)))
                is_late = marks.late_in(partition, times)
                kept = self._without(late, rows, is_late, marks.worst, marks.of(partition))
                yield [inner, latest], before, kept
                yield [inner, latest], marks.of(partition), []
        finally:
            late.tell()
            await reader.close()

    def _times_of(self, batch: list[D] | Columns) -> Integers:
        if isinstance(batch, Columns):
            return self._times.of_columns(batch)
        return np.array(self._times.of_rows(batch), np.int64)

    def _without(
        self, late: LateRecords, batch: list[D] | Columns, is_late: Mask, worst: int, reached: int
    ) -> Batch:
        """A batch without its late records, or with these marked."""
        if not is_late.any():
            return batch
        rest: list[D] | Columns
        if isinstance(batch, Columns):
            apart, rest = batch.filter(is_late), batch.filter(np.logical_not(is_late))
            late.out(apart, worst, reached)
        else:
            pairs = list(zip(batch, is_late.tolist(), strict=True))
            rest = [record for record, gone in pairs if not gone]
            late.out([record for record, gone in pairs if gone], worst, reached)
        return marked(batch, is_late) if self.late_apart else rest

    def overtaken(self, partition: str, batch: Batch, reached: int) -> Batch:
        """Records of a partition that was silent are late where the others have passed their times."""
        rows, before = unmarked(batch)
        times = self._times_of(rows)
        now = np.logical_and(times < reached, np.logical_not(before))
        worst = reached - int(times.min(initial=reached))
        rest = self._without(self._latecomers[partition], rows, now, worst, reached)
        return marked(rows, np.logical_or(now, before)) if self.late_apart else rest

    async def acknowledge(self, partition: str, position: object) -> None:
        """The source is told of its own position."""
        await self._source.acknowledge(partition, _parts(position)[0])


class _LateApart(_EventTimed[D], LateApart[D]):
    """One that marks late records."""

    late_apart = True


def _parts(position: object | None) -> tuple[object | None, int]:
    if position is None:
        return None, 0
    if not isinstance(position, list | tuple) or len(position) != 2 or type(position[1]) is not int:
        raise SourceError(f"a position in event time is [position, latest time], not {position!r}")
    return position[0], position[1]


@overload
def event_timed(
    source: Partitions[D],
    time: TimeOf,
    delay: int | Duration = ...,
    *,
    unit: str = ...,
    late: Literal["stream"],
    idle_after: float | Duration | None = ...,
) -> LateApart[D]: ...


@overload
def event_timed(
    source: Partitions[D],
    time: TimeOf,
    delay: int | Duration = ...,
    *,
    unit: str = ...,
    late: Literal["error", "count"] = ...,
    idle_after: float | Duration | None = ...,
) -> Partitions[D]: ...


def event_timed(
    source: Partitions[D],
    time: TimeOf,
    delay: int | Duration = 0,
    *,
    unit: str = "ns",
    late: Late = "error",
    idle_after: float | Duration | None = None,
) -> Partitions[D] | LateApart[D]:
    """A source whose times are those of its records: `scope.source(event_timed(json_lines("logs/"), "t", "10s"))`.

    Each partition has its own watermark (its latest time less the delay), and batches are sent there: not after any of
    their records. Windows over them are told the records' times (`time=`). `unit`: what the dataflow's times count, as
    in `worker.dataflow(time=unit)`. `late`: records that come later than the delay are an error; or left out, counted
    and told at the end of their partition ("count"); or come on the stream's `.late` ("stream").

    Partitions wait for each other. `idle_after`: one that is silent for so long, by the clock, does not hold the others
    back until it speaks again; what it says then may be late.
    """
    given: object = source
    if not isinstance(given, Partitions) or given.timed:
        raise ConstructionError(
            f"event_timed needs a source with partitions that names no times itself, not {source!r}"
        )
    if unit not in NANOSECONDS:
        raise ConstructionError(f"{unit!r} is not a unit of times: say {', '.join(NANOSECONDS)}")
    times = Moments("event_timed", time, unit)
    LateRecords("event_timed", late, delay, times)  # which refuses other words
    idle = None if idle_after is None else checked_idle("event_timed", idle_after)
    kind = _LateApart if late == "stream" else _EventTimed
    return kind(source, times, ticks(delay, unit, "event_timed: delay"), delay, late, idle)
