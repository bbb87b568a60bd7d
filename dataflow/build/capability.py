"""Capabilities: the right to send at a time, made and ended visibly.

A capability belongs to one output of one operator on one worker. It is an ordinary value: it can be kept, cloned,
delayed (a new one, later), downgraded (this one, later) and dropped. While it exists, no frontier downstream passes
its time. It never ends by itself: progress must not wait for the garbage collector.

    with capability.delayed(close) as later: ...        # dropped at the end of the block
    notificator.notify_at(capability)                   # or given to somebody who will drop it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from dataflow.errors import CapabilityError
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort, OutputPort


class Capability:
    """The right to send on `output` at `time` or later, until it is dropped. Each operation costs O(1)."""

    __slots__ = ("_live", "_output", "_time")

    def __init__(self, output: OutputPort, time: Time) -> None:
        """For the engine only: whoever calls this has counted the capability."""
        self._output = output
        self._time = time
        self._live = True

    @property
    def time(self) -> Time:
        """The time from which it allows sending."""
        return self._time

    @property
    def live(self) -> bool:
        """Whether it has not been dropped (nor its input closed)."""
        return self._live and not self._output.revoked

    def time_at(self, output: OutputPort) -> Time:
        """The time from which it allows sending on `output`; CapabilityError if it does not."""
        if not self._live or self._output.revoked:
            self._require_live()
        if output is not self._output:
            raise CapabilityError(
                f"this capability is for output {self._output.number} of {self._output.operator.label}, "
                f"not for output {output.number} of {output.operator.label}"
            )
        return self._time

    def delayed(self, time: Time) -> Capability:
        """A new capability at a later (or the same) time; this one stays."""
        time = self._later(time, "delay")
        self._output.count(time, +1)
        return Capability(self._output, time)

    def clone(self) -> Capability:
        """A second capability for the same time."""
        return self.delayed(self._time)

    def downgrade(self, time: Time) -> None:
        """Moves this capability to a later time, giving up what was before."""
        self.downgrade_checked(self._later(time, "downgrade"))

    def downgrade_checked(self, time: Time) -> None:
        """The same, for the engine, which has checked that the time is one of the output's, and not earlier."""
        if time != self._time:
            if not self._live or self._output.revoked:
                self._require_live()
            self._output.move(self._time, time)
            self._time = time

    def drop(self) -> None:
        """Gives it up. Dropping twice is an error, since it means that somebody counts on a right they do not have."""
        self._require_live()
        self._live = False
        self._output.count(self._time, -1)

    def release(self) -> None:
        """Drops it, unless that has been done."""
        if self.live:
            self.drop()

    def forfeit(self) -> None:
        """Ends it without a count: it is another worker's now, or has never been there. For the engine only."""
        self._live = False

    def _later(self, time: Time, verb: str) -> Time:
        self._require_live()
        time = self._output.domain.check(time)
        if not self._output.domain.less_equal(self._time, time):
            raise CapabilityError(
                f"cannot {verb} the capability of {self._output.operator.label} from {self._time!r} to {time!r}, "
                "which is not later"
            )
        return time

    def _require_live(self) -> None:
        if not self.live:
            ended = "its input was closed" if self._output.revoked else "it was dropped"
            raise CapabilityError(
                f"a capability of {self._output.operator.label} at {self._time!r} was used after {ended}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<capability of {self._output.operator.label} at {self._time!r}{'' if self.live else ', dropped'}>"


class MessageCapability:
    """The right that comes with a message, good only while that message is the one being taken.

    One object per input port, used again for each message: to keep the right for longer, `retain` it.
    """

    __slots__ = ("_port", "live", "time")

    def __init__(self, port: InputPort) -> None:
        self._port = port
        self.time: Time = None
        self.live = False

    def time_at(self, output: OutputPort) -> Time:
        """The time from which the message allows sending on `output`; CapabilityError if it does not."""
        if not self.live:
            raise CapabilityError(
                f"the capability of a message to {self._port.operator.label} was used after the message was done with: "
                "retain() it to send later"
            )
        if output.operator is not self._port.operator:
            raise CapabilityError(f"a message to {self._port.operator.label} gives no right to {output.operator.label}")
        if self._port.number in output.unchanged:  # nearly always
            return self.time
        return output.time_from(self._port.number, self.time)

    def retain(self, output: int = 0) -> Capability:
        """A capability at the message's time (as the output sees it), to be dropped when it is no longer needed."""
        port = self._port.operator.outputs[output]
        time = self.time_at(port)
        port.count(time, +1)
        return Capability(port, time)

    def delayed(self, time: Time, output: int = 0) -> Capability:
        """A capability at a later time."""
        port = self._port.operator.outputs[output]
        time = port.domain.check(time)
        if not port.domain.less_equal(self.time_at(port), time):
            raise CapabilityError(
                f"a message at {self.time!r} to {self._port.operator.label} gives no right to send at {time!r}, "
                "which is not later"
            )
        port.count(time, +1)
        return Capability(port, time)

    def __repr__(self) -> str:
        return f"<message to {self._port.operator.label} at {self.time!r}{'' if self.live else ', done with'}>"
