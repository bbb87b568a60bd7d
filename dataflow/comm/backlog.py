"""Messages for dataflows that main has not built yet: kept until it does, up to a limit for each peer. Pure."""

from __future__ import annotations

from dataflow.columns import Columns
from dataflow.comm.flow import ROW
from dataflow.comm.messages import Data, Hello, Message, Progress
from dataflow.errors import ProtocolError

_LEAST = 1 << 28  # bytes: workers do not start at the same moment, and whoever is early may have much to send
_MESSAGE = 256  # what any message takes


class Backlog:
    """By the number of their dataflow, what other workers have said about it. O(1) for each message."""

    def __init__(self, limit: int) -> None:
        """`limit`: how much may be on its way from a worker (see flow). Four times as much is kept for each sender."""
        self._most = max(4 * limit, _LEAST)
        self._messages: dict[int, list[Message]] = {}
        self._weights: dict[int, int] = {}  # by sender

    def hold(self, message: Message, me: int) -> None:
        """Keeps a message; ProtocolError if its sender has too much here already."""
        sender = message.sender
        weight = self._weights.get(sender, 0) + _weigh(message)
        if weight > self._most:
            raise ProtocolError(
                f"worker {sender} has sent {weight:,} bytes for dataflow {message.dataflow} and others that worker "
                f"{me} has not built, and no more than {self._most:,} are kept: build all dataflows before main "
                "waits for anything, and let a main that sends much await `handle.room()`"
            )
        self._weights[sender] = weight
        self._messages.setdefault(message.dataflow, []).append(message)

    def release(self, number: int) -> list[Message]:
        """What was kept for a dataflow, which main has built now."""
        messages = self._messages.pop(number, [])
        for message in messages:
            self._weights[message.sender] -= _weigh(message)
        return messages

    @property
    def senders(self) -> dict[int, list[int]]:
        """By number of dataflow, who has said something about it."""
        return {number: sorted({message.sender for message in kept}) for number, kept in self._messages.items()}


def _weigh(message: Message) -> int:
    """About the memory that a message takes: what it was on the wire, and an object for each row."""
    if isinstance(message, Data):
        rows = 0 if isinstance(message.batch, Columns) else len(message.batch)
        return _MESSAGE + message.received + ROW * rows
    if isinstance(message, Progress):
        return _MESSAGE + _MESSAGE * len(message.batch.changes)
    return _MESSAGE + sum(map(len, message.description)) if isinstance(message, Hello) else _MESSAGE
