"""Sinks to servers that take messages one way and keep no staged ones: what these share.

Encoded messages wait in memory, and in the snapshot: a *shipment* is what one writer sends for one snapshot. To commit
is to send the shipments that the server does not have yet. How that is found out is what servers differ in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import uuid4

from dataflow.channels.pact import Batch
from dataflow.operators.sinks import Place, SinkError, Writer
from dataflow.time.order import Time

Message: TypeAlias = object
"""What a sink sends for a record: plain data, as it is in the token."""


@dataclass(frozen=True)
class Shipment:
    """Messages of one writer, for one snapshot."""

    writer: str  # whose name begins with its incarnation
    number: int  # among its writer's shipments
    since: int  # what the server said of itself when the shipment was made: nothing of it was sent before
    messages: tuple[Message, ...]

    @property
    def incarnation(self) -> int:
        """Of the run that made it."""
        return int(self.writer.partition("-")[0])

    def name(self, place: int) -> str:
        """A name for one of its messages that no other message has."""
        return f"{self.writer}-{self.number}-{place}"

    @staticmethod
    def several(token: object) -> list[Shipment]:
        """What a token for snapshots stands for."""
        if not isinstance(token, list):
            raise SinkError(f"{token!r} is no token of a queue")
        return [
            Shipment(str(writer), int(number), int(since), tuple(messages)) for writer, number, since, messages in token
        ]


class QueueWriter(Writer):
    """Collects messages, and sends them when their snapshot is durable."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.writer = f"{place.incarnation}-{uuid4().hex[:12]}-{place.worker}"
        self._number = 0
        self._sent = -1  # the last of its own shipments that was sent
        self._messages: list[Message] = []  # of the next shipment
        self._prepared: list[Shipment] = []  # and not committed

    async def write(self, time: Time, batch: Batch) -> None:
        self._messages += self.encode(batch)

    async def prepare(self, time: Time) -> object:
        if self._messages:
            since = await self.mark()
            self._prepared.append(Shipment(self.writer, self._number, since, tuple(self._messages)))
            self._number += 1
            self._messages = []
        return [[each.writer, each.number, each.since, list(each.messages)] for each in self._prepared] or None

    async def commit(self, token: object) -> None:
        shipments = [each for each in Shipment.several(token) if each.writer != self.writer or each.number > self._sent]
        if shipments:
            await self.send(shipments)
        self._sent = max([self._sent, *(each.number for each in shipments if each.writer == self.writer)])
        self._prepared = [each for each in self._prepared if each.number > self._sent]

    async def recover(self, tokens: Sequence[object]) -> None:
        shipments = [shipment for token in tokens for shipment in Shipment.several(token)]
        if shipments:
            await self.send(shipments)
        await self.fence()

    # What servers differ in

    @abstractmethod
    def encode(self, batch: Batch) -> list[Message]:
        """A batch as messages."""

    async def mark(self) -> int:
        """Where the server is now, if that helps to find out later what it has."""
        return 0

    @abstractmethod
    async def send(self, shipments: list[Shipment]) -> None:
        """Sends what the server does not have yet, in order. Somebody else may be sending the same at the same time."""

    async def fence(self) -> None:
        """From now on, shipments of earlier incarnations are sent by nobody: what counts of them is there."""
