"""Byte streams between two processes, as links use them: sockets, bare or wrapped in TLS."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

import trio

Piece = bytes | memoryview
_MOST_PIECES = 64  # in one call of sendmsg; the system's limit is larger


class Pipe(Protocol):
    """A connected byte stream."""

    pollable: bool  # whether `try_receive_into` can receive anything

    def try_send(self, pieces: Sequence[Piece]) -> int:
        """Sends what can be sent without waiting; how many bytes that were. Raises OSError if the peer is gone."""

    async def send_some(self, pieces: Sequence[Piece]) -> int:
        """Waits until something can be sent, and sends that; how many bytes that were."""

    async def receive_into(self, buffer: Callable[[], memoryview]) -> int:
        """Waits for bytes and puts them into the buffer; how many, or 0 at the end. Always a checkpoint.

        The buffer is asked for when the bytes are there: somebody else may have received some in the meantime.
        """

    def try_receive_into(self, buffer: memoryview) -> int | None:
        """The same without waiting; None if there are none now."""

    async def close(self) -> None:
        """Ends the stream, whatever was on its way."""


class SocketPipe:
    """A socket. Sends and receives in place: between the kernel and the caller's memory nothing is copied."""

    pollable = True

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    def try_send(self, pieces: Sequence[Piece]) -> int:
        """Sends what fits into the kernel's buffer."""
        try:
            return self._socket.sendmsg(pieces[:_MOST_PIECES])
        except BlockingIOError:
            return 0

    async def send_some(self, pieces: Sequence[Piece]) -> int:
        """Waits for room in the kernel's buffer."""
        while True:
            await trio.lowlevel.wait_writable(self._socket)
            sent = self.try_send(pieces)
            if sent:
                return sent

    async def receive_into(self, buffer: Callable[[], memoryview]) -> int:
        """Waits for bytes."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            count = self.try_receive_into(buffer())
            if count is not None:
                return count

    def try_receive_into(self, buffer: memoryview) -> int | None:
        """Takes what the kernel has."""
        try:
            return self._socket.recv_into(buffer)
        except BlockingIOError:
            return None

    async def close(self) -> None:
        """Closes the socket, waking whoever waits for it."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
        await trio.lowlevel.cancel_shielded_checkpoint()


class StreamPipe:
    """Any trio stream, in practice TLS, which encrypts a copy of what it sends and so cannot work in place."""

    pollable = False

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    def try_send(self, pieces: Sequence[Piece]) -> int:
        """Nothing can be sent without waiting."""
        return 0

    async def send_some(self, pieces: Sequence[Piece]) -> int:
        """Sends the first piece, or several small ones at once."""
        together = bytearray()
        for piece in pieces:
            if together and len(together) + len(piece) > 1 << 16:
                break
            together += piece[: 1 << 20]
            if len(piece) > 1 << 20:
                break
        await self._stream.send_all(together)
        return len(together)

    async def receive_into(self, buffer: Callable[[], memoryview]) -> int:
        """Waits for bytes."""
        data = await self._stream.receive_some(len(buffer()))
        buffer()[: len(data)] = data
        return len(data)

    def try_receive_into(self, buffer: memoryview) -> int | None:
        """Nothing can be received without waiting."""
        return None

    async def close(self) -> None:
        """Closes without the farewell that TLS would like to wait for: ours is a frame of its own."""
        await trio.aclose_forcefully(self._stream)
