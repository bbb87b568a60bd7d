"""How the workers of one host reach each other: pairs of sockets, and memory that they share.

The memory is an arena for each (`dataflow.comm.arena`), and a hall (`dataflow.comm.hall`), which those that are started
together have; workers that join later have neither.

The process that forks workers makes both, for each life anew. A worker inherits what was made before it was forked;
the rest is handed over through its post, a connection that it keeps with that process.
"""

from __future__ import annotations

import errno
import mmap
import os
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import trio

from dataflow.comm.arena import Arena
from dataflow.comm.hall import Hall, HallPlan
from dataflow.comm.handshake import Keys
from dataflow.comm.link import Link, SharedArenas
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.ring import RingPipe
from dataflow.errors import TooManyWorkers

_PARCEL = struct.Struct("<IIQ")  # for which life, whom a socket leads to, and the size of each arena, if it is memory
_MEMORY = (1 << 32) - 1  # nobody's number: what is handed over is the memory of all
_BUFFER = 1 << 20  # of the kernel's, for each direction of a connection between two workers
_MOMENT = 0.005  # seconds

Connect = Callable[[], Awaitable[dict[int, Link]]]


@dataclass(slots=True)
class Neighbours:
    """What a worker shares, in one life, with the others of its host: nobody else can have it."""

    index: int  # this worker's
    workers: Sequence[int]  # those that it is to be connected with before it begins, and itself
    sockets: dict[int, socket.socket]  # to those that were connected earlier
    post: socket.socket  # through which those to later ones arrive
    key: bytes
    arenas: dict[int, Arena]  # everybody's, its own as well; empty: they will arrive
    hall: memoryview | None = None  # memory for what they say, if there is any; it arrives with the arenas
    life: int = 1
    _view: Hall | None = None

    async def links(self) -> dict[int, Link]:
        """The links to them, when all have started. Nothing needs proof."""
        await trio.lowlevel.checkpoint()
        self.post.setblocking(False)
        while not self.arenas or len(self.sockets) < len(self.workers) - 1:
            await self._receive()
        return {peer: self._link(peer) for peer in self.sockets}

    async def next_joiner(self) -> tuple[int, Link]:
        """The link to a worker that has been started later, when there is one."""
        known = set(self.sockets)
        while not (new := set(self.sockets) - known):
            await self._receive()
        (peer,) = new
        return peer, self._link(peer)

    def again(self, life: int) -> Neighbours:
        """Closes all connections. What the worker will share with others in another life: nothing yet."""
        self.close()
        return Neighbours(self.index, self.workers, {}, self.post, self.key, {}, None, life)

    def close(self) -> None:
        """Closes all connections."""
        for sock in self.sockets.values():
            sock.close()

    async def _receive(self) -> None:
        """Takes what comes next. The process that starts workers may be gone: the supervisor knows why, and ends us."""
        await trio.lowlevel.wait_readable(self.post)
        try:
            said, descriptors, _, _ = socket.recv_fds(self.post, _PARCEL.size, 1)
        except ConnectionResetError:
            said, descriptors = b"", []
        if not said:
            await trio.sleep_forever()
        self._take(said, descriptors)

    def _take(self, said: bytes, descriptors: list[int]) -> None:
        life, peer, size = _PARCEL.unpack(said)
        if not descriptors:  # the system drops those that may not be opened
            raise TooManyWorkers("this worker may not open as many files as there are workers: raise ulimit -n")
        (descriptor,) = descriptors
        if life != self.life:  # of a life that was over before it began here
            os.close(descriptor)
        elif peer == _MEMORY:
            self.arenas, self.hall = map_memory(descriptor, self.workers, size)
            os.close(descriptor)
        else:
            self.sockets[peer] = socket.socket(fileno=descriptor)

    def _link(self, peer: int) -> Link:
        shared = SharedArenas(self.arenas[self.index], self.arenas[peer]) if peer in self.arenas else None
        if shared is not None and self.hall is not None:
            return Link(self._ring(peer, self.hall), None, peer, shared=shared)
        keys = Keys(direction_key(self.key, self.index, peer), direction_key(self.key, peer, self.index))
        return Link(SocketPipe(self.sockets[peer]), keys, peer, shared=shared)

    def _ring(self, peer: int, memory: memoryview) -> RingPipe:
        slots = {worker: slot for slot, worker in enumerate(self.workers)}
        if self._view is None:
            self._view = Hall(HallPlan(len(slots)), memory, slots[self.index])
        return RingPipe(self._view, slots[peer], self.sockets[peer], peer)


def direction_key(key: bytes, sender: int, receiver: int) -> bytes:
    """The key for frames from one worker to another of the same host."""
    return key + struct.pack("<II", sender, receiver)


# In the process that forks workers


@dataclass(slots=True)
class Introduction:
    """Connects workers for a life, one after the other, each with those before it."""

    life: int
    _posts: dict[int, socket.socket] = field(default_factory=dict)  # to those that have been connected

    def pairs(self) -> dict[int, tuple[socket.socket, socket.socket]]:
        """Connected sockets for one more worker: by each of those before it, the new one's end and theirs."""
        return {peer: connected() for peer in self._posts}

    def settle(self, index: int, post: socket.socket, theirs: dict[int, socket.socket]) -> None:
        """The worker has its ends; the others are sent theirs."""
        for peer, sock in theirs.items():
            hand_over(self._posts[peer], self.life, index, sock)
        self._posts[index] = post

    def admit(self, index: int, post: socket.socket, memory: int, size: int) -> None:
        """Connects a worker that runs already: it is sent everything. `memory`: the descriptor of all arenas."""
        _send(post, _PARCEL.pack(self.life, _MEMORY, size), memory)
        pairs = self.pairs()
        try:
            for peer, (mine, _) in pairs.items():
                hand_over(post, self.life, peer, mine)
            self.settle(index, post, {peer: theirs for peer, (_, theirs) in pairs.items()})
        finally:
            for pair in pairs.values():
                for sock in pair:
                    sock.close()


def hand_over(post: socket.socket, life: int, peer: int, sock: socket.socket) -> None:
    """Sends a worker its end of the connection to `peer`."""
    _send(post, _PARCEL.pack(life, peer, 0), sock.fileno())


def _send(post: socket.socket, parcel: bytes, descriptor: int) -> None:
    while True:
        try:
            socket.send_fds(post, [parcel], [descriptor])
        except (BrokenPipeError, ConnectionResetError):
            return  # it has ended, which the supervisor is told
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            time.sleep(_MOMENT)  # others have not taken theirs yet, and only so many may be on their way
        else:
            return


def connected() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets for two workers."""
    pair = socket.socketpair()
    for sock in pair:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    return pair


def make_memory(workers: range, size: int) -> int:
    """The descriptor of a file in memory, without a name, for the arenas and the hall of workers that are not forked
    after it."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("dataflow")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, len(workers) * size + HallPlan(len(workers)).size)
    return descriptor


def map_memory(descriptor: int, workers: Sequence[int], size: int) -> tuple[dict[int, Arena], memoryview]:
    """The arenas of workers in such a file, and the hall. All lie in one mapping, which is gone when nobody refers to
    any of it. The others write into it, so that nobody can do without."""
    try:
        whole = memoryview(mmap.mmap(descriptor, 0))
    except OSError as error:
        raise TooManyWorkers(
            f"this worker cannot map the memory that it shares with the others of its host ({error}): start fewer "
            "workers, or raise the limit of memory (ulimit -v)"
        ) from None
    arenas = {index: Arena(size, whole[at * size : (at + 1) * size]) for at, index in enumerate(workers)}
    return arenas, whole[len(workers) * size :]
