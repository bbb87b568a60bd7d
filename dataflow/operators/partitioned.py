"""The operators behind a source with partitions: one that finds them and deals them out, and one that reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.cuts import FOREVER, Keeps, Participant, Share
from dataflow.build.operator import Step
from dataflow.channels.pact import Audience, Batch
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.errors import ConstructionError, TimeError
from dataflow.operators.inputs import to_batch
from dataflow.operators.partitions import Partitions, SourceError
from dataflow.operators.positions import Positions
from dataflow.operators.source import Reader
from dataflow.run.completion import Completion
from dataflow.run.signal import Signal
from dataflow.time.order import Time
from dataflow.time.timestamp import Checked, Integers
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

D = TypeVar("D")

_END = object()


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
    finder = OperatorBuilder(scope, f"{name}: partitions")
    finder.add_output(initial=True, entry=False)
    (dealt,) = finder.build(lambda context: _find(scope, context, source), keeps=Keeps.NOTHING)
    reader = OperatorBuilder(scope, name)
    reader.add_input(dealt, Audience())
    reader.add_output({}, initial=True)
    kind = _Timed if source.timed else _Ticking if source.follow else _Counting
    out: Stream[D]
    (out,) = reader.build(
        lambda context: kind(scope, context, source, ahead, name).step, frontier=True, keeps=Keeps.SHARE
    )
    return out


def _find(scope: Scope, context: Context, source: Partitions[D]) -> Step:
    """Deals partitions out in turn as they are found. Worker 0 does it for all."""
    capability, output = context.capability(), context.outputs[0]

    async def find() -> None:
        await scope.dataflow.started.wait()
        known: dict[str, int] = {}
        workers = 0  # among whom partitions are dealt out
        while not context.dropped and scope.dataflow.built:
            found = await source.partitions()
            if isinstance(found, str) or not all(isinstance(partition, str) for partition in found):
                raise SourceError(f"partitions() of {source!r} must give a list of names, not {found!r}")
            new = [partition for partition in dict.fromkeys(found) if partition not in known]
            # One that names its times and has no partition would hold all others back: it is left out for good.
            workers = workers or (min(len(new), context.peers) if source.timed else context.peers)
            for partition in new:
                known[partition] = len(known) % workers
            output.give(capability, [(partition, known[partition], workers) for partition in new])
            if not source.follow:
                break
            await context.clock.sleep_until(context.clock.now() + source.look_every)
        capability.drop()

    if context.worker == 0:
        context.spawn(find)
    else:
        capability.release()
    return lambda: None


class _Pace:
    """Waits while too many times are outstanding."""

    def __init__(self, completion: Completion, ahead: int) -> None:
        self._completion = completion
        self._ahead = ahead
        self._sent: deque[Time] = deque()  # the last `ahead` distinct times

    async def wait(self, time: Time) -> None:
        """Before something is sent at a time, which is not before the last."""
        if not self._sent or self._sent[-1] != time:
            if len(self._sent) >= self._ahead:
                await self._completion.wait_passed(self._sent.popleft())
            self._sent.append(time)


class _Reading(Participant):
    """What reads this worker's partitions, and knows where it stood at each time."""

    def __init__(self, scope: Scope, context: Context, source: Partitions[D], ahead: int, name: str) -> None:
        self.name = name
        self._source = source
        self._ahead = ahead
        self._context = context
        self._dataflow = scope.dataflow
        self._worker = scope.worker
        self._input: InputPort[tuple[str, int, int]] = context.inputs[0]
        self._output: OutputPort = context.outputs[0]
        self._capability: Capability = context.capability()
        self._completion = Completion(scope.dataflow)
        self._positions = Positions()
        self._waiting: deque[str] = deque()  # partitions of this worker that nobody reads yet
        self._open: set[str] = set()
        self._readers = 0  # how many workers have partitions; 0 as long as none have been dealt out
        self._signal = Signal()
        self._resumed = trio.Event()
        self._seen: Time | None = None
        self._acknowledged: dict[str, object] = {}
        self._gate = scope.dataflow.enrol(self, context.activate)
        if self._gate is None:
            self._resumed.set()
        elif not source.resumable:
            raise ConstructionError(
                f"{name}: {source!r} cannot be set to where it was, as recovery needs it: "
                "sources.journaled(source, folder) keeps what came until a snapshot has it, and "
                "sources.at_most_once(source) says that it may be lost"
            )
        source.hears_back = self._gate is not None
        context.spawn(self._run)

    # As an operator, and as a participant of snapshots

    def step(self) -> None:
        """Hears which partitions are this worker's; gives its share of a cut that it has passed."""
        for _, dealt in self._input:
            self._readers = dealt[0][2]
            self._waiting.extend(partition for partition, worker, _ in dealt if worker == self._worker)
        self._signal.set()
        self._give_share()

    def restore(self, shares: Mapping[int, object]) -> None:
        """All workers' positions together: partitions are dealt out anew."""
        restored: dict[str, object] = {}
        for part in ("before", "read"):  # what was read in that run is further than where that run began
            for share in shares.values():
                assert isinstance(share, dict)
                restored.update(share[part])
        self._positions = Positions(restored)

    def resume(self) -> None:
        self._resumed.set()

    async def commit(self, time: Time, plain: object, token: object) -> None:
        """Tells the outside what will not be read again."""
        if isinstance(plain, dict):
            for partition, position in plain["read"].items():
                if self._acknowledged.get(partition) != position:
                    await self._source.acknowledge(partition, position)
                    self._acknowledged[partition] = position

    def _give_share(self) -> None:
        gate = self._gate
        while gate is not None and gate.cut is not None and self._passed(gate.cut):
            # Worker 0 keeps what is known of partitions that nobody has taken up, for the next run.
            before = self._positions.restored if self._worker == 0 else {}
            plain = {"before": before, "read": self._positions.before(gate.cut)}
            gate.give(Share(plain=plain, seen=self._seen))

    def _passed(self, cut: Time) -> bool:
        return not self._capability.live or bool(cut <= self._capability.time)

    # Reading

    async def _run(self) -> None:
        if not await self._completion.wait_built():
            return
        await self._resumed.wait()
        self._begin()
        while not self._ended:
            while self._waiting and len(self._open) < self._most_open:
                partition = self._waiting.popleft()
                self._open.add(partition)
                self._opened(partition)
                self._context.spawn(partial(self._read, partition))
            self._told()
            await self._signal.wait()
        self._capability.release()
        self._give_share()

    @property
    def _ended(self) -> bool:
        return self._input.done and not self._waiting and not self._open

    @property
    def _most_open(self) -> int:
        return self._source.at_once

    async def _read(self, partition: str) -> None:
        start = self._positions.take_up(partition)
        try:
            items = Reader(self._source.read(partition, start))
            try:
                while (item := await items.next(_END)) is not _END:
                    if not await self._send(partition, *_checked(item)):
                        return
            finally:
                await items.close()
        except Exception as error:
            error.add_note(f"reading partition {partition!r} behind position {self._positions.last(partition)!r}")
            raise
        self._open.discard(partition)
        self._closed(partition)
        self._signal.set()

    def _give(self, partition: str, position: object, time: Time, batch: Batch) -> None:
        self._output.give(self._capability, batch, time)
        self._positions.note(partition, time, position, FOREVER if self._gate is None else self._gate.limit)
        self._seen = time if self._seen is None else max(self._seen, time)

    def _move(self, time: Time) -> None:
        if self._capability.live and time > self._capability.time:
            self._capability.downgrade(time)
            self._give_share()

    # What the kinds differ in

    async def _send(self, partition: str, position: object, time: Time, batch: Batch) -> bool:
        """Sends a batch; False if the dataflow is gone."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Reading starts."""

    def _told(self) -> None:
        """Partitions were dealt out, or have ended."""

    def _opened(self, partition: str) -> None:
        """A partition is about to be read."""

    def _closed(self, partition: str) -> None:
        """A partition has been read to its end."""


class _Counting(_Reading):
    """Each batch has a time of its own: 0, 1, 2, ... on each worker. Partitions take turns."""

    def _begin(self) -> None:
        self._turn = trio.Lock()  # who waits longest is next
        self._pace = _Pace(self._completion, self._ahead)

    async def _send(self, partition: str, position: object, time: Time, batch: Batch) -> bool:
        if time is not None:
            raise SourceError(f"{self.name} gave a batch at {time!r}, and says that it names no times: set timed=True")
        async with self._turn:
            now = self._now()
            self._move(now)  # before the wait: what is before this time may depend on it
            await self._pace.wait(now)
            await self._dataflow.room()
            if self._context.dropped:
                return False
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
        self._origin = self._context.clock.now()
        self._first = self._capability.time
        self._context.spawn(self._tick)

    @property
    def _most_open(self) -> int:
        return 1 << 62  # none of them ends

    def _now(self) -> Time:
        passed = int((self._context.clock.now() - self._origin) / self._source.tick)
        return max(self._first + passed, self._capability.time)

    def _sent(self, time: Time) -> None:
        """More may come at this tick."""

    async def _tick(self) -> None:
        number = 0
        while True:
            number = max(number + 1, self._now() - self._first + 1)
            await self._context.clock.sleep_until(self._origin + number * self._source.tick)
            if not self._capability.live or self._context.dropped:
                return
            if not self._turn.locked():
                self._move(self._now())


class _Timed(_Reading):
    """Batches name their times. The worker is where the last of its partitions is."""

    def _begin(self) -> None:
        self._times: dict[str, Time] = {}  # by partition, no batch before this will come
        self._paces: dict[str, _Pace] = {}

    @property
    def _most_open(self) -> int:
        return 1 << 62  # all, or the worker could not say where it is

    def _opened(self, partition: str) -> None:
        self._times[partition] = self._capability.time

    def _closed(self, partition: str) -> None:
        del self._times[partition]
        self._told()

    def _told(self) -> None:
        # Before all partitions are known, one that starts earlier may still come.
        known = self._input.done or (self._source.follow and self._readers)
        if known and self._times and not self._waiting:
            self._move(min(self._times.values()))

    @property
    def _ended(self) -> bool:
        return super()._ended or 0 < self._readers <= self._worker  # it will never have any

    async def _send(self, partition: str, position: object, time: Time, batch: Batch) -> bool:
        time = self._output.domain.check(time)
        if time < self._times[partition]:
            raise TimeError(
                f"{self.name} is at {self._times[partition]!r} in partition {partition!r} and cannot go back to "
                f"{time!r}: a source gives its batches in the order of their times"
            )
        self._times[partition] = time
        self._told()
        pace = self._paces.get(partition)
        if pace is None:  # partitions wait for each other's times: each has a pace of its own
            completion = Completion(self._dataflow)
            await completion.wait_built()
            pace = self._paces[partition] = _Pace(completion, self._ahead)
        await pace.wait(time)
        await self._dataflow.room()
        if self._context.dropped:
            return False
        self._give(partition, position, time, batch)
        return True


def _checked(item: Record) -> tuple[object, Time, Batch]:
    try:
        position, time, batch = item
    except (TypeError, ValueError):
        raise SourceError(f"read() must give (position, time, batch), and gave {item!r}") from None
    return position, time, to_batch(batch)
