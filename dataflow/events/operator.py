"""`stream.event_time(...)`: an operator whose output has times of its own, those of the records.

Its input is in the order in which records arrive, and its times say nothing of the records'. So the output is not
connected to the input: the operator holds a capability at its watermark, and moves it as records come. What is behind
it is on a *time line* of its own: sources before it do not wait for times there (`Dataflow.lines`), and control
streams follow the new line.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.cuts import Unrecoverable
from dataflow.build.stream import Stream
from dataflow.channels.ports import InputPort
from dataflow.columns.batch import Columns
from dataflow.columns.column import Integers, Mask
from dataflow.columns.grouping import group
from dataflow.errors import ConstructionError
from dataflow.events.late import Late, LateRecords
from dataflow.events.moments import Moments, TimeOf, ticks
from dataflow.events.watermarks import Watermarks
from dataflow.operators import rows
from dataflow.operators.silence import Tiding, Tidings
from dataflow.progress.graph import Target
from dataflow.progress.reach import upstream
from dataflow.time.durations import Duration, seconds
from dataflow.time.timestamp import Checked, unit_of
from dataflow.time.timestamp import Integers as IntegerTimes
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.run.dataflow import Dataflow

D = TypeVar("D", covariant=True)


class EventStream(Stream[D]):
    """Records at their own times. `late`: the stream of those that came too late, or of numbers of them (`late=`), at
    the times that the watermark had reached."""

    def __init__(self, stream: Stream[D], late: Stream[Record], records: LateRecords) -> None:
        super().__init__(stream.scope, stream.source)
        self.late = late
        self._records = records

    @property
    def late_count(self) -> int:
        """How many late records this worker has left out."""
        return self._records.count


@dataclass(frozen=True)
class Retiming:
    """What a user asked for."""

    name: str
    times: Moments
    delay: int
    every: int
    partition: Callable[[Record], Hashable] | str | None
    idle_after: float | None
    late: LateRecords


def event_time(
    stream: Stream[D],
    time: TimeOf,
    delay: int | Duration,
    *,
    every: int | Duration | None,
    partition: Callable[[Record], Hashable] | str | None,
    idle_after: float | Duration | None,
    late: Late,
    name: str,
) -> EventStream[D]:
    """Gives records their own times: see `Stream.event_time`."""
    plan = _plan(stream.scope, time, delay, every, partition, idle_after, late, name)
    if stream.scope.dataflow.recovers:
        raise Unrecoverable(
            f"{name}: a program with recovery cannot give records of any stream other times, since snapshots know one "
            "time line: let the source name the times (scope.source(..., timed=True), or a source whose `timed` is "
            "true), or run without recovery"
        )
    builder = OperatorBuilder(stream.scope, name)
    builder.add_input(stream)
    gossips = plan.idle_after is not None and stream.scope.peers > 1
    if gossips:
        builder.add_open_input()
    builder.add_output({}, initial=True)
    builder.add_output({}, initial=True, entry=False)
    if gossips:
        builder.add_output({}, initial=True, entry=False)
    streams = builder.build(lambda context: _EventTime(context, plan).step, frontier=True)
    dataflow = stream.scope.dataflow
    if gossips:
        told = rows.broadcast(streams[2], f"{name}: tidings")
        dataflow.graph.add_edge(told.source, Target(streams[0].source.node, 1))
    _begin_line(dataflow, streams[0].source.node)
    return EventStream(streams[0], streams[1], plan.late)


def _begin_line(dataflow: Dataflow, node: int) -> None:
    """What comes out of the operator is on a time line of its own: what follows the entries follows that from now on,
    and sources before it are not paced by what is behind it."""
    before = upstream(dataflow.graph, node)
    dataflow.entries[:] = [port for port in dataflow.entries if port.operator.number not in before]
    dataflow.lines.append(node)


def _plan(
    scope: Scope,
    time: TimeOf,
    delay: int | Duration,
    every: int | Duration | None,
    partition: Callable[[Record], Hashable] | str | None,
    idle_after: float | Duration | None,
    late: Late,
    name: str,
) -> Retiming:
    domain = scope.domain.domain if isinstance(scope.domain, Checked) else scope.domain
    if scope.parent is not None or not isinstance(domain, IntegerTimes):
        raise ConstructionError(f"{name} must be in the root of a dataflow of integer times")
    unit = unit_of(scope.domain)
    if partition is not None and not isinstance(partition, str) and not callable(partition):
        raise ConstructionError(f"{name}: partition= names a column or is a function of a record, not {partition!r}")
    idle = None if idle_after is None else checked_idle(name, idle_after)
    step = 0 if every is None else ticks(every, unit, f"{name}: every", least=1)
    lag = ticks(delay, unit, f"{name}: delay")
    times = Moments(name, time, unit)
    return Retiming(name, times, lag, step, partition, idle, LateRecords(name, late, delay, times))


def checked_idle(name: str, idle_after: float | Duration) -> float:
    """After how many seconds a partition is silent."""
    try:
        idle = seconds(idle_after)
    except (TypeError, ValueError) as error:
        raise ConstructionError(f"{name}: idle_after={idle_after!r}: {error}") from None
    if not idle > 0:
        raise ConstructionError(f"{name}: idle_after is a duration above zero, not {idle_after!r}")
    return idle


class _EventTime:
    """The operator on one worker."""

    def __init__(self, context: Context, plan: Retiming) -> None:
        context.stay("let the source name the times (dataflow.sources.event_timed): its watermarks go with partitions")
        self._context = context
        self._plan = plan
        self._input: InputPort = context.inputs[0]
        self._news: InputPort[Tiding] | None = context.inputs[1] if len(context.inputs) > 1 else None
        self._records, self._late, *self._telling = context.outputs
        self._capabilities = [context.capability(number) for number in range(len(context.outputs))]
        self._marks = Watermarks(plan.delay)
        self._tidings = Tidings(context.worker, context.peers)
        self._told: Tiding = (context.worker, 0, 0)
        self._reached = self._capabilities[0].time  # no record is sent before
        if plan.idle_after is not None:
            self._marks.hear(None, context.clock.now())  # a worker without records is active at first, too
        self._alarm: float | None = None  # when the step comes back by itself

    def step(self) -> None:
        """Takes what has arrived, then moves on as far as that allows."""
        for _, batch in self._input:
            if isinstance(batch, Columns):
                self._take_columns(batch)
            else:
                self._take_rows(batch)
        for _, tidings in self._news or ():
            for tiding in tidings:
                self._tidings.hear(tiding)
        if not self._capabilities[0].live:
            return
        if self._input.done:
            self._end()
        else:
            self._move()

    def _end(self) -> None:
        """A worker that has ended is as one that has no partitions: it holds nobody back."""
        self._tell(None)
        for capability in self._capabilities:
            capability.drop()
        self._plan.late.tell()

    # Moving on

    def _move(self) -> None:
        since = -np.inf
        if self._plan.idle_after is not None:
            now = self._context.clock.now()
            since = now - self._plan.idle_after
            self._set_alarm(now, float(since))
        active = self._marks.active(float(since))
        if self._plan.idle_after is None:
            reach = active or 0
        else:
            self._tell(active)
            reach = self._tidings.reach(active, self._marks.furthest)
        reach = self._rounded(reach)
        if reach > self._reached:
            self._reached = reach
            for capability in self._capabilities[:2]:
                capability.downgrade(reach)

    def _rounded(self, time: int) -> int:
        return time - time % self._plan.every if self._plan.every else time

    def _tell(self, active: int | None) -> None:
        if self._telling:
            tiding = (self._context.worker, active, self._marks.furthest)
            if tiding != self._told:
                self._told = tiding
                self._telling[0].give(self._capabilities[2], [tiding])

    def _set_alarm(self, now: float, since: float) -> None:
        """Comes back when the next partition will have been silent for too long."""
        heard = self._marks.next_idle(since)
        assert self._plan.idle_after is not None
        if heard is not None and (self._alarm is None or self._alarm <= now):
            self._alarm = heard + self._plan.idle_after
            self._context.activate_after(max(self._alarm - now, 0.0))

    def _hear(self, partition: Hashable) -> None:
        self._marks.hear(partition, self._context.clock.now() if self._plan.idle_after is not None else 0.0)

    # Records

    def _take_rows(self, batch: list[Record]) -> None:
        times = self._plan.times.of_rows(batch)
        late = set[int]()
        for partition, places in self._by_partition(batch).items():
            self._hear(partition)
            some = times if len(places) == len(times) else [times[place] for place in places]
            late.update(places[number] for number in self._marks.late_of(partition, some))
        at: dict[int, list[Record]] = {}
        behind: list[int] = []
        for place, (time, record) in enumerate(zip(times, batch, strict=True)):
            time = self._rounded(time)
            if place in late or time < self._reached:
                behind.append(place)
            else:
                at.setdefault(time, []).append(record)
        for time, records in at.items():
            self._records.give(self._capabilities[0], records, at=time)
        if behind:
            worst = max(self._marks.worst, self._reached - min(times[place] for place in behind))
            self._leave_out([batch[place] for place in behind], worst)

    def _by_partition(self, batch: list[Record]) -> dict[Hashable, range | list[int]]:
        of = self._plan.partition
        if of is None:
            return {None: range(len(batch))}
        places: dict[Hashable, range | list[int]] = {}
        for place, record in enumerate(batch):
            found = places.setdefault(record[of] if isinstance(of, str) else of(record), [])
            assert isinstance(found, list)
            found.append(place)
        return places

    def _take_columns(self, batch: Columns) -> None:
        times = self._plan.times.of_columns(batch)
        late = self._late_in(batch, times) | (times < self._reached)
        if late.any():
            worst = max(self._marks.worst, self._reached - int(times[late].min()))
            self._leave_out(batch.filter(late), worst)
            batch, times = batch.filter(~late), times[~late]
        if not self._plan.every:
            self._records.give(self._capabilities[0], batch)
            return
        floors = times - times % self._plan.every
        for time in np.unique(floors).tolist():
            self._records.give(self._capabilities[0], batch.filter(floors == time), at=time)

    def _late_in(self, batch: Columns, times: Integers) -> Mask:
        of = self._plan.partition
        if of is None:
            self._hear(None)
            return self._marks.late_in(None, times)
        if not isinstance(of, str):
            raise TypeError(f"{self._plan.name}: columns came, and partition= is a function: name a column")
        late = np.zeros(len(batch), bool)
        order, starts = group(batch, (of,))
        for places in np.split(order, starts[1:]) if len(starts) else ():
            (partition,) = batch.select([of]).take(places[:1]).rows()[0]
            self._hear(partition)
            late[places] = self._marks.late_in(partition, times[places])
        return late

    def _leave_out(self, batch: list[Record] | Columns, worst: int) -> None:
        out = self._plan.late.out(batch, worst, max(self._reached, self._marks.furthest))
        self._late.give(self._capabilities[1], out)
