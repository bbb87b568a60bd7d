"""What reads the partitions of one worker, and knows where it stood at each time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from dataflow.build.builder import Context
from dataflow.build.capability import Capability
from dataflow.build.cuts import FOREVER, Participant, Share
from dataflow.channels.pact import Batch
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.errors import ConstructionError
from dataflow.members.reading import Standing
from dataflow.operators.inputs import to_batch
from dataflow.operators.partitions import Partitions, SourceError
from dataflow.operators.positions import Positions
from dataflow.operators.source import Reader
from dataflow.run.completion import Completion
from dataflow.run.signal import Signal
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope

D = TypeVar("D")

_END = object()


class Reading(Participant):
    """What reads this worker's partitions, and knows where it stood at each time."""

    def __init__(self, scope: Scope, context: Context, source: Partitions[D], ahead: int, name: str) -> None:
        self.name = name
        self._source = source
        self._ahead = ahead
        self._context = context
        self._dataflow = scope.dataflow
        self._worker = scope.worker
        self._input: InputPort[tuple[str, int, list[int]]] = context.inputs[0]
        self._output: OutputPort = context.outputs[0]
        self._capability: Capability = context.capability()
        self._completion = Completion(scope.dataflow)
        self._positions = Positions()
        self._waiting: deque[str] = deque()  # partitions of this worker that nobody reads yet
        self._open: dict[str, trio.CancelScope] = {}
        self._over: set[str] = set()  # partitions of this worker that are at their end
        self._readers: dict[str, int] = {}  # by partition, who reads it
        self._may_read: list[int] = []  # workers that can be given partitions; empty if that is not known
        self._runs = False
        self._leaves = False
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
            for partition, worker, may_read in dealt:
                if partition not in self._readers:  # else a change has said since who reads it
                    self._readers[partition], self._may_read = worker, may_read
                    if worker == self._worker:
                        self._waiting.append(partition)
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

    # When workers join and leave

    def standings(self) -> dict[str, Standing]:
        """By partition of this worker, where it stands."""
        mine = [partition for partition, worker in self._readers.items() if worker == self._worker]
        known = self._positions.known
        return {each: Standing(each in self._over, self._time_of(each), *known(each)) for each in mine}

    @property
    def at(self) -> Time | None:
        """Where the capability is."""
        return self._capability.time if self._capability.live else None

    @property
    def restored(self) -> Mapping[str, object]:
        """Where the run went on from, by partition."""
        return self._positions.restored

    def take_restored(self, restored: Mapping[str, object]) -> None:
        """This worker joins."""
        self._positions = Positions(restored)

    def take_over(
        self, readers: dict[str, int], may_read: list[int], gained: dict[str, Standing], time: Time, minted: Time | None
    ) -> None:
        """Goes on with what this worker reads from now on."""
        for partition, worker in self._readers.items():
            if worker == self._worker != readers[partition]:
                self._part_with(partition)
        unheard = [p for p, worker in readers.items() if worker == self._worker and p not in {*self._readers, *gained}]
        self._waiting.extend(unheard)  # its own from the first; the news of them, which is to come, says nothing new
        self._readers, self._may_read = readers, may_read or self._may_read
        for partition, standing in gained.items():
            self._positions.adopt(partition, standing.behind, standing.history)
            (self._over.add if standing.over else self._waiting.append)(partition)
        if minted is not None:
            before, right = self._capability, self._output.adopt(minted)
            if before.live and before.time <= minted:
                right.drop()  # what it has is as good
            else:
                self._capability = right
                before.release()
        self._shift(time)
        if self._waiting and not self._runs and self._dataflow.started.is_set():
            self._runs = True
            self._context.spawn(self._read_all)
        self._signal.set()

    def _part_with(self, partition: str) -> None:
        """Another worker goes on with a partition: whatever is in hand is thrown away."""
        self._positions.part_with(partition)
        self._over.discard(partition)
        if partition in self._waiting:
            self._waiting.remove(partition)
        if partition in self._open:
            self._open.pop(partition).cancel()

    def leave(self) -> None:
        """This worker reads nothing more."""
        self._leaves = True
        self._signal.set()

    # Reading

    async def _run(self) -> None:
        self._runs = True
        if not await self._completion.wait_built():
            return
        await self._resumed.wait()
        self._begin()
        await self._read_all()

    async def _read_all(self) -> None:
        while not self._ended:
            while self._waiting and len(self._open) < self._most_open:
                partition = self._waiting.popleft()
                scope = self._open[partition] = trio.CancelScope()
                self._opened(partition)
                self._context.spawn(partial(self._read, partition, self._positions.take_up(partition), scope))
            self._told()
            await self._signal.wait()
        self._runs = False
        self._end()

    def _end(self) -> None:
        self._capability.release()
        self._give_share()

    @property
    def _ended(self) -> bool:
        if self._leaves or not self._capability.live:
            return True
        return self._input.done and not self._waiting and not self._open

    @property
    def _most_open(self) -> int:
        return self._source.at_once

    async def _read(self, partition: str, start: object, scope: trio.CancelScope) -> None:
        with scope:
            try:
                items = Reader(self._source.read(partition, start))
                try:
                    while (item := await items.next(_END)) is not _END:
                        await trio.lowlevel.checkpoint_if_cancelled()  # it may be another worker's meanwhile
                        if not await self._send(partition, *_checked(item)):
                            return
                finally:
                    await items.close()
            except Exception as error:
                error.add_note(f"reading partition {partition!r} behind position {self._positions.last(partition)!r}")
                raise
        if not scope.cancel_called:  # else it is another worker's now
            del self._open[partition]
            self._over.add(partition)
            self._closed(partition)
            self._signal.set()

    async def _may_send(self) -> bool:
        """Waits for room, and while it is decided who reads what; False if the dataflow is gone."""
        await self._dataflow.room()
        changes = self._dataflow.pump.changes
        while changes.stopped:
            await changes.wait_decided()
            await trio.lowlevel.checkpoint_if_cancelled()  # this partition may have gone to another worker
        return not self._context.dropped

    def _give(self, partition: str, position: object, time: Time, batch: Batch) -> None:
        self._output.give(self._capability, batch, time)
        self._positions.note(partition, time, position, FOREVER if self._gate is None else self._gate.limit)
        self._seen = time if self._seen is None else max(self._seen, time)

    def _move(self, time: Time) -> None:
        if self._capability.live and time > self._capability.time:
            self._capability.downgrade(time)
            self._give_share()

    # What the kinds differ in

    def _time_of(self, partition: str) -> Time | None:
        """Where a partition is, if the source names its times."""
        return None

    def _shift(self, time: Time) -> None:
        """A change was made: what this worker has gained is sent at this time, or later."""
        self._move(time)

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


def _checked(item: Record) -> tuple[object, Time, Batch]:
    try:
        position, time, batch = item
    except (TypeError, ValueError):
        raise SourceError(f"read() must give (position, time, batch), and gave {item!r}") from None
    return position, time, to_batch(batch)
