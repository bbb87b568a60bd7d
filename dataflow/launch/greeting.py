"""Connections with those who are not trusted yet: TCP, perhaps TLS, and the handshake.

A stranger who connects is turned away, and does not stop anything (see `strangers` for what is said about it).
"""

from __future__ import annotations

import socket
import ssl

import trio

from dataflow.comm.handshake import GREETING_SIZE, PROOF_SIZE, Identity, Keys, Listener
from dataflow.errors import HandshakeError

HANDSHAKE = 5.0  # seconds for a handshake, so that a silent stranger does not occupy us
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 5))  # seconds, seconds, times


async def accept(
    me: Identity, stream: trio.SocketStream, context: ssl.SSLContext | None
) -> tuple[int, trio.abc.Stream, Keys]:
    """Has whoever has connected prove the secret; who it is, the stream, and keys for it."""
    wrapped = await wrap(stream, context, None)
    listener = Listener(me)
    await wrapped.send_all(listener.answer(await exactly(wrapped, GREETING_SIZE)))
    try:
        proof = await exactly(wrapped, PROOF_SIZE)
    except HandshakeEnded as error:  # it left when it saw our proof, so it may not have believed it
        raise HandshakeEnded(f"{error}: it may have another secret (compare the files of --secret)") from None
    peer, keys = listener.finish(proof)
    return peer, wrapped, keys


async def wrap(stream: trio.SocketStream, context: ssl.SSLContext | None, hostname: str | None) -> trio.abc.Stream:
    """A stream as we want it, with TLS if there is a context for it; without a name of a host we are the server."""
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # the system finds out when a host is gone silently
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if context is None:
        return stream
    wrapped = trio.SSLStream(stream, context, server_hostname=hostname, server_side=hostname is None)
    await wrapped.do_handshake()
    return wrapped


class HandshakeEnded(Exception):
    """The connection ended in the middle of the handshake."""


REFUSALS = (HandshakeError, OSError, trio.BrokenResourceError, trio.TooSlowError, HandshakeEnded)
"""What a connection is turned away for."""


async def exactly(stream: trio.abc.Stream, size: int) -> bytes:
    """Receives so many bytes, and not one more."""
    received = b""
    while len(received) < size:
        chunk = await stream.receive_some(size - len(received))
        if not chunk:
            raise HandshakeEnded("the connection ended during the handshake")
        received += chunk
    return received


def address_of(stream: trio.SocketStream) -> str:
    """Of the peer. To be asked at once: of a peer that has left it is not known any more."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return "somewhere"


def reason_of(error: BaseException) -> str:
    """Why somebody was turned away, for people."""
    if isinstance(error, trio.TooSlowError):
        return "it did not complete the handshake"
    cause = error.__cause__
    return f"{error} ({cause})".strip() if cause is not None else str(error)
