"""HTTP for sources and sinks: an answer that goes on, in trio, by `h11`; and requests in a thread."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import trio

if TYPE_CHECKING:
    import h11

PATIENCE = 30.0  # seconds for a server to answer
_REDIRECTS = 5


class HttpError(OSError):
    """A server that cannot be reached, or a connection that was lost."""


@dataclass(frozen=True)
class WebAddress:
    """Where something is on the web."""

    secure: bool
    host: str
    port: int
    name: str  # the host, with the port if it is not the usual one
    target: str

    @staticmethod
    def parse(url: str) -> WebAddress:
        """ValueError if it cannot be one."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"an address on the web is such as https://host/path, not {shown(url)!r}")
        secure = parts.scheme == "https"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        name = parts.netloc.rpartition("@")[2]
        return WebAddress(secure, parts.hostname, parts.port or (443 if secure else 80), name, target)


def shown(url: str) -> str:
    """An address as it may be shown: without what may be a secret."""
    scheme, mark, rest = url.partition("?")[0].partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


class Download:
    """An answer, whose body comes piece by piece and may never end."""

    def __init__(self, stream: trio.abc.Stream, connection: h11.Connection) -> None:
        self._stream = stream
        self._connection = connection
        self.status = 0
        self.headers: dict[str, str] = {}  # names are in small letters

    @staticmethod
    async def get(url: str, headers: Mapping[str, str]) -> Download:
        """Asks. Goes where the server says that it has moved to."""
        for _ in range(_REDIRECTS + 1):
            download = await Download._ask(WebAddress.parse(url), headers)
            if download.status not in (301, 302, 303, 307, 308) or "location" not in download.headers:
                return download
            await download.close()
            url = urljoin(url, download.headers["location"])
        raise HttpError("it sends us around in circles")

    @staticmethod
    async def _ask(address: WebAddress, headers: Mapping[str, str]) -> Download:
        import h11

        try:
            with trio.fail_after(PATIENCE):
                stream: trio.abc.Stream = await trio.open_tcp_stream(address.host, address.port)
                if address.secure:
                    context = ssl.create_default_context()
                    stream = trio.SSLStream(stream, context, server_hostname=address.host, https_compatible=True)
                download = Download(stream, h11.Connection(h11.CLIENT))
                await download._send(address, headers)
                return download
        except (OSError, trio.TooSlowError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            raise HttpError(str(error) or type(error).__name__) from None

    async def _send(self, address: WebAddress, headers: Mapping[str, str]) -> None:
        import h11

        given = [("host", address.name), ("accept-encoding", "identity"), *headers.items()]
        for event in (h11.Request(method="GET", target=address.target, headers=given), h11.EndOfMessage()):
            await self._stream.send_all(self._connection.send(event) or b"")
        while True:
            heard = await self._next()
            if isinstance(heard, h11.Response):
                self.status = heard.status_code
                self.headers = {name.decode(): value.decode("latin-1") for name, value in heard.headers}
                return
            if not isinstance(heard, h11.InformationalResponse):
                raise HttpError("the connection ended before there was an answer")

    async def _next(self) -> h11.Event | type[h11.PAUSED]:
        import h11

        while True:
            event = self._connection.next_event()
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type) or event is h11.PAUSED
                return event
            self._connection.receive_data(bytes(await self._stream.receive_some(1 << 16)))

    async def more(self) -> bytes:
        """The next piece of the body; nothing at its end. HttpError if the connection was lost."""
        import h11

        try:
            while True:
                event = await self._next()
                if not isinstance(event, h11.Data):
                    return b""
                if event.data:
                    return bytes(event.data)
        except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            raise HttpError(f"the connection was lost: {error}") from None

    async def close(self) -> None:
        """Ends the connection."""
        await trio.aclose_forcefully(self._stream)


class Posting:
    """Requests to one address over one connection, which is made again when it was lost. Blocks: for threads."""

    def __init__(self, url: str, headers: Mapping[str, str], patience: float) -> None:
        self._address = WebAddress.parse(url)
        self._headers = dict(headers)
        self._patience = max(patience, 0.1)
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Sends a body; the status of the answer."""
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._address.secure else http.client.HTTPConnection
            self._connection = kind(self._address.host, self._address.port, timeout=self._patience)
        try:
            self._connection.request("POST", self._address.target, body, {**self._headers, **headers})
            with self._connection.getresponse() as answer:
                answer.read()
                return answer.status
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise HttpError(str(error) or type(error).__name__) from None

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
