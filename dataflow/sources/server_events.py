"""Server-sent events. An address is a partition, and a position is the id of the last event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar, overload

import trio

from dataflow.clients.extras import names_of, require_extra
from dataflow.clients.http import PATIENCE, Download, HttpError, WebAddress, shown
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError

D = TypeVar("D")

_RETRY = 1.0  # seconds until a connection that was lost is made again, unless the server says


class ServerEvent(NamedTuple):
    """An event that a server has sent."""

    id: str  # of this event, or of the last that had one
    event: str  # "message" unless the server says
    data: str


class EventParser:
    r"""From the bytes of a response to events, as the standard has it (WHATWG HTML, 9.2). Pure.

    >>> parser = EventParser("")
    >>> list(parser.feed(b"id: 7\ndata: one\n"))
    []
    >>> list(parser.feed(b"data: two\n\n: a comment\n\n"))
    [ServerEvent(id='7', event='message', data='one\ntwo')]
    """

    def __init__(self, last: str) -> None:
        self.last = last
        self.retry: float | None = None  # seconds, if the server has said
        self._rest = b""
        self._start = True
        self._id = last  # of the event that has not ended
        self._kind, self._data = "", list[str]()

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that end in these bytes."""
        self._rest += data
        if self._start and len(self._rest) >= 3:
            self._rest, self._start = self._rest.removeprefix(b"\xef\xbb\xbf"), False
        events = []
        for line in self._lines():
            if line:
                self._field(line.decode("utf-8", "replace"))
                continue
            self.last = self._id
            if self._data:
                events.append(ServerEvent(self.last, self._kind or "message", "\n".join(self._data)))
            self._kind, self._data = "", []
        return events

    def _lines(self) -> list[bytes]:
        """Whole lines. A carriage return at the end may be half of an end."""
        held = b"\r" if self._rest.endswith(b"\r") else b""
        text = self._rest[: len(self._rest) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = rest + held
        return lines

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdecimal():
            self.retry = int(value) / 1000


class _ServerEvents(Partitions[D]):
    follow = True

    def __init__(
        self, urls: Sequence[str], headers: Mapping[str, str], ids: bool, decode: Callable[[ServerEvent], D]
    ) -> None:
        self._urls = list(urls)
        self._headers = dict(headers)
        self._decode = decode
        self.resumable = ids

    def __repr__(self) -> str:
        return f"<server-sent events of {', '.join(map(shown, self._urls))}>"

    async def partitions(self) -> list[str]:
        """The addresses."""
        return self._urls

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The events behind an id. A connection that is lost is made again, and goes on."""
        if position is not None and not isinstance(position, str):
            raise SourceError(f"{self!r}: {position!r} is no position among events: an id was expected")
        parser = EventParser(position or "")
        heard = trio.current_time()  # of the server
        while True:
            download: Download | None = None
            try:
                download = await self._opened(partition, parser.last)
                if download is None:
                    return
                while data := await download.more():
                    events = parser.feed(data)
                    if events:
                        self._require_ids(events)
                        yield parser.last, None, [self._decode(event) for event in events]
            except HttpError as error:
                if download is None and trio.current_time() - heard > PATIENCE:
                    raise SourceError(f"{self!r} cannot be read: {error}") from None
            finally:
                if download is not None:
                    await download.close()
                    heard = trio.current_time()
            parser = _anew(parser)
            await trio.sleep(_RETRY if parser.retry is None else parser.retry)

    async def _opened(self, url: str, last: str) -> Download | None:
        """The server's events behind an id; None if it says that there are none, and will be none."""
        headers = {"accept": "text/event-stream", "cache-control": "no-cache", **self._headers}
        if last:
            headers["last-event-id"] = last
        download = await Download.get(url, headers)
        kind = download.headers.get("content-type", "").partition(";")[0].strip().lower()
        if download.status == 200 and kind == "text/event-stream":
            return download
        await download.close()
        if download.status == 204:
            return None
        if download.status >= 500 or download.status == 429:
            raise HttpError(f"it answers with status {download.status}")
        raise SourceError(
            f"{self!r}: the server answered with status {download.status} and {kind or 'nothing'}, and not with events"
        )

    def _require_ids(self, events: list[ServerEvent]) -> None:
        if self.resumable and not all(event.id for event in events):
            raise SourceError(
                f"{self!r}: an event has no id, so nobody can go on behind it: say ids=False, and what is sent while "
                "nobody listens is lost"
            )


def _anew(parser: EventParser) -> EventParser:
    """For a new connection: half an event is forgotten, since it comes again."""
    new = EventParser(parser.last)
    new.retry = parser.retry
    return new


def _as_it_is(event: ServerEvent) -> ServerEvent:
    return event


@overload
def server_events(
    urls: str | Sequence[str], *, headers: Mapping[str, str] | None = ..., ids: bool = ...
) -> Partitions[ServerEvent]: ...


@overload
def server_events(
    urls: str | Sequence[str],
    *,
    decode: Callable[[ServerEvent], D],
    headers: Mapping[str, str] | None = ...,
    ids: bool = ...,
) -> Partitions[D]: ...


def server_events(
    urls: str | Sequence[str],
    *,
    decode: Callable[[ServerEvent], D] | None = None,
    headers: Mapping[str, str] | None = None,
    ids: bool = True,
) -> Partitions[D] | Partitions[ServerEvent]:
    """The server-sent events of one or several addresses; `decode` makes a record of each.

    The id of the last event is kept in our snapshots, and given to the server (`Last-Event-ID`) whenever a connection
    is made: it goes on behind that. So an event counts once if the server gives each an id of its own, and keeps events
    for as long as we may be away. With `ids=False` it need not: then the source cannot go back (see `journaled`), and
    what is sent while nobody listens is lost. `headers` go with each request.
    """
    require_extra("h11", "http", "sources.server_events")
    addresses = names_of("sources.server_events", "addresses", urls)
    for url in addresses:
        try:
            WebAddress.parse(url)
        except ValueError as error:
            raise ConstructionError(f"sources.server_events: {error}") from None
    if decode is None:
        return _ServerEvents(addresses, headers or {}, ids, _as_it_is)
    return _ServerEvents(addresses, headers or {}, ids, decode)
