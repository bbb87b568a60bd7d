"""Connections between hosts: TCP, perhaps TLS, and the handshake, until everybody is connected with everybody.

Of two parties the one with the greater number connects, again and again until the other listens or time is up. A
stranger who connects to us is turned away with a line on standard error, and does not stop the computation.
"""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable

import trio

from dataflow.comm.handshake import (
    ANSWER_SIZE,
    GREETING_SIZE,
    PROOF_SIZE,
    Connector,
    Identity,
    Keys,
    Listener,
    party,
)
from dataflow.comm.pipes import Pipe, SocketPipe, StreamPipe
from dataflow.errors import HandshakeError
from dataflow.launch.hosts import ClusterError, Tls, Unreachable

Address = tuple[str, int]

_HANDSHAKE = 5.0  # seconds for a handshake, so that a silent stranger does not occupy us


async def connect_all(
    me: Identity,
    listen: Address,
    peers: dict[int, Address],
    tls: Tls | None,
    wait: float,
    describe: Callable[[int], str],
) -> dict[int, tuple[Pipe, Keys]]:
    """Connects with all peers: a pipe and keys for each. Unreachable names who is missing."""
    connected: dict[int, tuple[Pipe, Keys]] = {}
    reasons: dict[int, str] = {}  # why those who were there could not be connected with
    above = {peer for peer in peers if peer > me.number}
    with trio.move_on_after(wait) as patience:
        async with trio.open_nursery() as nursery:
            if above:
                await nursery.start(_listen, me, listen, above, tls, connected, nursery.cancel_scope, len(peers))
            for peer, address in peers.items():
                if peer < me.number:
                    nursery.start_soon(
                        _connect, me, peer, address, tls, connected, reasons, nursery.cancel_scope, len(peers)
                    )
    if len(connected) < len(peers):
        for pipe, _ in connected.values():
            await pipe.close()
        missing = ", ".join(
            describe(peer) + (f" ({reasons[peer]})" if peer in reasons else "")
            for peer in sorted(set(peers) - set(connected))
        )
        assert patience.cancelled_caught
        raise Unreachable(f"not everybody is there after {wait:g} seconds: still missing {missing}")
    return connected


def _done(connected: dict[int, tuple[Pipe, Keys]], total: int, scope: trio.CancelScope) -> None:
    if len(connected) == total:
        scope.cancel()


async def _connect(
    me: Identity,
    peer: int,
    address: Address,
    tls: Tls | None,
    connected: dict[int, tuple[Pipe, Keys]],
    reasons: dict[int, str],
    scope: trio.CancelScope,
    total: int,
) -> None:
    context = tls.client() if tls else None
    while True:
        try:
            stream = await trio.open_tcp_stream(*address)
        except OSError:
            await trio.sleep(0.1)  # not there yet
            continue
        try:
            with trio.fail_after(_HANDSHAKE):
                wrapped = await _wrap(stream, context, address[0])
                connector = Connector(me, peer)
                await wrapped.send_all(connector.greeting())
                proof, keys = connector.finish(await _exactly(wrapped, ANSWER_SIZE))
                await wrapped.send_all(proof)
        except (OSError, trio.BrokenResourceError, trio.TooSlowError, _Ended) as error:
            reasons[peer] = f"it turned us away: {_reason(error)}; it says more about that on its own side"
            await trio.aclose_forcefully(stream)
            await trio.sleep(0.1)  # it was there for a moment, or turned us away and will say why
            continue
        except HandshakeError as error:
            await trio.aclose_forcefully(stream)
            raise HandshakeError(f"{address[0]}:{address[1]}: {error}") from None
        connected[peer] = (_pipe(wrapped), keys)
        return _done(connected, total, scope)


async def _listen(
    me: Identity,
    listen: Address,
    expected: set[int],
    tls: Tls | None,
    connected: dict[int, tuple[Pipe, Keys]],
    scope: trio.CancelScope,
    total: int,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    context = tls.server() if tls else None
    try:
        listeners = await trio.open_tcp_listeners(listen[1], host=listen[0])
    except OSError as error:
        raise ClusterError(f"cannot listen on {listen[0]}:{listen[1]}: {error}") from None

    told: set[str] = set()  # they try again and again, and are told of once

    async def welcome(stream: trio.SocketStream) -> None:
        whence = _whence(stream)  # now: who has left cannot be asked
        try:
            with trio.fail_after(_HANDSHAKE):
                peer, wrapped, keys = await _accept(me, stream, context)
            if peer not in expected or peer in connected:
                raise HandshakeError(f"{party(peer)} is not expected here, or is connected already")
        except (HandshakeError, OSError, trio.BrokenResourceError, trio.TooSlowError, _Ended) as error:
            line = f"turned away a connection from {whence}: {_reason(error)}"
            if line not in told:
                told.add(line)
                print(line, file=sys.stderr)
            await trio.aclose_forcefully(stream)
            return
        connected[peer] = (_pipe(wrapped), keys)
        _done(connected, total, scope)

    async def accept(listener: trio.SocketListener) -> None:
        async with listener:
            while True:  # not trio.serve_listeners, which would close each stream when it has been welcomed
                try:
                    stream = await listener.accept()
                except OSError:  # gone before we looked, or too many files are open: the next may do better
                    await trio.sleep(0.1)
                    continue
                nursery.start_soon(welcome, stream)

    task_status.started()
    async with trio.open_nursery() as nursery:
        for listener in listeners:
            nursery.start_soon(accept, listener)


async def _accept(
    me: Identity, stream: trio.SocketStream, context: ssl.SSLContext | None
) -> tuple[int, trio.abc.Stream, Keys]:
    wrapped = await _wrap(stream, context, None)
    listener = Listener(me)
    await wrapped.send_all(listener.answer(await _exactly(wrapped, GREETING_SIZE)))
    try:
        proof = await _exactly(wrapped, PROOF_SIZE)
    except _Ended as error:  # it has seen our proof, and left: what it would have said, had it believed us
        raise _Ended(f"{error}: it may have another secret (compare the files of --secret)") from None
    peer, keys = listener.finish(proof)
    return peer, wrapped, keys


async def _wrap(stream: trio.SocketStream, context: ssl.SSLContext | None, hostname: str | None) -> trio.abc.Stream:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is None:
        return stream
    wrapped = trio.SSLStream(stream, context, server_hostname=hostname, server_side=hostname is None)
    await wrapped.do_handshake()
    return wrapped


def _pipe(stream: trio.abc.Stream) -> Pipe:
    if isinstance(stream, trio.SocketStream):
        return SocketPipe(_stdlib(stream))
    return StreamPipe(stream)


def _stdlib(stream: trio.SocketStream) -> socket.socket:
    """The plain socket of a stream, which trio forgets about."""
    return socket.socket(fileno=stream.socket.detach())


class _Ended(Exception):
    """The connection ended in the middle of the handshake."""


async def _exactly(stream: trio.abc.Stream, size: int) -> bytes:
    """So many bytes, and not one more."""
    received = b""
    while len(received) < size:
        chunk = await stream.receive_some(size - len(received))
        if not chunk:
            raise _Ended("the connection ended during the handshake")
        received += chunk
    return received


def _whence(stream: trio.SocketStream) -> str:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return "somewhere"


def _reason(error: BaseException) -> str:
    if isinstance(error, trio.TooSlowError):
        return "it did not complete the handshake"
    cause = error.__cause__
    return f"{error} ({cause})" if cause is not None else str(error)
