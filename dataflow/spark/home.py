"""Where the driver hears what workers print on executors: a port, at which only guests of this run are let in.

Each guest has one connection (see `phone`) and proves the secret of its job first. What is heard is text to be printed.
What is said is that this is the end.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import trio

from dataflow.comm import codec
from dataflow.comm.frames import Frame, FrameDecoder, FrameEncoder
from dataflow.comm.handshake import GREETING_SIZE, PROOF_SIZE, Identity, Keys, Listener
from dataflow.errors import ProtocolError
from dataflow.launch.lines import LineAssembler
from dataflow.launch.printer import Printer
from dataflow.spark.phone import CANNOT, END, ERR, HOME, HOME_DIGEST, OUT, TELL

_HANDSHAKE = 5.0  # seconds, so that a silent stranger does not occupy us
_LAST = 3.0  # seconds for the last lines of a job that has ended
_CHUNK = 1 << 16


@dataclass
class Home:
    """What the driver has of its guests: their lines, and a way to tell them that it is over."""

    secret: bytes
    numbers: set[int]  # of those who may call: one connection each, at a time
    printers: dict[bytes, Printer]
    told: Callable[[object], None] = lambda _: None  # called with what guest 0 tells, plain data
    guests: dict[int, tuple[trio.SocketStream, FrameEncoder]] = field(default_factory=dict)
    _saying: trio.Lock = field(default_factory=trio.Lock)
    _scopes: set[trio.CancelScope] = field(default_factory=set)  # of connections
    called: Counter[int] = field(default_factory=Counter)  # how often each has called
    _news: trio.Event = field(default_factory=trio.Event)  # set and replaced whenever a guest has called or left

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
                        await self._news.wait()
                for scope in self._scopes:
                    scope.cancel()
                nursery.cancel_scope.cancel()

    async def end(self) -> None:
        """Tells all guests to end: they run their `finally` clauses."""
        for guest in list(self.guests):
            await self._say(guest, END)

    async def cannot(self, number: int, why: str) -> None:
        """Tells guest 0 that workers that were invited, of whom this is the first, do not come."""
        await self._say(0, CANNOT, codec.encode([number, why]))

    async def _say(self, guest: int, what: bytes, body: bytes = b"") -> None:
        async with self._saying:
            if guest in self.guests:  # else it is gone, which Spark finds out
                stream, encoder = self.guests[guest]
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await stream.send_all(encoder.encode(what, len(body)) + body)

    async def wait_called(self, numbers: Sequence[int]) -> None:
        """Waits until all of these have called."""
        while not all(self.called[number] for number in numbers):
            await self.wait_changed()

    async def wait_changed(self) -> None:
        """Waits until somebody has called or left."""
        await self._news.wait()

    def _changed(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

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
            self.called[guest] += 1
            self._changed()
            try:
                with contextlib.suppress(ProtocolError, trio.BrokenResourceError):  # it is gone, which Spark finds out
                    await self._listen(guest, stream, FrameDecoder(keys.receiving))
            finally:
                del self.guests[guest]
                self._changed()

    async def _shake_hands(self, stream: trio.SocketStream) -> tuple[int, Keys]:
        listener = Listener(Identity(self.secret, HOME_DIGEST, HOME))
        await stream.send_all(listener.answer(await _exactly(stream, GREETING_SIZE)))
        guest, keys = listener.finish(await _exactly(stream, PROOF_SIZE))
        if guest in self.guests or guest not in self.numbers:
            raise ProtocolError(f"guest {guest} is connected already, or is none of ours")
        return guest, keys

    async def _listen(self, guest: int, stream: trio.SocketStream, decoder: FrameDecoder) -> None:
        lines = {OUT: LineAssembler(), ERR: LineAssembler()}
        try:
            while chunk := await stream.receive_some(min(_CHUNK, len(decoder.buffer()))):
                decoder.buffer()[: len(chunk)] = chunk
                decoder.received(len(chunk))
                while (frame := decoder.take()) is not None:
                    if frame.header == TELL and guest == 0:
                        self.told(codec.decode(frame.body))
                    else:
                        await self._print(frame, lines)
        finally:
            for kind, rest in lines.items():
                self.printers[kind].put(rest.close())

    async def _print(self, frame: Frame, lines: dict[bytes, LineAssembler]) -> None:
        if frame.header not in lines:
            raise ProtocolError("a guest says something that is not for it to say")
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
