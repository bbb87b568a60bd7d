"""WebSockets. An address is a partition, and there are no positions: see `journaled`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar, overload

import trio

from dataflow.clients.extras import names_of, require_extra
from dataflow.clients.websockets import PATIENCE, Message, TrioWebSocket, WebSocketAddress, WebSocketError
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError

D = TypeVar("D")

_RETRY = 1.0  # seconds until a connection that was lost is made again


class _WebSocket(Partitions[D]):
    resumable = False

    def __init__(
        self,
        urls: Sequence[str],
        send: Sequence[Message],
        headers: Mapping[str, str],
        again: bool,
        decode: Callable[[Message], D],
    ) -> None:
        self._urls = list(urls)
        self._send = list(send)
        self._headers = dict(headers)
        self.follow = self._again = again
        self._decode = decode

    def __repr__(self) -> str:
        return f"<WebSocket {', '.join(WebSocketAddress(url, {}).title for url in self._urls)}>"

    async def partitions(self) -> list[str]:
        """The addresses."""
        return self._urls

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """What is sent from now on. Positions are numbers of messages, which nobody can go back to."""
        number = 0
        heard = trio.current_time()
        while True:
            connection: TrioWebSocket | None = None
            try:
                connection = await TrioWebSocket.connect(WebSocketAddress(partition, self._headers))
                for message in self._send:
                    await connection.send(message)
                while True:
                    messages = await connection.receive()
                    number += len(messages)
                    yield number, None, [self._decode(message) for message in messages]
                    heard = trio.current_time()
            except WebSocketError as error:
                if connection is not None:
                    heard = trio.current_time()
                    if not self._again:
                        return
                elif trio.current_time() - heard > PATIENCE:
                    raise SourceError(f"{self!r} cannot be read: {error}") from None
            finally:
                if connection is not None:
                    await connection.close()
            await trio.sleep(_RETRY)


def _as_it_is(message: Message) -> Message:
    return message


@overload
def websocket(
    urls: str | Sequence[str],
    *,
    send: Sequence[Message] = ...,
    headers: Mapping[str, str] | None = ...,
    again: bool = ...,
) -> Partitions[Message]: ...


@overload
def websocket(
    urls: str | Sequence[str],
    *,
    decode: Callable[[Message], D],
    send: Sequence[Message] = ...,
    headers: Mapping[str, str] | None = ...,
    again: bool = ...,
) -> Partitions[D]: ...


def websocket(
    urls: str | Sequence[str],
    *,
    decode: Callable[[Message], D] | None = None,
    send: Sequence[Message] = (),
    headers: Mapping[str, str] | None = None,
    again: bool = True,
) -> Partitions[D] | Partitions[Message]:
    """The messages that one or several servers send over WebSockets, text or bytes; `decode` makes a record of each.

    `send`: what is said first on each connection, to subscribe to something. A connection that is lost is made again,
    unless `again` is False: then the end of a connection is the end of it. What a server sends while nobody listens is
    lost: the protocol has no way to ask for it. What has come can be kept from being lost: see `journaled`.
    """
    require_extra("wsproto", "websocket", "sources.websocket")
    addresses = names_of("sources.websocket", "addresses", urls)
    for url in addresses:
        try:
            WebSocketAddress(url, headers or {})
        except ValueError as error:
            raise ConstructionError(f"sources.websocket: {error}") from None
    if decode is None:
        return _WebSocket(addresses, send, headers or {}, again, _as_it_is)
    return _WebSocket(addresses, send, headers or {}, again, decode)
