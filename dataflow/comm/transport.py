"""The interface between a worker and the way to its peers, and the simplest such way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dataflow.comm.messages import Finished, Message

if TYPE_CHECKING:
    from dataflow.worker import Worker


class Transport(Protocol):
    """Carries messages between workers.

    Messages from one worker to another arrive once each; Hello, Progress, Dropped and Finished in the order in which
    they were sent. Data may overtake and be overtaken. `send` does not wait, and never calls into the receiving
    worker directly: it leaves the message where that worker will look, and wakes it.
    """

    def send(self, to: int, message: Message | Finished) -> None:
        """Sends a message to worker `to`."""


class InProcess:
    """Workers of one trio loop: a message is put into the receiver's mailbox as it is, without copying."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers

    def send(self, to: int, message: Message | Finished) -> None:
        """Sends a message to worker `to`."""
        self._workers[to].post(message)
