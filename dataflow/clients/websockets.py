"""WebSockets by `wsproto`, which does no I/O: one conversation for trio's streams and for plain sockets."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import trio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wsproto.events import Event

Message: TypeAlias = str | bytes

PATIENCE = 30.0  # seconds for the other side to answer


class WebSocketError(OSError):
    """A connection that cannot be made, or was ended."""


class WebSocketAddress:
    """Where a WebSocket is. ValueError if the address cannot be one."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname:
            raise ValueError(f"the address of a WebSocket is such as ws://host:port/path or wss://..., not {url!r}")
        self.host = parts.hostname
        self.secure = parts.scheme == "wss"
        self.port = parts.port or (443 if self.secure else 80)
        self.name = parts.netloc.rpartition("@")[2]
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.title = f"{parts.scheme}://{self.name}{parts.path}"  # a query may have a secret


class WebSocketConversation:
    """One end of a WebSocket, the one that began it. Pure: bytes in, messages and bytes out."""

    def __init__(self, address: WebSocketAddress) -> None:
        from wsproto import ConnectionType, WSConnection
        from wsproto.events import Request

        self._title = address.title
        self._connection = WSConnection(ConnectionType.CLIENT)
        request = Request(host=address.name, target=address.target, extra_headers=address.headers)
        self.outgoing = self._connection.send(request)
        self.accepted = False
        self.ended = False
        self._parts: list[Message] = []  # of a message that has not ended

    def hear(self, data: bytes) -> list[Message]:
        """The messages that end in these bytes (none: the connection has ended). What must be answered is put into
        `outgoing`."""
        self._connection.receive_data(data or None)
        messages = []
        for event in self._connection.events():
            messages += self._message(event)
        return messages

    def _message(self, event: Event) -> list[Message]:
        from wsproto import events

        if isinstance(event, events.AcceptConnection):
            self.accepted = True
        elif isinstance(event, events.RejectConnection):
            raise WebSocketError(f"{self._title} refuses WebSockets, with status {event.status_code}")
        elif isinstance(event, events.Ping):
            self.outgoing += self._connection.send(event.response())
        elif isinstance(event, events.CloseConnection):
            self.ended = True
            if self._connection.state.name == "REMOTE_CLOSING":
                self.outgoing += self._connection.send(event.response())
        elif isinstance(event, events.TextMessage | events.BytesMessage):
            self._parts.append(event.data if isinstance(event, events.TextMessage) else bytes(event.data))
            if event.message_finished:
                whole = _joined(self._parts)
                self._parts = []
                return [whole]
        return []

    def say(self, message: Message) -> None:
        """Puts a message into `outgoing`."""
        from wsproto import events

        event = events.TextMessage(data=message) if isinstance(message, str) else events.BytesMessage(data=message)
        self.outgoing += self._connection.send(event)

    def take(self) -> bytes:
        """What is to be sent, once."""
        outgoing, self.outgoing = self.outgoing, b""
        return outgoing


def _joined(parts: list[Message]) -> Message:
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else b"".join(part for part in parts if isinstance(part, bytes))


class TrioWebSocket:
    """A WebSocket in trio."""

    def __init__(self, stream: trio.abc.Stream, conversation: WebSocketConversation) -> None:
        self._stream = stream
        self._conversation = conversation
        self._early: list[Message] = []  # that came with the first answer

    @staticmethod
    async def connect(address: WebSocketAddress) -> TrioWebSocket:
        """A connection. WebSocketError if it cannot be made."""
        try:
            with trio.fail_after(PATIENCE):
                stream: trio.abc.Stream = await trio.open_tcp_stream(address.host, address.port)
                if address.secure:
                    context = ssl.create_default_context()
                    stream = trio.SSLStream(stream, context, server_hostname=address.host, https_compatible=True)
                opened = TrioWebSocket(stream, WebSocketConversation(address))
                while not opened._conversation.accepted:
                    opened._early += await opened._more()
                return opened
        except (OSError, trio.TooSlowError, trio.BrokenResourceError) as error:
            raise WebSocketError(f"{address.title} cannot be reached: {error}") from None

    async def receive(self) -> list[Message]:
        """The next messages. WebSocketError when the connection has ended."""
        while not self._early:
            if self._conversation.ended:
                raise WebSocketError("the other side has ended the connection")
            self._early = await self._more()
        messages, self._early = self._early, []
        return messages

    async def _more(self) -> list[Message]:
        from wsproto.utilities import RemoteProtocolError

        try:
            await self._stream.send_all(self._conversation.take())
            data = await self._stream.receive_some(1 << 16)
            messages = self._conversation.hear(bytes(data))
            await self._stream.send_all(self._conversation.take())
        except (trio.BrokenResourceError, RemoteProtocolError) as error:
            raise WebSocketError(f"the connection was lost: {error}") from None
        if not data:
            self._conversation.ended = True
        return messages

    async def send(self, message: Message) -> None:
        """Sends a message."""
        self._conversation.say(message)
        await self._stream.send_all(self._conversation.take())

    async def close(self) -> None:
        """Ends the connection, without a word: what was under way is lost either way."""
        await trio.aclose_forcefully(self._stream)


class BlockingWebSocket:
    """A WebSocket in a thread that may wait."""

    def __init__(self, address: WebSocketAddress) -> None:
        self._conversation = WebSocketConversation(address)
        raw = socket.create_connection((address.host, address.port), timeout=PATIENCE)
        context = ssl.create_default_context() if address.secure else None
        self._socket = raw if context is None else context.wrap_socket(raw, server_hostname=address.host)
        try:
            while not self._conversation.accepted:
                self._socket.sendall(self._conversation.take())
                if not (data := self._socket.recv(1 << 16)):
                    raise WebSocketError(f"{address.title} has ended the connection")
                self._conversation.hear(data)
        except BaseException:
            self._socket.close()
            raise

    def send(self, messages: list[Message]) -> None:
        """Sends messages, and answers what the other side asks for meanwhile."""
        for message in messages:
            self._conversation.say(message)
        self._socket.sendall(self._conversation.take())
        self._socket.setblocking(False)
        try:
            while not self._conversation.ended:
                data = self._socket.recv(1 << 16)
                self._conversation.hear(data)
                if not data:
                    self._conversation.ended = True
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        finally:
            self._socket.settimeout(PATIENCE)
        self._socket.sendall(self._conversation.take())
        if self._conversation.ended:
            raise WebSocketError("the other side has ended the connection")

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()
