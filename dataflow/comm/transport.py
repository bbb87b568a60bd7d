"""The interface between a worker and the way to its peers. One conformance suite runs on all implementations.

`InProcess`, here, joins workers of one trio loop; `dataflow.comm.linked` those of different processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dataflow.comm.messages import AnyMessage

if TYPE_CHECKING:
    from dataflow.run.pump import Pump


class Transport(Protocol):
    """Carries messages between workers.

    Messages from one worker to another arrive once each and in order, with one exception: what is `broadcast` may
    overtake what is sent to one. (The simulation of `dataflow.testing` lets data overtake, so nothing relies on more
    than order among the rest.) `send` does not wait, and never calls into the receiving worker directly; what was sent
    may stay here until `flush`.
    """

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to worker `to`."""

    def broadcast(self, others: Sequence[int], message: AnyMessage) -> None:
        """Sends a message to all others."""

    def reaches(self, worker: int) -> bool:
        """Whether something can be sent to a worker that joins."""

    def part_from(self, worker: int) -> None:
        """A worker has left."""

    def flush(self) -> bool:
        """Lets go of everything that was sent; whether there was anything that had been kept."""

    def collect(self) -> bool:
        """Hands over what has arrived already, without a turn; whether there was anything."""

    def linger(self) -> bool:
        """Looks for messages for a moment, if they may be worth it; whether some were received."""

    def stay_awake(self) -> None:
        """This worker looks for messages by itself until `may_sleep`."""

    def may_sleep(self, interest: int) -> bool:
        """This worker is to be woken when something arrives, but of progress only if a frontier of interest moves (see
        `dataflow.run.interest`). False if something has arrived already: then it is to `collect` it."""

    def concluded(self) -> None:
        """All that was collected has been applied, and those were woken to whom that is of interest."""

    def wake_watchers(self, moved: int) -> None:
        """Wakes those to whom it is of interest that these frontiers have moved."""


class InProcess:
    """Workers of one trio loop: a message is put into the receiver's mailbox as it is, without copying."""

    def __init__(self, pumps: Sequence[Pump]) -> None:
        self._pumps = pumps

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to worker `to`."""
        self._pumps[to].post(message)

    def broadcast(self, others: Sequence[int], message: AnyMessage) -> None:
        """Sends a message to all others."""
        for to in others:
            self._pumps[to].post(message)

    def reaches(self, worker: int) -> bool:
        """Whether it has started."""
        return worker < len(self._pumps)

    def part_from(self, worker: int) -> None:
        """It has left, and nobody minds."""

    def flush(self) -> bool:
        """Nothing is kept."""
        return False

    def collect(self) -> bool:
        """What has arrived is in the mailbox."""
        return False

    def linger(self) -> bool:
        """There is nothing to look for: whoever sends is in this loop."""
        return False

    def stay_awake(self) -> None:
        """Whoever sends wakes the receiver."""

    def may_sleep(self, interest: int) -> bool:
        """Whoever sends wakes the receiver."""
        return True

    def concluded(self) -> None:
        """Whoever sends wakes the receiver."""

    def wake_watchers(self, moved: int) -> None:
        """Whoever sends wakes the receiver."""
