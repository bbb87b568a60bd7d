"""Rings: streams of bytes between two workers of one host, in memory that they share (see `hall`).

A ring holds what was written and not yet read; positions count bytes, and only grow. Its reader is told by a word how
far it is written, its writer by another how far it is read. A writer that finds no room says so, and the reader rings
its bell when there is some.

A socket between the two stays: through it they wake each other, and by its end each learns that the other has ended.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence

import trio

from dataflow.comm.frames import FrameError
from dataflow.comm.hall import WEAK, Hall, fence
from dataflow.comm.pipes import Piece
from dataflow.run.signal import Signal

_SMALL = 1 << 12  # bytes: pieces of no more together are joined before they are copied


class RingPipe:
    """A ring in each direction, as a pipe. All those of a worker are read together (see `gathering`)."""

    pollable = True

    def __init__(self, hall: Hall, theirs: int, sock: socket.socket, peer: int) -> None:
        """`theirs`: the slot of worker `peer`. `sock`: connected with it."""
        sock.setblocking(False)
        mine, n = hall.slot, hall.slots
        self.hall = hall
        self.slot = theirs
        self._socket = sock
        self._peer = peer
        self._size = hall.plan.ring_size
        self._out = hall.ring(mine, theirs)
        self._in = hall.ring(theirs, mine)
        self._mine_theirs, self._theirs_mine = mine * n + theirs, theirs * n + mine  # places in tables, see `Hall`
        self._written = 0
        self._room_until = self._size  # what may be written, as far as is known
        self.position = 0  # bytes read
        self._room = Signal()

    # Writing

    def try_send(self, pieces: Sequence[Piece]) -> int:
        """Writes what there is room for. The peer's bell is not rung (`knock`)."""
        size = len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
        room = self._room_until - self._written
        if size > room:
            room = self._look_for_room(size)
            if not room:
                return 0
        if size <= room and size < _SMALL:
            self._put(b"".join(pieces))  # which copies nothing if it is one piece of bytes
        else:
            size = left = min(size, room)
            for piece in pieces:
                part = memoryview(piece).cast("B")[:left]
                self._put(part)
                left -= len(part)
                if not left:
                    break
        if WEAK:
            fence()
        self.hall.heads[self._theirs_mine] = self._written
        return size

    def _put(self, data: Piece) -> None:
        start = self._written % self._size
        stop = start + len(data)
        if stop <= self._size:
            self._out[start:stop] = data
        else:
            first = self._size - start
            self._out[start:] = data[:first]
            self._out[: stop - self._size] = data[first:]
        self._written += len(data)

    def _look_for_room(self, wanted: int) -> int:
        """How many bytes may be written. If that is less than is wanted, the reader is told that we wait."""
        room = 0
        for attempt in range(2):
            read = self.hall.tails[self._mine_theirs]
            if self._room_until - self._size <= read <= self._written:  # or the reader lies, and gets nothing more
                self._room_until = read + self._size
            room = self._room_until - self._written
            if room >= wanted:
                break
            if not attempt:  # after that it must look once more: the reader may be done meanwhile
                self.hall.wants[self._theirs_mine] = 1
                self.hall.blocked[self._go_on] = None
                fence()
        return room

    async def send_some(self, pieces: Sequence[Piece]) -> int:
        """Waits for room, if there is none."""
        while not (sent := self.try_send(pieces)):
            await self._room.wait()
        self.knock()
        await trio.lowlevel.checkpoint()
        return sent

    def _go_on(self) -> None:
        """If there is room now, goes on."""
        if self.hall.tails[self._mine_theirs] != self._room_until - self._size:
            self.hall.blocked.pop(self._go_on, None)
            self._room.set()

    # Reading

    def take(self, head: int) -> bytes:
        """What has been written up to an announced position, which is not what was read before. FrameError if that
        cannot be."""
        count = head - self.position
        if not 0 < count <= self._size:
            raise FrameError(f"worker {self._peer} announces byte {head} of its ring after {self.position}")
        start = self.position % self._size
        stop = start + count
        if WEAK:
            fence()
        if stop <= self._size:
            data = self._in[start:stop].tobytes()
        else:
            data = self._in[start:].tobytes() + self._in[: stop - self._size].tobytes()
        self.position = head
        if WEAK:
            fence()
        self.hall.tails[self._theirs_mine] = head
        return data

    @property
    def wanted(self) -> bool:
        """Whether the peer waits for room, which there is now: its bell is to be rung. Asked once for each `take`."""
        if not self.hall.wants[self._mine_theirs]:
            return False
        self.hall.wants[self._mine_theirs] = 0
        return True

    # The socket

    def knock(self) -> None:
        """Wakes the peer if it wants to be, after something was written."""
        fence()
        if self.hall.bells[self.slot]:
            self.ring_bell()

    def ring_bell(self) -> None:
        """Wakes the peer."""
        self.hall.bells[self.slot] = 0
        with contextlib.suppress(OSError):  # it has ended, which is found out elsewhere, or has many bells to hear
            self._socket.send(b"!")

    async def hear_bell(self) -> bool:
        """Waits until the bell is rung; False when the peer has ended."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return bool(self._socket.recv(1 << 10))
            except BlockingIOError:
                continue
            except OSError:
                return False

    async def receive_into(self, buffer: Callable[[], memoryview]) -> int:
        """A ring is looked at, and never waited for."""
        raise AssertionError("a ring is read by those who look at all of them")

    def try_receive_into(self, buffer: memoryview) -> int | None:
        """A ring is looked at by `take`."""
        raise AssertionError("a ring is read by those who look at all of them")

    async def close(self) -> None:
        """Closes the socket, waking whoever waits for it."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
        await trio.lowlevel.cancel_shielded_checkpoint()
