"""The door of a run on the network (`--control HOST:PORT`): who knows its secret asks as its owner does at the socket.

Both sides prove that they know the secret, by the handshake that hosts have with each other (`comm.handshake`). Then
there is one question and its answer, each a frame whose checksum nobody can make without the secret: nobody in between
can change one, or say it again. With certificates (TLS) nobody in between can read them, either.

Until somebody has proved that they know the secret nothing is parsed or kept for them. At most so many handshakes go on
at a time: whoever comes after that ends the one that has taken longest, so silent strangers lock nobody out.
"""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import trio

from dataflow.asking.messages import LONGEST_ANSWER, LONGEST_QUESTION, Question, encode_refusal
from dataflow.asking.serving import Bounds, respond_to
from dataflow.comm.frames import FrameDecoder, FrameEncoder, FrameError, FrameLimits
from dataflow.comm.handshake import RUN, Identity, cluster_digest
from dataflow.launch.greeting import REFUSALS, HandshakeEnded, accept, address_of, reason_of
from dataflow.launch.hosts import ClusterError, Tls
from dataflow.launch.printer import Printer
from dataflow.launch.strangers import Strangers

CONTROL = cluster_digest("control")  # in the place of the digest of a file of hosts: nobody mistakes a worker for this
QUESTIONS, ANSWERS = FrameLimits(LONGEST_QUESTION, 0), FrameLimits(LONGEST_ANSWER, 0)
_CHUNK = 1 << 14
_BACKLOG = 64
_GREETING = 64  # handshakes at once
_PRINTING = 1.0  # seconds for what was said about strangers to be written

Respond = Callable[[Question], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class ControlAddress:
    """Where a run is asked over the network, and the secret that lets people in."""

    address: tuple[str, int]
    secret: bytes = field(repr=False)
    tls: Tls | None = None

    def __post_init__(self) -> None:
        if len(self.secret) < 16:
            raise ClusterError("the secret must have at least 16 bytes: make one with `python -m dataflow secret`")

    def listen(self) -> socket.socket:
        """A socket at that address. ClusterError if it cannot be had."""
        host, port = self.address
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server(self.address, family=family, backlog=_BACKLOG)
        except OSError as error:
            raise ClusterError(f"cannot listen on {host}:{port} for --control: {error}") from None


async def serve_network(
    listener: socket.socket, control: ControlAddress, respond: Respond, bounds: Bounds | None = None
) -> None:
    """Answers those who know the secret, until it is cancelled. What is said about others is on standard error."""
    window = _Window(control, respond, bounds or Bounds())
    waiting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    try:
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    stream = await waiting.accept()
                except OSError as error:  # this process has too many files open, for example
                    window.printer.put(f"dataflow: nobody can be answered at --control: {error}\n")
                    await trio.sleep(window.bounds.seconds)
                    continue
                nursery.start_soon(window.attend, stream, window.scope())
    finally:
        window.finish()


class _Window:
    """Those who are attended to."""

    def __init__(self, control: ControlAddress, respond: Respond, bounds: Bounds) -> None:
        self.bounds = bounds
        self.printer = Printer(sys.stderr)
        self._me = Identity(control.secret, CONTROL, RUN)
        self._context = control.tls.server() if control.tls else None
        self._respond = respond
        self._strangers = Strangers()
        self._greeting: dict[trio.CancelScope, None] = {}  # those who have not asked yet, oldest first
        self._answering = 0

    def scope(self) -> trio.CancelScope:
        """For somebody who has just connected: until they have asked."""
        while len(self._greeting) >= _GREETING:
            oldest = next(iter(self._greeting))
            del self._greeting[oldest]
            oldest.cancel()
        scope = trio.CancelScope(deadline=trio.current_time() + self.bounds.seconds)
        self._greeting[scope] = None
        return scope

    async def attend(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        """One connection, from its beginning to its end."""
        whence = address_of(stream)
        try:
            await self._attend(stream, scope)
        except (*REFUSALS, FrameError) as error:
            line = self._strangers.turned_away(whence, reason_of(error))
            if line is not None:
                self.printer.put(f"dataflow: --control {line}\n")
        finally:
            self._greeting.pop(scope, None)
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)

    async def _attend(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        with scope:
            message, wrapped, encoder = await _question(self._me, stream, self._context)
        if scope.cancelled_caught:
            raise trio.TooSlowError
        del self._greeting[scope]
        if self._answering >= self.bounds.clients:
            answer = encode_refusal("this run is asked by too many at once: ask again")
        else:
            self._answering += 1
            try:
                answer = await respond_to(message, self._respond)
            finally:
                self._answering -= 1
        with trio.move_on_after(self.bounds.seconds), suppress(OSError, trio.BrokenResourceError):  # who leaves is left
            await wrapped.send_all(encoder.encode(answer))

    def finish(self) -> None:
        """Says how many were turned away, as far as that was not said."""
        for line in self._strangers.summary():
            self.printer.put(f"dataflow: --control {line}\n")
        self.printer.finish(_PRINTING)


async def _question(
    me: Identity, stream: trio.SocketStream, context: ssl.SSLContext | None
) -> tuple[bytes, trio.abc.Stream, FrameEncoder]:
    """What somebody asks who has proved the secret; where to send the answer, and how it is sealed."""
    _, wrapped, keys = await accept(me, stream, context)
    decoder = FrameDecoder(keys.receiving, QUESTIONS)
    while (frame := decoder.take()) is None:
        chunk = await wrapped.receive_some(_CHUNK)
        if not chunk:
            raise HandshakeEnded("the connection ended before anything was asked")
        decoder.feed(bytes(chunk))
    return frame.header, wrapped, FrameEncoder(keys.sending, ANSWERS)
