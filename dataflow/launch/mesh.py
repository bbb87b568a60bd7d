"""Connections between hosts: TCP, perhaps TLS, and the handshake, until everybody is connected with everybody.

Of two parties the one with the greater number connects, again and again until the other listens or time is up. A
stranger who connects is turned away, and does not stop the computation. Little is said about strangers (see
`strangers`), and a thread writes it: whoever does not read our standard error cannot stop us.
"""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping

import trio

from dataflow.comm.handshake import ANSWER_SIZE, Connector, Identity, Keys, party
from dataflow.comm.pipes import Pipe, SocketPipe, StreamPipe
from dataflow.errors import HandshakeError, ProtocolError
from dataflow.launch.greeting import HANDSHAKE, REFUSALS, HandshakeEnded, accept, address_of, exactly, reason_of, wrap
from dataflow.launch.hosts import ClusterError, Tls, Unreachable
from dataflow.launch.printer import Printer
from dataflow.launch.strangers import Strangers
from dataflow.launch.talk import Talk

Address = tuple[str, int]

_AT_ONCE = 256  # handshakes: each has an open file, and strangers must not take all of them
_PRINTING = 1.0  # seconds for what was said about strangers to be written


async def connect_all(
    me: Identity,
    listen: Address,
    peers: dict[int, Address],
    tls: Tls | None,
    wait: float,
    describe: Callable[[int], str],
    printer: Printer | None = None,
) -> dict[int, tuple[Pipe, Keys]]:
    """Connects with all peers; by peer, a pipe and keys. Unreachable names who is missing.

    `printer` writes what is to be said about strangers; without one, a thread of this call's own does.
    """
    connected: dict[int, tuple[Pipe, Keys]] = {}
    reasons: dict[int, str] = {}  # why those who were there could not be connected with
    above = {peer for peer in peers if peer > me.number}
    door = _Door(me, above, len(peers), connected, printer or Printer(sys.stderr))
    with trio.move_on_after(wait) as patience:
        async with trio.open_nursery() as nursery:
            if above:
                await nursery.start(door.listen, listen, tls, nursery.cancel_scope)
            for peer, address in peers.items():
                if peer < me.number:
                    nursery.start_soon(
                        _connect, me, peer, address, tls, connected, reasons, nursery.cancel_scope, len(peers)
                    )
    door.say_the_rest()
    if printer is None and door.said:
        await door.finish_printing()
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


async def accept_all(
    me: Identity, listen: Address, expected: set[int], fellows: Mapping[int, Address], tls: Tls | None, wait: float
) -> dict[int, tuple[Pipe, Keys]]:
    """Waits until all of those who are expected have connected, and connects with fellows. Unreachable names who has
    not."""
    connected: dict[int, tuple[Pipe, Keys]] = {}
    total = len(expected) + len(fellows)
    door = _Door(me, expected, total, connected, Printer(sys.stderr))
    with trio.move_on_after(wait):
        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            await nursery.start(door.listen, listen, tls, scope)
            for peer, address in fellows.items():
                nursery.start_soon(_connect, me, peer, address, tls, connected, {}, scope, total)
    door.say_the_rest()
    if door.said:
        await door.finish_printing()
    missing = ", ".join(party(peer) for peer in sorted({*expected, *fellows} - set(connected)))
    if missing:
        for pipe, _ in connected.values():
            await pipe.close()
        raise Unreachable(
            f"{missing} did not connect to this host, at {listen[0]}:{listen[1]}, within {wait:g} seconds: can they "
            "reach it there? (--listen names the address)"
        )
    return connected


async def connect_one(
    me: Identity, peer: int, address: Address, tls: Tls | None, wait: float, title: str
) -> tuple[Pipe, Keys]:
    """Connects with one other, as soon as it listens. Unreachable if that takes too long."""
    connected: dict[int, tuple[Pipe, Keys]] = {}
    reasons: dict[int, str] = {}
    with trio.move_on_after(wait), trio.CancelScope() as scope:
        await _connect(me, peer, address, tls, connected, reasons, scope, 2)
    if peer not in connected:
        why = f" ({reasons[peer]})" if peer in reasons else ""
        raise Unreachable(f"{title} cannot be reached at {address[0]}:{address[1]} after {wait:g} seconds{why}")
    return connected[peer]


async def serve_others(
    me: Identity,
    listen: Address,
    tls: Tls | None,
    serve: Callable[[Talk], Awaitable[None]],
    printer: Printer,
) -> None:
    """Listens for ever; whoever proves the secret is served, and the connection closed."""
    context = tls.server() if tls else None
    strangers = Strangers()

    async def welcome(stream: trio.SocketStream) -> None:
        whence = address_of(stream)
        try:
            with trio.fail_after(HANDSHAKE):
                _, wrapped, keys = await accept(me, stream, context)
            talk = Talk(_pipe(wrapped), keys)
            try:
                await serve(talk)
            finally:
                await talk.close()
        except (*REFUSALS, ProtocolError, ValueError) as error:
            line = strangers.turned_away(whence, reason_of(error))
            if line is not None:
                printer.put(f"{line}\n")

    try:
        await trio.serve_tcp(welcome, listen[1], host=listen[0])
    except OSError as error:
        printer.put(f"dataflow: nobody can join: cannot listen on {listen[0]}:{listen[1]}: {error}\n")


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
            with trio.fail_after(HANDSHAKE):
                wrapped = await wrap(stream, context, address[0])
                connector = Connector(me, peer)
                await wrapped.send_all(connector.greeting())
                proof, keys = connector.finish(await exactly(wrapped, ANSWER_SIZE))
                await wrapped.send_all(proof)
        except (OSError, trio.BrokenResourceError, trio.TooSlowError, HandshakeEnded) as error:
            reasons[peer] = f"it turned us away: {reason_of(error)}; it says more about that on its own side"
            await trio.aclose_forcefully(stream)
            await trio.sleep(0.1)  # it was there for a moment, or turned us away and will say why
            continue
        except HandshakeError as error:
            await trio.aclose_forcefully(stream)
            raise HandshakeError(f"{address[0]}:{address[1]}: {error}") from None
        connected[peer] = (_pipe(wrapped), keys)
        return _done(connected, total, scope)


class _Door:
    """Where others connect to us, and who is let in."""

    def __init__(
        self, me: Identity, expected: set[int], total: int, connected: dict[int, tuple[Pipe, Keys]], printer: Printer
    ) -> None:
        self._me = me
        self._expected = expected
        self._total = total
        self._connected = connected
        self._printer = printer
        self._strangers = Strangers()
        self.said = False  # whether anything was said about strangers
        self._waiting: dict[trio.CancelScope, None] = {}  # for handshakes that are going on, oldest first

    async def listen(
        self,
        address: Address,
        tls: Tls | None,
        done: trio.CancelScope,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Lets in those who are expected, and cancels `done` when all are there."""
        context = tls.server() if tls else None
        try:
            listeners = await trio.open_tcp_listeners(address[1], host=address[0])
        except OSError as error:
            raise ClusterError(f"cannot listen on {address[0]}:{address[1]}: {error}") from None
        task_status.started()
        async with trio.open_nursery() as nursery:
            for listener in listeners:
                nursery.start_soon(self._accept_all, nursery, listener, context, done)

    async def _accept_all(
        self,
        nursery: trio.Nursery,
        listener: trio.SocketListener,
        context: ssl.SSLContext | None,
        done: trio.CancelScope,
    ) -> None:
        async with listener:
            while True:  # not trio.serve_listeners, which would close each stream when it has been welcomed
                try:
                    stream = await listener.accept()
                except OSError:  # gone before we looked, or too many files are open: the next may do better
                    await trio.sleep(0.1)
                    continue
                while len(self._waiting) >= _AT_ONCE:
                    oldest = next(iter(self._waiting))  # the handshake that has taken longest
                    del self._waiting[oldest]
                    oldest.cancel()
                scope = trio.CancelScope(deadline=trio.current_time() + HANDSHAKE)
                self._waiting[scope] = None
                nursery.start_soon(self._welcome, stream, context, scope, done)

    async def _welcome(
        self, stream: trio.SocketStream, context: ssl.SSLContext | None, scope: trio.CancelScope, done: trio.CancelScope
    ) -> None:
        whence = address_of(stream)  # at once: a peer that has left cannot be asked any more
        try:
            with scope:
                peer, wrapped, keys = await accept(self._me, stream, context)
            if scope.cancelled_caught:
                raise trio.TooSlowError
            if peer not in self._expected or peer in self._connected:
                raise HandshakeError(f"{party(peer)} is not expected here, or is connected already")
        except BaseException as error:
            await trio.aclose_forcefully(stream)
            if not isinstance(error, REFUSALS):
                raise
            self._say(self._strangers.turned_away(whence, reason_of(error)))
            return
        finally:
            self._waiting.pop(scope, None)
        self._connected[peer] = (_pipe(wrapped), keys)
        _done(self._connected, self._total, done)

    def _say(self, line: str | None) -> None:
        if line is not None:
            self.said = True
            self._printer.put(f"{line}\n")

    def say_the_rest(self) -> None:
        """Says how many were turned away, as far as that was not said. For when nobody listens any more."""
        for line in self._strangers.summary():
            self._say(line)

    async def finish_printing(self) -> None:
        """Gives the printer a moment. It goes on afterwards, for as long as this process lives."""
        with trio.move_on_after(_PRINTING):
            await trio.to_thread.run_sync(self._printer.finish, abandon_on_cancel=True)


def _pipe(stream: trio.abc.Stream) -> Pipe:
    if isinstance(stream, trio.SocketStream):
        return SocketPipe(_stdlib(stream))
    return StreamPipe(stream)


def _stdlib(stream: trio.SocketStream) -> socket.socket:
    """The plain socket of a stream. trio gives it up, and does not close it."""
    return socket.socket(fileno=stream.socket.detach())
