"""Streams of NATS JetStream, each record once."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from dataflow.channels.pact import Batch
from dataflow.clients.extras import require_extra
from dataflow.clients.nats import Nats, Pull
from dataflow.clients.payloads import Encode, Payloads, records_of
from dataflow.operators.sinks import Place, Sink, SinkUnavailable, Writer
from dataflow.sinks.queues import Message, QueueWriter, Shipment
from dataflow.sinks.shape import require_text
from dataflow.values import Record

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from nats.aio.msg import Msg
    from nats.js.api import PubAck

R = TypeVar("R")
_ID = "Nats-Msg-Id"
_AT_ONCE = 500  # messages that are on their way before answers are waited for


class _NatsSink(Sink):
    """Each worker sends what it has."""

    def __init__(
        self,
        servers: str,
        stream: str,
        subject: str | Callable[[Record], str],
        encode: Encode | None,
        settings: Mapping[str, object],
    ) -> None:
        self.servers = servers
        self.stream = stream
        self.subject = subject
        self.encode = encode
        self.settings = dict(settings)

    def __repr__(self) -> str:
        return f"<nats stream {self.stream}>"

    def open(self, place: Place) -> Writer:
        """A writer; it connects when there is something to do."""
        return _NatsWriter(self, place)


class _NatsWriter(QueueWriter):
    """Messages have names, and the server takes none twice as long as it remembers them: two minutes unless the stream
    says otherwise. After a longer pause, what the server has since the shipment was made is read, and not sent
    again."""

    def __init__(self, sink: _NatsSink, place: Place) -> None:
        super().__init__(place)
        self._sink = sink
        self._payloads = Payloads(repr(sink), sink.encode)
        self._nats: Nats | None = None
        self._marked: dict[int, float] = {}  # by the mark, until when the server is sure to remember what comes since

    def close(self) -> None:
        if self._nats is not None:
            self._nats.close()

    def encode(self, batch: Batch) -> list[Message]:
        subject = self._sink.subject
        return [
            [subject if isinstance(subject, str) else subject(record), self._payloads.one(record)]
            for record in records_of(batch)
        ]

    async def _ask(self, make: Callable[[Nats], Coroutine[object, object, R]]) -> R:
        from nats.errors import Error

        if self._nats is None:
            self._nats = Nats(self._sink.servers, self._sink.settings)
        try:
            return await self._nats.loop.run(make(self._nats))
        except (Error, OSError) as error:
            raise SinkUnavailable(f"{self._sink!r} cannot be written: {error}") from None

    async def mark(self) -> int:
        return await self._ask(self._last)

    async def _last(self, nats: Nats) -> int:
        info = await (await nats.jetstream()).stream_info(self._sink.stream)
        self._marked = {info.state.last_seq: clock.monotonic() + (info.config.duplicate_window or 0.0) / 2}
        return info.state.last_seq

    async def send(self, shipments: list[Shipment]) -> None:
        await self._ask(lambda nats: self._send(nats, shipments))

    async def _send(self, nats: Nats, shipments: list[Shipment]) -> None:
        from asyncio import Future, gather

        there = await self._there(nats, shipments)
        jetstream = await nats.jetstream()
        answers: list[Future[PubAck]] = []
        for shipment in shipments:
            for place, message in enumerate(shipment.messages):
                name = shipment.name(place)
                if name in there:
                    continue
                assert isinstance(message, list | tuple)
                subject, data = message
                answers.append(
                    await jetstream.publish_async(subject, data, stream=self._sink.stream, headers={_ID: name})
                )
                if len(answers) == _AT_ONCE:
                    await gather(*answers)
                    answers.clear()
        await gather(*answers)

    async def _there(self, nats: Nats, shipments: list[Shipment]) -> set[str]:
        """The names of messages that the server has already: shipments may have been sent long ago, by others. (Those
        that this writer has just made the server remembers.)"""
        now = clock.monotonic()
        foreign = [
            shipment
            for shipment in shipments
            if shipment.writer != self.writer or now > self._marked.get(shipment.since, 0.0)
        ]
        if not foreign:
            return set()
        pull = Pull(nats, self._sink.stream, None, min(shipment.since for shipment in foreign))
        await pull.open()
        names: set[str] = set()
        while not await pull.exhausted():
            names.update(await pull.take(1000, 1.0, _name_of))
        return names


def _name_of(message: Msg) -> str:
    return (message.headers or {}).get(_ID, "")


def nats(
    servers: str,
    stream: str,
    subject: str | Callable[[Record], str],
    *,
    encode: Encode | None = None,
    settings: Mapping[str, object] | None = None,
) -> Sink:
    """Sends each record to a stream of NATS JetStream, once: when a snapshot that has it is durable, and at the end;
    without recovery, when its time is complete.

    `subject`: where to, or a function of a record. `encode` makes a message's data (JSON unless you say). The stream
    must be there. `settings` are those of `nats.connect`.
    """
    require_extra("nats", "nats", "sinks.nats")
    require_text("sinks.nats", "the name of a stream", stream)
    if not callable(subject):
        require_text("sinks.nats", "a subject", subject)
    return _NatsSink(servers, stream, subject, encode, settings or {})
