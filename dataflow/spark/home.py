"""Where the driver hears what workers print on executors: a port, at which only guests of this run are let in.

Each guest has one connection (see `phone`) and proves the secret of its job first. What is heard is text to be printed.
What is said is that this is the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import trio

from dataflow.comm.frames import Frame, FrameDecoder, FrameEncoder
from dataflow.comm.handshake import GREETING_SIZE, PROOF_SIZE, Identity, Keys, Listener
from dataflow.errors import ProtocolError
from dataflow.launch.lines import LineAssembler
from dataflow.launch.printer import Printer
from dataflow.spark.phone import END, ERR, HOME, OUT, home_digest

_HANDSHAKE = 5.0  # seconds, so that a silent stranger does not occupy us
_LAST = 3.0  # seconds for the last lines of a job that has ended
_CHUNK = 1 << 16


@dataclass
class Home:
    """What the driver has of its guests: their lines, and a way to tell them that it is over."""

    secret: bytes
    workers: int
    printers: dict[bytes, Printer]
    guests: dict[int, tuple[trio.SocketStream, FrameEncoder]] = field(default_factory=dict)
    _scopes: set[trio.CancelScope] = field(default_factory=set)  # of connections
    _left: trio.Event = field(default_factory=trio.Event)  # set and replaced whenever a guest has left

    @asynccontextmanager
    async def open(self, host: str) -> AsyncIterator[tuple[str, int]]:
        """Listens at a free port of this address, which is yielded, until the job is over and its lines are printed."""
        listeners = await trio.open_tcp_listeners(0, host=host)
        port = listeners[0].socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_listeners, self._welcome, listeners, handler_nursery=nursery)
            nursery.start_soon(serve)
            try:
                yield host, port
            finally:
                with trio.CancelScope(deadline=trio.current_time() + _LAST, shield=True):
                    while self.guests:
                        await self._left.wait()
                for scope in self._scopes:
                    scope.cancel()
                nursery.cancel_scope.cancel()

    async def end(self) -> None:
        """Tells all guests to end: they run their `finally` clauses."""
        for stream, encoder in list(self.guests.values()):
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.send_all(encoder.encode(END))

    async def _welcome(self, stream: trio.SocketStream) -> None:
        """One connection, from its first byte to its last. Strangers are turned away, and nothing is said of them: a
        cluster's network has scanners."""
        # Shielded: when the run is interrupted, guests are to be told so, and their last lines to be heard.
        with trio.CancelScope(shield=True) as scope:
            self._scopes.add(scope)
            try:
                await self._attend(stream)
            finally:
                self._scopes.discard(scope)

    async def _attend(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                with trio.fail_after(_HANDSHAKE):
                    guest, keys = await self._shake_hands(stream)
            except (ProtocolError, trio.TooSlowError, trio.BrokenResourceError):
                return
            self.guests[guest] = (stream, FrameEncoder(keys.sending))
            try:
                with contextlib.suppress(ProtocolError, trio.BrokenResourceError):  # it is gone, which Spark finds out
                    await self._listen(stream, FrameDecoder(keys.receiving))
            finally:
                del self.guests[guest]
                left, self._left = self._left, trio.Event()
                left.set()

    async def _shake_hands(self, stream: trio.SocketStream) -> tuple[int, Keys]:
        listener = Listener(Identity(self.secret, home_digest(self.workers), HOME))
        await stream.send_all(listener.answer(await _exactly(stream, GREETING_SIZE)))
        guest, keys = listener.finish(await _exactly(stream, PROOF_SIZE))
        if guest in self.guests or guest >= self.workers:
            raise ProtocolError(f"guest {guest} is connected already, or is none of ours")
        return guest, keys

    async def _listen(self, stream: trio.SocketStream, decoder: FrameDecoder) -> None:
        lines = {OUT: LineAssembler(), ERR: LineAssembler()}
        try:
            while chunk := await stream.receive_some(min(_CHUNK, len(decoder.buffer()))):
                decoder.buffer()[: len(chunk)] = chunk
                decoder.received(len(chunk))
                while (frame := decoder.take()) is not None:
                    await self._print(frame, lines)
        finally:
            for kind, rest in lines.items():
                self.printers[kind].put(rest.close())

    async def _print(self, frame: Frame, lines: dict[bytes, LineAssembler]) -> None:
        if frame.header not in lines:
            raise ProtocolError("a guest says something else than what was printed")
        printer = self.printers[frame.header]
        await printer.room()
        printer.put(lines[frame.header].feed(bytes(frame.body)))


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = await stream.receive_some(size - len(received))
        if not chunk:
            raise ProtocolError("the connection ended during the handshake")
        received += chunk
    return received
