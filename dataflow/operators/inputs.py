"""Inputs: records from main. An input is an operator without inputs of its own, and a handle that holds its
capability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from dataflow.build.builder import Context, OperatorBuilder
from dataflow.build.capability import Capability
from dataflow.build.crossings import SentAhead
from dataflow.build.cuts import Keeps
from dataflow.build.operator import Step
from dataflow.channels.pact import ArrowStream, Batch
from dataflow.channels.ports import OutputPort
from dataflow.columns import Columns
from dataflow.columns.frames import as_columns
from dataflow.errors import CapabilityError, ConstructionError, InputClosed, TimeError
from dataflow.time.order import Time
from dataflow.values import Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from dataflow.build.scope import Scope
    from dataflow.build.stream import Stream

    R = TypeVar("R", default=Any)  # a handle without a parameter takes anything
else:
    from typing import TypeVar

    R = TypeVar("R")


def to_batch(records: Record) -> Batch:
    """A batch: columns from a mapping of names to arrays or from a frame; else rows, in a list of their own, so that
    whoever sent them may go on using theirs. (Arrays are not copied: leave alone what you have sent.)"""
    if type(records) is list:  # nearly always: the questions below take longer than the copy
        return records[:]
    columns = as_columns(records)
    if columns is not None:
        return columns
    if isinstance(records, str | bytes):
        raise TypeError(f"send takes a list of records, not a {type(records).__name__}: write send([record])")
    if not isinstance(records, Iterable):
        raise TypeError(f"send takes a list of records, not {records!r}: write send([record])")
    return list(records)


class _Entry:
    """What both kinds of input share: an output, and the checks before anything is sent."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._dataflow = scope.dataflow
        self._name = name
        self._closed = False
        if scope.parent is not None:
            raise ConstructionError(f"{name} must be in the root of its dataflow: make it there and enter() the scope")
        builder = OperatorBuilder(scope, name)
        builder.add_output(initial=True)
        (self.stream,) = builder.build(self._start, keeps=self._keeps)
        self._dataflow.close_inputs.append(self.close)

    _keeps = Keeps.UNKNOWN

    def _start(self, context: Context) -> Step:
        self._output: OutputPort = context.outputs[0]
        self._dataflow.fed.append(self._output)
        self._capability: Capability = context.capability()
        self._began: Time = self._capability.time if self._capability.live else None
        self._closed = not self._capability.live  # for a worker that joins when all others have closed theirs
        context.follow()
        return lambda: None

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closed

    def close(self) -> None:
        """Ends the input: no record will come any more. Closing twice does no harm."""
        if self._closed:
            return
        self._closed = True
        if self._capability.live:
            self._capability.drop()

    def _goes_on(self, time: Time) -> str:
        """What to do, if a main begins anew where it should go on."""
        if self._output.domain.less_equal(self._began, time):
            return ""
        return (
            f": this worker has joined, or goes on from a snapshot, at {self._began!r}. "
            "Let main begin to feed at worker.resume_at"
        )

    async def room(self) -> None:
        """Waits while too much data is on its way or waits to be written: for a main that would otherwise send on and
        on."""
        await self._dataflow.room()

    def _require_open(self, verb: str) -> None:
        self._dataflow.require_alive()
        if not self._dataflow.built:
            raise ConstructionError(f"{self._name}: {verb} after the `with worker.dataflow()` block, not inside it")
        if self._closed:
            raise InputClosed(f"{self._name} is closed: nothing more can be sent to it")


class InputHandle(_Entry, Generic[R]):
    """Feeds an input. Its time starts at the minimum (after a recovery, at `worker.resume_at`) and only goes forward:
    nothing is ever sent before it."""

    _keeps = Keeps.SHARE

    def __init__(self, scope: Scope, name: str) -> None:
        super().__init__(scope, name)
        self._ahead: SentAhead[Batch] | None = None
        if self._dataflow.recovers:
            self._ahead = SentAhead(name, self._dataflow, self._now, self._send_again)

    def _now(self) -> Time | None:
        return None if self._closed else self.time

    def _send_again(self, at: Time, batch: Batch) -> None:
        self._output.give(self._capability, batch, at)

    def close(self) -> None:
        """Ends the input: no record will come any more. Closing twice does no harm."""
        super().close()
        if self._ahead is not None:
            self._ahead.consider()

    @property
    def time(self) -> Time:
        """The time at which records are sent."""
        return self._capability.time

    def send(self, records: Iterable[R] | Columns | Mapping[str, object] | ArrowStream, at: Time = None) -> None:
        """Sends records at the input's time, or at any later one."""
        if self._closed or self._dataflow.dropped or not self._dataflow.built:
            self._require_open("send")
        if at is not None and not self._output.domain.less_equal(self.time, self._output.domain.check(at)):
            raise TimeError(f"{self._name} is at {self.time!r} already: nothing can be sent at {at!r} any more")
        batch = records[:] if type(records) is list else to_batch(records)
        self._output.give(self._capability, batch, at)
        if self._ahead is not None:
            self._ahead.saw(self.time if at is None else at)
            if at is not None:
                self._ahead.sent(self.time, at, batch)

    def advance_to(self, time: Time) -> None:
        """Promises that nothing will be sent before `time`. Advancing to where the input is does nothing."""
        if self._closed or self._dataflow.dropped or not self._dataflow.built:
            self._require_open("advance_to")
        domain = self._output.domain
        time = domain.check(time)
        if not domain.less_equal(self._capability.time, time):
            raise TimeError(f"{self._name} is at {self.time!r} and cannot go back to {time!r}{self._goes_on(time)}")
        self._capability.downgrade_checked(time)
        if self._ahead is not None:
            self._ahead.consider()


class UnorderedInput(_Entry, Generic[R]):
    """Feeds an input at several times at once: each `send` names a capability.

    `capability` is the first one, at the minimum. Delay, clone and drop it as you like: while any is left, its time and
    those after it may still come.
    """

    @property
    def capability(self) -> Capability:
        """The capability with which the input starts."""
        return self._capability

    def send(self, records: Iterable[R] | Columns | Mapping[str, object] | ArrowStream, capability: Capability) -> None:
        """Sends records at the capability's time."""
        self._require_open("send")
        if not isinstance(capability, Capability):
            raise CapabilityError(f"{self._name}: send(records, capability) needs a capability, not {capability!r}")
        self._output.give(capability, to_batch(records))

    def close(self) -> None:
        """Ends the input, dropping every capability that is left."""
        if not self._closed:
            super().close()
            self._output.revoke_all()


def input(scope: Scope, name: str) -> tuple[InputHandle, Stream[Record]]:
    """An input that main feeds: (handle, stream)."""
    handle: InputHandle = InputHandle(scope, name)
    scope.dataflow.hooks.feeds[handle.stream.source] = handle
    return handle, handle.stream


def unordered_input(scope: Scope, name: str) -> tuple[UnorderedInput, Stream[Record]]:
    """An input that main feeds at any time for which it holds a capability: (handle, stream)."""
    handle: UnorderedInput = UnorderedInput(scope, name)
    return handle, handle.stream
