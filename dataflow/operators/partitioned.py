"""The operators behind a source with partitions: one that finds them and deals them out, and one that reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.pact import Audience, Batch
from dataflow.errors import ConstructionError
from dataflow.operators.finding import Dealing, find_partitions
from dataflow.operators.heirs import FollowingReader
from dataflow.operators.latecomers import separated
from dataflow.operators.pacing import SourcePace
from dataflow.operators.partitions import Partitions, SourceError
from dataflow.operators.reading import Reading
from dataflow.operators.timed_reading import IdleReading, TimedReading, tidings_apart
from dataflow.time.order import Time
from dataflow.time.timestamp import Checked, Integers

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")


def partitioned(scope: Scope, source: Partitions[D], *, ahead: int, name: str) -> Stream[D]:
    """The records of all partitions, each on the worker that reads it.

    Worker 0 finds partitions and says on a stream of its own who reads which, so that workers never disagree. `ahead`:
    so many times may be outstanding anywhere in the dataflow before the source waits.
    """
    domain = scope.domain.domain if isinstance(scope.domain, Checked) else scope.domain
    if scope.parent is not None or not isinstance(domain, Integers):
        raise ConstructionError(f"{name}, a source with partitions, must be in the root of a dataflow of integer times")
    if type(ahead) is not int or ahead < 1:
        raise ConstructionError(f"{name}: ahead must be at least 1")
    dealing = Dealing(source.timed)
    dealt = find_partitions(scope, source, dealing, name)
    reader = OperatorBuilder(scope, name)
    reader.add_input(dealt, Audience())
    reader.add_output({}, initial=True)
    idle = source.timed and source.idle_after is not None
    if idle:
        reader.add_open_input()
    timed = IdleReading if idle else TimedReading
    kind = timed if source.timed else _Ticking if source.follow else _Counting

    def make(context: Context) -> Step:
        reading = kind(scope, context, source, ahead, name)
        moves = source.moves and source.resumable
        follows = FollowingReader(reading, dealing, context.outputs[0], timed=source.timed, moves=moves)
        context.follow(follows)
        return reading.step

    out: Stream[D]
    (out,) = reader.build(make, frontier=True, keeps=Keeps.SHARE)
    out = tidings_apart(out, name) if idle else out
    return separated(out, name) if source.late_apart else out


class _Counting(Reading):
    """Each batch has a time of its own: 0, 1, 2, ... on each worker. Partitions take turns."""

    def _begin(self) -> None:
        self._turn = trio.Lock()  # who waits longest is next
        self._pace = SourcePace(self._completion, self._ahead)

    async def _send(self, partition: str, position: object, time: Time, batch: Batch) -> bool:
        if time is not None:
            raise SourceError(f"{self.name} gave a batch at {time!r}, and says that it names no times: set timed=True")
        async with self._turn:
            now = self._now()
            self._move(now)  # before the wait: what is before this time may depend on it
            await self._pace.wait(now)
            if not await self._may_send():
                return False
            now = max(now, self._capability.time)  # a change may have moved it
            self._give(partition, position, now, batch)
            self._sent(now)
        return True

    def _now(self) -> Time:
        return self._capability.time

    def _sent(self, time: Time) -> None:
        self._move(time + 1)


class _Ticking(_Counting):
    """The time of a batch is a tick of the clock since the run began, so that a silent worker holds nobody back."""

    def _begin(self) -> None:
        super()._begin()
        joined_at = self._dataflow.pump.changes.joined_at
        self._origin = self._context.clock.now() if joined_at is None else joined_at  # others did not wait for main
        self._first = self._capability.time
        self._ticks = 0
        self._context.spawn(self._tick)

    def _shift(self, time: Time) -> None:
        """All workers count from here, so that none is ahead of the others for ever."""
        super()._shift(time)
        if self._capability.live and self._dataflow.started.is_set():
            self._origin, self._first, self._ticks = self._context.clock.now(), self._capability.time, 0

    @property
    def _most_open(self) -> int:
        return 1 << 62  # none of them ends

    def _now(self) -> Time:
        passed = int((self._context.clock.now() - self._origin) / self._source.tick)
        return max(self._first + passed, self._capability.time)

    def _sent(self, time: Time) -> None:
        """More may come at this tick."""

    async def _tick(self) -> None:
        while True:
            self._ticks = max(self._ticks + 1, self._now() - self._first + 1)
            await self._context.clock.sleep_until(self._origin + self._ticks * self._source.tick)
            if not self._capability.live or self._context.dropped:
                return
            if not self._turn.locked():
                self._move(self._now())
