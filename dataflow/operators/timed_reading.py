"""Partitions that name their times: a worker is where the last of its partitions is."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.pact import Audience, Batch
from dataflow.channels.ports import InputPort
from dataflow.errors import TimeError
from dataflow.members.reading import Standing
from dataflow.operators import rows
from dataflow.operators.pacing import SourcePace
from dataflow.operators.partitions import Partitions
from dataflow.operators.reading import Reading
from dataflow.operators.silence import Silence, Tiding, Tidings
from dataflow.progress.graph import Target
from dataflow.run.completion import Completion
from dataflow.run.signal import Signal
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")


class TimedReading(Reading):
    """Batches name their times. Those that come earlier than the worker is are an error."""

    def __init__(self, scope: Scope, context: Context, source: Partitions[D], ahead: int, name: str) -> None:
        super().__init__(scope, context, source, ahead, name)
        self._times: dict[str, Time] = {}  # by partition, no batch before this will come
        self._paces: dict[str, SourcePace] = {}

    @property
    def _most_open(self) -> int:
        return 1 << 62  # all, or the worker could not say where it is

    def _opened(self, partition: str) -> None:
        self._times[partition] = self._capability.time

    def _closed(self, partition: str) -> None:
        del self._times[partition]
        self._told()

    def _time_of(self, partition: str) -> Time | None:
        return self._times.get(partition)

    def _part_with(self, partition: str) -> None:
        super()._part_with(partition)
        self._times.pop(partition, None)
        self._paces.pop(partition, None)

    def _shift(self, time: Time) -> None:
        """The source names its times: those of a partition go on from where it is."""

    @property
    def _known(self) -> bool:
        """Whether all partitions are known, and open: before, one that starts earlier may still come."""
        return (self._input.done or bool(self._source.follow and self._may_read)) and not self._waiting

    def _told(self) -> None:
        if self._known and self._times:
            self._move(min(self._times.values()))

    @property
    def _ended(self) -> bool:
        if super()._ended:
            return True
        return bool(self._may_read) and self._worker not in self._may_read and not self._waiting and not self._open

    async def _send(self, partition: str, position: object, time: Time, batch: Batch) -> bool:
        time = self._time_for(partition, self._output.domain.check(time))
        self._times[partition] = time
        self._told()
        pace = self._paces.get(partition)
        if pace is None:  # partitions wait for each other's times: each has a pace of its own
            completion = Completion(self._dataflow)
            await completion.wait_built()
            pace = self._paces[partition] = SourcePace(completion, self._ahead)
        await pace.wait(time)
        if not await self._may_send():
            return False
        self._give(partition, position, time, batch)
        return True

    def _time_for(self, partition: str, time: Time) -> Time:
        """The time at which a batch is sent that a partition has at this time."""
        if time < self._times[partition]:
            raise TimeError(
                f"{self.name} is at {self._times[partition]!r} in partition {partition!r} and cannot go back to "
                f"{time!r}: a source gives its batches in the order of their times"
            )
        return time


class IdleReading(TimedReading):
    """The worker is where the last of its partitions is that is not silent (`idle_after`). If all are, it goes on with
    the other workers. A partition that speaks again is where the worker is: earlier records of it are late."""

    def __init__(self, scope: Scope, context: Context, source: Partitions[D], ahead: int, name: str) -> None:
        assert source.idle_after is not None
        self._silence = Silence(source.idle_after)
        self._tidings = Tidings(context.worker, context.peers)
        self._news: InputPort[Tiding] = context.inputs[1]
        self._said: Tiding | None = None
        self._spoke = Signal()
        self._watches = False
        super().__init__(scope, context, source, ahead, name)

    def step(self) -> None:
        """Hears where the others are, too."""
        for _, tidings in self._news:
            for tiding in tidings:
                if tiding[0] in self._dataflow.pump.roster.members:
                    self._tidings.hear(tiding)
        super().step()

    async def _watch(self) -> None:
        """Comes back whenever a partition may have fallen silent."""
        while self._capability.live and not self._context.dropped:
            self._told()
            now = self._context.clock.now()
            deadline = self._silence.next(now)
            if deadline is None:
                await self._spoke.wait()
            else:
                await self._context.clock.sleep_until(deadline)
        self._watches = False

    def _opened(self, partition: str) -> None:
        super()._opened(partition)
        self._silence.heard(partition, self._context.clock.now())
        if not self._watches:
            self._watches = True
            self._context.spawn(self._watch)
        self._spoke.set()

    def _closed(self, partition: str) -> None:
        self._silence.active(self._times, self._context.clock.now())  # which notes how far it got
        self._silence.forget(partition)
        super()._closed(partition)

    def _part_with(self, partition: str) -> None:
        super()._part_with(partition)
        self._silence.forget(partition)

    def _time_of(self, partition: str) -> Time | None:
        """Where a partition stands: if it is silent, the worker may be further, and holds nothing before."""
        time = super()._time_of(partition)
        return max(time, self._capability.time) if time is not None and self._capability.live else time

    def take_over(
        self, readers: dict[str, int], may_read: list[int], gained: dict[str, Standing], time: Time, minted: Time | None
    ) -> None:
        """Others have joined, and have heard nothing, or left, and say nothing any more."""
        self._tidings.forget()
        self._said = None
        super().take_over(readers, may_read, gained, time, minted)

    def _told(self) -> None:
        if self._known and self._capability.live:
            active = self._silence.active(self._times, self._context.clock.now())
            self._tell(active)
            self._move(self._tidings.reach(active, self._silence.furthest))

    def _tell(self, active: Time | None) -> None:
        """Tells the others where this worker is, if they have to know: it is silent, or was, or one of them is."""
        tiding = (self._worker, active, self._silence.furthest)
        was_silent = self._said is None or self._said[1] is None
        if tiding != self._said and (active is None or was_silent or self._tidings.others_wait()):
            self._said = tiding
            self._output.give(self._capability, [_Told(tiding)])

    def _end(self) -> None:
        if self._capability.live and not self._leaves:
            self._tell(None)
        self._spoke.set()
        super()._end()

    async def _send(self, partition: str, position: object, time: Time, batch: Batch) -> bool:
        self._silence.begin(partition)
        self._spoke.set()
        reached = self._time_for(partition, self._output.domain.check(time))
        if time < reached:  # it was silent, and the others went on
            batch = self._source.overtaken(partition, batch, reached)
        sent = await super()._send(partition, position, reached, batch)
        self._silence.heard(partition, self._context.clock.now())
        self._spoke.set()
        return sent

    def _time_for(self, partition: str, time: Time) -> Time:
        return max(time, self._times[partition], self._capability.time)


class _Told:
    """A tiding among records."""

    __slots__ = ("tiding",)

    def __init__(self, tiding: Tiding) -> None:
        self.tiding = tiding


def tidings_apart(stream: Stream[D], name: str) -> Stream[D]:
    """Takes tidings out of the stream of a reader, and brings them to the readers of all workers.

    They go with the records so that they need no right of their own: whoever may send records may tell, and workers
    that join and leave have what they need.
    """
    builder = OperatorBuilder(stream.scope, f"{name}: tidings")
    builder.add_input(stream)
    builder.add_output()
    builder.add_output()

    def make(context: Context) -> Step:
        (input,), (records, tidings) = context.inputs, context.outputs

        def step() -> None:
            for message, batch in input:
                if type(batch) is list and len(batch) == 1 and type(batch[0]) is _Told:
                    tidings.give(message, [batch[0].tiding])
                else:
                    records.give(message, batch)

        return step

    records, tidings = builder.build(make, keeps=Keeps.NOTHING)
    told = rows.broadcast(tidings, f"{name}: told", Audience())
    stream.scope.dataflow.graph.add_edge(told.source, Target(stream.source.node, 1))
    return records
