"""WebSockets: records are sent to a server, at least once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dataflow.channels.pact import Batch, Pact, ToWorker
from dataflow.clients.extras import require_extra
from dataflow.clients.payloads import as_json, records_of
from dataflow.clients.websockets import BlockingWebSocket, Message, WebSocketAddress
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import AtLeastOnce, Place, SinkError, SinkUnavailable, Writer
from dataflow.time.order import Time
from dataflow.values import Record


class _WebSocket(AtLeastOnce):
    """One worker sends, so that messages come in the order of times."""

    def __init__(self, address: WebSocketAddress, encode: Callable[[Record], Message]) -> None:
        self.address = address
        self.encode = encode

    def __repr__(self) -> str:
        return f"<WebSocket to {self.address.title}>"

    def route(self) -> Pact:
        """Everything goes to worker 0."""
        return ToWorker(0)

    def open(self, place: Place) -> Writer:
        """A writer; it connects when there is something to send."""
        return _WebSocketWriter(self, place)


class _WebSocketWriter(Writer):
    """Sends at once. A connection that was lost is made again, once for each batch, and the batch sent again."""

    def __init__(self, sink: _WebSocket, place: Place) -> None:
        self._sink = sink
        self._place = place
        self._connection: BlockingWebSocket | None = None

    async def write(self, time: Time, batch: Batch) -> None:
        messages = [self._message(record) for record in records_of(batch)]
        await self._place.away(lambda: self._send(messages))

    def _message(self, record: Record) -> Message:
        try:
            return self._sink.encode(record)
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self._sink!r}: {record!r:.200} cannot be encoded: {error}") from error

    def _send(self, messages: list[Message]) -> None:
        if self._connection is not None:
            try:
                return self._connection.send(messages)
            except OSError:  # it may have waited for hours; a new one is made
                self.close()
        try:
            self._connection = BlockingWebSocket(self._sink.address)
            self._connection.send(messages)
        except OSError as error:
            raise SinkUnavailable(f"{self._sink!r} cannot be written: {error}") from None

    async def prepare(self, time: Time) -> object:
        return None

    async def commit(self, token: object) -> None:
        """Nothing waits."""

    async def recover(self, tokens: Sequence[object]) -> None:
        """Nothing was prepared."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def websocket(
    url: str, *, encode: Callable[[Record], Message] | None = None, headers: Mapping[str, str] | None = None
) -> AtLeastOnce:
    """Sends each record over a WebSocket as soon as its time is complete, in the order of times, from one worker: at
    least once. After a crash, what came since the last snapshot is sent again; and what was sent into a connection
    that was just being lost may not have arrived: the protocol does not say.

    `encode` makes a message, text or bytes, of a record (JSON unless you say).
    """
    require_extra("wsproto", "websocket", "sinks.websocket")
    try:
        address = WebSocketAddress(url, headers or {})
    except ValueError as error:
        raise ConstructionError(f"sinks.websocket: {error}") from None
    return _WebSocket(address, as_json if encode is None else encode)
