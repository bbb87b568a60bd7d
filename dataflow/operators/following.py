"""A stream that the run itself advances, with the inputs and sources of its worker: no program has to.

`scope.control()` is one: updates of configurations come on it. With recovery, cuts come on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.crossings import SentAhead
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.build.stream import Stream
from dataflow.channels.ports import OutputPort
from dataflow.errors import ConstructionError, InputClosed, TimeError
from dataflow.progress.graph import Source
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from dataflow.build.scope import Scope

D = TypeVar("D")


def control(scope: Scope, lead: int, name: str) -> ControlStream[Record]:
    """The control stream of a dataflow: see `Scope.control`."""
    follower: Follower[Record] = Follower(scope, name, lead, Keeps.SHARE)
    ahead: SentAhead[list[Record]] | None = None
    if scope.dataflow.recovers:
        ahead = SentAhead(name, scope.dataflow, lambda: None, lambda at, updates: follower.send(updates, at))
    stream = ControlStream(follower, ahead)
    scope.dataflow.hooks.feeds[stream.source] = stream
    return stream


class ControlStream(Stream[D]):
    """A configuration stream that the run itself advances: any worker may send on it, at any time."""

    def __init__(self, follower: Follower[D], ahead: SentAhead[list[D]] | None) -> None:
        super().__init__(follower.stream.scope, follower.stream.source)
        self._follower = follower
        self._ahead = ahead

    @property
    def time(self) -> Time:
        """The least time at which an update sent now takes effect."""
        return self._follower.time

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent from this worker any more: its inputs have ended."""
        return self._follower.closed

    def send(self, updates: Iterable[D], at: Time = None) -> None:
        """Sends updates that take effect as soon as they can, or at a later time."""
        time, records = self.time if at is None else at, list(updates)
        self._follower.send(records, time)
        if self._ahead is not None:
            self._ahead.sent(-1, time, records)  # no program sends them again after a recovery

    def advance_to(self, time: Time) -> None:
        """Does nothing: the run advances it. For those who steer inputs as well."""


class Following(Protocol):
    """Whatever moves with the entries of its worker."""

    def begin(self) -> None:
        """The graph is complete."""

    def follow(self) -> None:
        """Moves on to where the worker's entries are."""


class Follower(Generic[D]):
    """Sends on a stream whose time follows that of the worker's entries: inputs, sources, replays.

    Its capability moves in the same progress batch as theirs (`Dataflow.flush` calls `follow`), so whoever waits for
    both waits no longer than for theirs alone. A worker whose entries have all ended closes it; the leader, worker 0,
    then follows what it sees of the entries of all workers, so that somebody can send until the end.

    `lead`: it is kept so much ahead. Costs O(entries) for each batch of progress.
    """

    def __init__(self, scope: Scope, name: str, lead: int = 0, keeps: Keeps = Keeps.NOTHING) -> None:
        if scope.parent is not None:
            raise ConstructionError(f"{name} must be in the root of its dataflow: make it there and enter() the scope")
        if not scope.domain.total:
            raise ConstructionError(f"{name} follows inputs, whose times must be totally ordered")
        self._dataflow = scope.dataflow
        self._name = name
        self._lead = lead
        self._leads = scope.worker == 0
        builder = OperatorBuilder(scope, name)
        builder.add_output(initial=True, entry=False)
        (self.stream,) = builder.build(self._start, keeps=keeps)
        self._dataflow.followers.append(self)

    stream: Stream[D]

    def _start(self, context: Context) -> Step:
        self._output: OutputPort[D] = context.outputs[0]
        self._capability: Capability = context.capability()
        context.follow()
        return lambda: None

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent here."""
        return not self._capability.live

    @property
    def time(self) -> Time:
        """The least time at which something can be sent."""
        return self._capability.time

    def send(self, records: Sequence[D], at: Time = None) -> None:
        """Sends records at this time, or at a later one."""
        self._dataflow.require_alive()
        if self.closed:
            raise InputClosed(f"{self._name}: the inputs of this worker have ended, and with them what it can send")
        if at is not None and not self._output.domain.less_equal(self.time, self._output.domain.check(at)):
            raise TimeError(f"{self._name} is at {self.time!r} already: nothing can be sent at {at!r} any more")
        self._output.give(self._capability, list(records), at)

    def begin(self) -> None:
        """The graph is complete: from now on a leader sees others' entries."""
        if self._leads:
            for port in self._entries:
                self._dataflow.watch(Source(port.operator.number, port.number), self.follow)
        self.follow()

    def follow(self) -> None:
        """Moves on to where the worker's entries are."""
        if self.closed:
            return
        least = min((min(port.held) for port in self._entries if port.held), default=None)
        if least is None and self._leads:
            tracker = self._dataflow.tracker
            least = min((min(seen) for port in self._entries if (seen := tracker.frontier(port.index))), default=None)
        if least is None:
            self._capability.drop()
        elif self._lead + least > self.time:
            self._capability.downgrade(least + self._lead)

    @property
    def _entries(self) -> list[OutputPort]:
        return self._dataflow.entries
