"""Webhooks: what others send to us by HTTP. A port is a partition, and there are no positions: see `journaled`."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload
from urllib.parse import urlsplit

import trio

from dataflow.clients.background import Background
from dataflow.clients.extras import require_extra, require_number
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError

if TYPE_CHECKING:
    import h11

D = TypeVar("D")

_PATIENCE = 30.0  # seconds for a client to send a request
_WAITING = 1000  # requests that wait to be taken, before new ones are told to come later


class WebhookRecord(NamedTuple):
    """A request."""

    path: str
    query: str
    headers: Mapping[str, str]  # names are in small letters
    body: bytes


class _Gone(Exception):
    """The client has ended the connection."""


class _Request(Generic[D]):
    """A request that waits to be taken."""

    def __init__(self, record: D) -> None:
        self.record = record
        self.taken = trio.Event()


class _Webhook(Partitions[D]):
    """A request is answered when it has been taken: its batch was given to whoever reads, who came back for more."""

    follow = True
    resumable = False

    def __init__(
        self,
        host: str,
        ports: Sequence[int],
        path: str,
        token: str | None,
        decode: Callable[[WebhookRecord], D],
        batch: int,
        largest: int,
    ) -> None:
        self._host = host
        self._ports = list(ports)
        self._path = path
        self._token = token
        self._decode = decode
        self._batch = batch
        self._largest = largest

    def __repr__(self) -> str:
        return f"<webhook at {', '.join(f'http://{self._host}:{port}{self._path}' for port in self._ports)}>"

    async def partitions(self) -> list[str]:
        """The ports."""
        return [str(port) for port in self._ports]

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """Listens. Positions are numbers of requests, which nobody can go back to."""
        try:
            listeners = await trio.open_tcp_listeners(int(partition), host=self._host)
        except OSError as error:
            raise SourceError(f"{self!r} cannot listen: {error}") from None
        send, receive = trio.open_memory_channel[_Request[D]](_WAITING)
        serve = partial(trio.serve_listeners, partial(self._answer, send), listeners)
        server = Background(serve, send.close)
        number = 0
        try:
            async for first in receive:
                requests = [first]
                while len(requests) < self._batch and receive.statistics().current_buffer_used:
                    requests.append(receive.receive_nowait())
                number += len(requests)
                yield number, None, [request.record for request in requests]
                for request in requests:
                    request.taken.set()
            server.check()
        finally:
            await server.stop()

    # A connection

    async def _answer(self, inbox: trio.MemorySendChannel[_Request[D]], stream: trio.SocketStream) -> None:
        import h11

        connection = h11.Connection(h11.SERVER)
        async with stream:
            try:
                while True:
                    with trio.fail_after(_PATIENCE):
                        request, body = await self._request(connection, stream)
                    status, why = await self._take(request, body, inbox)
                    await _reply(connection, stream, status, why)
                    if connection.our_state is h11.MUST_CLOSE:
                        return
                    connection.start_next_cycle()
            except (h11.RemoteProtocolError, trio.TooSlowError, OSError, trio.BrokenResourceError, _Gone):
                return  # whoever it was will come again

    async def _request(self, connection: h11.Connection, stream: trio.SocketStream) -> tuple[h11.Request, bytes | None]:
        """A request and its body; None if that is too large."""
        import h11

        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if connection.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    await stream.send_all(connection.send(go_on) or b"")
                connection.receive_data(await stream.receive_some(1 << 16))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._largest:
                    assert request is not None
                    return request, None
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                return request, bytes(body)
            else:
                raise _Gone

    async def _take(
        self, request: h11.Request, body: bytes | None, inbox: trio.MemorySendChannel[_Request[D]]
    ) -> tuple[int, str]:
        """Hands a request on, and waits until it has been taken; the answer to it."""
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        target = urlsplit(request.target.decode("latin-1"))
        if target.path != self._path:
            return 404, f"there is nothing here but {self._path}"
        if request.method != b"POST":
            return 405, "only POST is taken"
        if self._token is not None and not _permitted(headers, self._token):
            return 401, "the token is missing, or wrong"
        if body is None:
            return 413, f"a body has at most {self._largest} bytes"
        try:
            record = self._decode(WebhookRecord(target.path, target.query, headers, body))
        except Exception as error:  # the sender's fault, and the sender is told; others go on
            return 422, f"this cannot be read: {type(error).__name__}: {error}"
        waiting = _Request(record)
        try:
            inbox.send_nowait(waiting)
        except trio.WouldBlock:
            return 503, "too many requests wait: come again later"
        await waiting.taken.wait()
        return 200, "taken"


def _permitted(headers: Mapping[str, str], token: str) -> bool:
    return hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {token}".encode())


async def _reply(connection: h11.Connection, stream: trio.SocketStream, status: int, why: str) -> None:
    import h11

    text = f"{why}\n".encode()
    headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(text)))]
    if status == 503:
        headers.append(("retry-after", "1"))
    if status in (401, 413):
        headers.append(("connection", "close"))  # there may be more of the body, which nobody will read
    events = (h11.Response(status_code=status, headers=headers), h11.Data(data=text), h11.EndOfMessage())
    await stream.send_all(b"".join(connection.send(event) or b"" for event in events))


def _as_it_is(record: WebhookRecord) -> WebhookRecord:
    return record


@overload
def webhook(
    port: int | Sequence[int],
    path: str = ...,
    *,
    host: str = ...,
    token: str | None = ...,
    batch: int = ...,
    largest: int = ...,
) -> Partitions[WebhookRecord]: ...


@overload
def webhook(
    port: int | Sequence[int],
    path: str = ...,
    *,
    decode: Callable[[WebhookRecord], D],
    host: str = ...,
    token: str | None = ...,
    batch: int = ...,
    largest: int = ...,
) -> Partitions[D]: ...


def webhook(
    port: int | Sequence[int],
    path: str = "/",
    *,
    decode: Callable[[WebhookRecord], D] | None = None,
    host: str = "127.0.0.1",
    token: str | None = None,
    batch: int = 1000,
    largest: int = 1 << 20,
) -> Partitions[D] | Partitions[WebhookRecord]:
    """What others POST to `http://HOST:PORT/PATH`; `decode` makes a record of each request.

    One worker listens; with several ports, which workers divide, several do. A request is answered with 200 when it
    has been taken: with `journaled`, when it is durable. One that `decode` refuses is answered with 422, and one that
    comes when too many wait with 503. `token`: senders must say `Authorization: Bearer TOKEN`. Unless `host` says
    otherwise only this machine can send; to the world, put a proxy with TLS before it. A sender that gets no answer
    sends again: see `deduplicate`.
    """
    require_extra("h11", "http", "sources.webhook")
    ports = [port] if isinstance(port, int) else list(port)
    if not ports or not all(type(each) is int and 0 < each < 65536 for each in ports) or len(set(ports)) != len(ports):
        raise ConstructionError(f"sources.webhook needs ports, each once, not {port!r}")
    if not path.startswith("/"):
        raise ConstructionError(f"sources.webhook: a path begins with a slash, and {path!r} does not")
    require_number("sources.webhook", "batch", batch, 1, whole=True)
    require_number("sources.webhook", "largest", largest, 1, whole=True)
    if decode is None:
        return _Webhook(host, ports, path, token, _as_it_is, batch, largest)
    return _Webhook(host, ports, path, token, decode, batch, largest)
