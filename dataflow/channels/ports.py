"""The ends of channels as an operator sees them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Never, Protocol, overload

from dataflow.build.capability import Capability, MessageCapability
from dataflow.channels.blame import name_time
from dataflow.channels.pact import ArrowStream, Batch, Pact
from dataflow.columns import Columns
from dataflow.columns.frames import as_columns
from dataflow.errors import CapabilityError, NoTimeFollows
from dataflow.time.antichain import Antichain
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from dataflow.build.operator import Operator
    from dataflow.progress.paths import PathSummary
    from dataflow.run.dataflow import Dataflow
    from dataflow.time.timestamp import Domain

    P = TypeVar("P", default=Any)  # what a channel makes of a batch before it sends it
    D = TypeVar("D", covariant=True, default=Any)  # of records; a port without a parameter is one of any records
    E = TypeVar("E", contravariant=True, default=Any)
else:
    from typing import TypeVar

    P, D, E = TypeVar("P"), TypeVar("D", covariant=True), TypeVar("E", contravariant=True)


class Channel(Protocol[P]):
    """Where an output sends its messages."""

    @property
    def most(self) -> Time:
        """The greatest time at which something was sent; None if nothing was, or nobody asks."""

    def prepare(self, batch: Batch) -> P:
        """What `push` needs. This calls the program's key function, which may raise; `push` does not."""

    def push(self, time: Time, prepared: P) -> None:
        """Sends a batch that was prepared."""

    def check(self, batch: Batch) -> None:
        """Refuses what would be refused where it is sent."""


def _as_batch(given: Record, label: str) -> Batch:
    """Columns where a mapping or a frame was given: to iterate over these gives their names, and not records."""
    if isinstance(given, str | bytes):
        raise TypeError(f"{label} must give a list of records, not {given!r}: write give(capability, [record])")
    columns = as_columns(given)
    if columns is not None:
        return columns
    if not hasattr(given, "__len__"):
        raise TypeError(f"{label} must give a list of records, not {given!r}")
    rows: Batch = given
    return rows


class InputPort(Generic[D]):
    """An input of an operator: messages to take, and the frontier of what may still come."""

    def __init__(self, operator: Operator, number: int, pact: Pact, domain: Domain) -> None:
        self.operator = operator
        self.number = number
        self.pact = pact
        self.domain = domain
        self.index = -1  # of its location, once the graph is frozen
        self.queue: deque[tuple[Time, Batch]] = deque()
        self.message = MessageCapability(self)  # of the message that is being taken
        # What has come here, for those who look (`dataflow.run.meters`): plain numbers, which nobody else reads.
        self.messages = 0
        self.local_records = 0  # from this worker
        self.remote_records = 0  # from others
        self.remote_bytes = 0
        self.width = 0.0  # bytes of a record from this worker, as weighed last
        self.acknowledged = pact.acknowledged
        self.depth = 0  # of its scope below the root
        # The rest is used only if the pact is acknowledged. All weights are of `dataflow.comm.flow.weigh`.
        self.on_its_way = 0  # the weight of what this worker sent to this input on others, and they have not taken
        self.on_taken: Callable[[], None] | None = None  # called whenever they have taken some of that
        self.owed: dict[int, int] = {}  # by sender, the weight of what was taken here and is not acknowledged

    # Batches of a port of columns are columns, and those of other ports are lists of records. What is in a port of
    # unknown records is unknown: only those match a port of `Never`. The overlap that mypy sees is a port of columns
    # which somebody regards as a port of objects; that one might take columns for a list.
    @overload
    def __iter__(self: InputPort[Never]) -> Iterator[tuple[MessageCapability, Any]]: ...

    @overload
    def __iter__(self: InputPort[Columns]) -> Iterator[tuple[MessageCapability, Columns]]: ...  # type: ignore[overload-overlap]

    @overload
    def __iter__(self) -> Iterator[tuple[MessageCapability, list[D]]]: ...

    def __iter__(self) -> Iterator[tuple[MessageCapability, Batch]]:
        """Takes the queued messages: (capability, batch) each. The capability is good until the next one is taken."""
        queue, message, index = self.queue, self.message, self.index
        counts = self.operator.dataflow.outbox.pending.counts
        try:
            while queue:
                time, batch = queue.popleft()
                pointstamp = (index, time)
                count = counts.get(pointstamp, 0) - 1
                if count:
                    counts[pointstamp] = count
                else:
                    del counts[pointstamp]
                message.time = time
                message.live = True
                yield message, batch
        finally:
            message.live = False

    def weigh(self, batch: Batch) -> None:
        """Notes what a record of this batch weighs: those that follow will weigh about as much."""
        from dataflow.comm.flow import weigh  # a package that knows this one

        if isinstance(batch, list | Columns):
            self.width = weigh(batch) / len(batch)

    @property
    def frontier(self) -> Antichain:
        """The times that may still arrive here."""
        return self.operator.dataflow.tracker.frontier(self.index)

    def could_see(self, time: Time) -> bool:
        """Whether a message at `time` may still arrive here (queued messages included)."""
        return self.operator.dataflow.tracker.could_see(self.index, time)

    @property
    def done(self) -> bool:
        """Whether nothing can ever arrive here again."""
        return not len(self.frontier)


class OutputPort(Generic[E]):
    """An output of an operator. To give is to send, and needs a capability."""

    def __init__(self, operator: Operator, number: int, domain: Domain, connections: Mapping[int, PathSummary]) -> None:
        self.operator = operator
        self.number = number
        self.domain = domain
        self.index = -1  # of its location, once the graph is frozen
        self._maps = {number: path.compiled() for number, path in connections.items()}  # by input
        self.unchanged = {number for number, path in self._maps.items() if path is None}  # inputs whose times stay
        self.held: dict[Time, int] = {}  # capabilities on this worker, by time; for explanations
        self._early: list[tuple[Time, int]] = []  # what was counted before the graph was frozen
        self.revoked = False  # whether all capabilities were ended at once
        self._channels: list[Channel] = []  # each pushes what it has prepared itself
        self.given = 0  # records, for those who look
        self.failures = False  # whether these are records that an operator could not process

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow that this output belongs to."""
        return self.operator.dataflow

    def bind(self, index: int) -> None:
        """The graph is frozen: from now on changes are counted at this index."""
        self.index = index
        for time, diff in self._early:
            self.operator.dataflow.outbox.pending.update((index, time), diff)
        self._early.clear()

    def connect(self, channel: Channel) -> None:
        """Adds a channel on which everything given is sent."""
        self._channels.append(channel)

    @property
    def width(self) -> int:
        """How many channels there are."""
        return len(self._channels)

    def swap(self, channels: list[Channel]) -> list[Channel]:
        """Sends on other channels from now on; returns those that there were."""
        before, self._channels = self._channels, channels
        return before

    def channel(self, place: int) -> Channel:
        """One of the channels."""
        return self._channels[place]

    def replace(self, place: int, channel: Channel) -> None:
        """Puts another channel in the place of one."""
        self._channels[place] = channel

    def disconnect(self) -> None:
        """Ends all channels: what is given from now on goes nowhere (the dataflow was dropped)."""
        self._channels.clear()

    def give(
        self,
        capability: Capability | MessageCapability,
        batch: Collection[E] | Columns | Mapping[str, object] | ArrowStream,
        at: Time = None,
    ) -> None:
        """Sends a batch at the capability's time, or at a later one. An empty batch is not sent."""
        try:
            time = capability.time_at(self)
        except AttributeError:
            raise CapabilityError(
                f"{self.operator.label} needs a capability to send with, and was given {capability!r}"
            ) from None
        if at is not None:
            at = self.domain.check(at)
            if not self.domain.less_equal(time, at):
                raise CapabilityError(
                    f"{self.operator.label} may send at {time!r} or later, and tried to send at {at!r}: "
                    "keep a capability for the earlier time for as long as it is needed"
                )
            time = at
        if type(batch) is list or type(batch) is Columns:
            given: Batch = batch
        else:
            given = _as_batch(batch, self.operator.label)
        count = len(given)
        if count:
            if self._channels:
                self.send(time, given)
            self.given += count

    def send(self, time: Time, batch: Batch) -> None:
        """Sends to all channels or, if a key function raises, to none: a program that catches this may go on."""
        channels = self._channels
        try:
            if len(channels) == 1:
                channels[0].push(time, channels[0].prepare(batch))
                return
            prepared = [channel.prepare(batch) for channel in channels]
        except Exception as error:
            name_time(error, time)
            raise
        for channel, parts in zip(channels, prepared, strict=True):
            channel.push(time, parts)

    def time_from(self, number: int, time: Time) -> Time:
        """The least time at which a message taken at `time` from input `number` allows sending here."""
        try:
            path = self._maps[number]
        except KeyError:
            raise CapabilityError(
                f"input {number} of {self.operator.label} is not connected to its output {self.number}: "
                "declare the connection when the operator is built"
            ) from None
        if path is None:
            return time
        result = path(time)
        if result is None:
            raise NoTimeFollows(f"no time of output {self.number} of {self.operator.label} follows from {time!r}")
        return result

    def count(self, time: Time, diff: int) -> None:
        """Notes that this worker holds one capability more, or less."""
        dataflow = self.operator.dataflow
        if self.index < 0:
            self._early.append((time, diff))
        else:
            dataflow.outbox.pending.update((self.index, time), diff)
        held = self.held.get(time, 0) + diff
        if held:
            self.held[time] = held
        else:
            del self.held[time]
        if not dataflow.stirred:
            dataflow.stir()

    def move(self, before: Time, after: Time) -> None:
        """Notes that a capability that this worker holds has moved from one time to another."""
        if self.index < 0:
            self.count(after, +1)
            self.count(before, -1)
            return
        dataflow, index, held = self.operator.dataflow, self.index, self.held
        counts = dataflow.outbox.pending.counts
        for time, diff in (((index, after), 1), ((index, before), -1)):
            count = counts.get(time, 0) + diff
            if count:
                counts[time] = count
            else:
                del counts[time]
        held[after] = held.get(after, 0) + 1
        if held[before] == 1:
            del held[before]
        else:
            held[before] -= 1
        if not dataflow.stirred:
            dataflow.stir()

    def revoke_all(self) -> None:
        """Ends every capability of this output on this worker (an input that closes)."""
        self.revoked = True
        for time, held in tuple(self.held.items()):
            for _ in range(held):
                self.count(time, -1)

    def start(self) -> Capability:
        """The capability with which this output starts, at the minimum (already counted, on all workers)."""
        return self.adopt(self.domain.minimum)

    def adopt(self, time: Time) -> Capability:
        """A capability that everybody has counted already."""
        self.held[time] = self.held.get(time, 0) + 1
        return Capability(self, time)

    def start_closed(self) -> Capability:
        """A capability that has been dropped: for a worker that joins when nobody has one here any more."""
        closed = Capability(self, self.domain.minimum)
        closed.forfeit()
        return closed

    def part_with(self, time: Time) -> None:
        """A capability that was at `time` is another worker's from now on; counts stay as they are."""
        held = self.held[time] - 1
        if held:
            self.held[time] = held
        else:
            del self.held[time]
