"""What a supervisor sends to the process that forks workers: what to start, at first and again.

A message is plain data. Descriptors follow it, each with a byte that says what for.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from dataflow.comm import codec
from dataflow.errors import TooManyWorkers
from dataflow.launch import report
from dataflow.launch.child import Ends
from dataflow.launch.framing import frame
from dataflow.launch.process import Settings

FOR_PARCEL, FOR_WORKER = b"p", b"w"  # what descriptors are sent for: one of the parcel, three of each worker
_LENGTH = 8  # bytes before a message that say how long it is


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be started: plain data, which is read before the parcel is opened."""

    workers: range
    peers: int
    settings: Settings
    argv: list[str]
    joins: bool = False  # whether these workers join others, elsewhere
    life: int = 0  # the first life of these workers, from 1; 0: they have one, and nobody tells them to begin it

    def encode(self) -> bytes:
        """As bytes, for the zygote."""
        of = self.settings
        settings = [of.debug, of.limit, of.warn_after, of.terminal, of.log]
        numbers = [self.workers.start, self.workers.stop, self.peers]
        return codec.encode([*numbers, settings, self.argv, self.joins, self.life])

    @classmethod
    def decode(cls, data: bytes) -> Errand:
        """The errand that was encoded."""
        start, stop, peers, (debug, limit, warn_after, terminal, log), argv, joins, life = codec.decode(data)
        settings = Settings(debug, limit, warn_after=warn_after, terminal=terminal, log=log)
        return cls(range(start, stop), peers, settings, argv, joins, life)


@dataclass(frozen=True, slots=True)
class Anew:
    """Fork these workers, whose processes have ended, and connect all for a life."""

    life: int
    replaced: tuple[int, ...]

    def encode(self) -> bytes:
        """As bytes, for the zygote."""
        return codec.encode([self.life, list(self.replaced)])


@dataclass(frozen=True, slots=True)
class More:
    """Fork these workers, which join those that run. There will be so many members."""

    joiners: tuple[int, ...]
    peers: int

    def encode(self) -> bytes:
        """As bytes, for the zygote."""
        return codec.encode(["more", list(self.joiners), self.peers])


def decode_wish(data: bytes) -> Anew | More:
    """What the supervisor wants."""
    first, *rest = codec.decode(data)
    if first == "more":
        joiners, peers = rest
        return More(tuple(joiners), peers)
    (replaced,) = rest
    return Anew(first, tuple(replaced))


# In the process that forks workers


def receive_message(control: socket.socket) -> bytes:
    """Waits for a whole message of the supervisor's."""
    length = int.from_bytes(_exactly(control, _LENGTH), "little")
    return _exactly(control, length)


def _exactly(control: socket.socket, size: int) -> bytes:
    """So many bytes, and not one more: descriptors come with the bytes that follow."""
    received = b""
    while len(received) < size:
        chunk = control.recv(size - len(received))
        if not chunk:
            os._exit(1)  # the supervisor has closed the connection: nothing is to be started any more
        received += chunk
    return received


def receive_ends(control: socket.socket, workers: Iterable[int]) -> dict[int, Ends]:
    """The workers' ends of their connections with the supervisor."""
    ends = {}
    for index in workers:
        connection, stdout, stderr = receive_descriptors(control, FOR_WORKER, 3)
        ends[index] = Ends(socket.socket(fileno=connection), stdout, stderr)
    return ends


def receive_descriptors(control: socket.socket, purpose: bytes, count: int) -> list[int]:
    """Waits for so many descriptors. OSError if there may not be so many open files."""
    said, descriptors, _, _ = socket.recv_fds(control, 1, count)
    if not said:
        os._exit(1)  # the supervisor has closed the connection: nothing is to be started any more
    if len(descriptors) < count:  # the system drops descriptors beyond the limit of open files
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    assert said == purpose
    return list(descriptors)


def tell_failure(control: socket.socket, error: BaseException) -> None:
    """Reports a failure."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        error = TooManyWorkers(
            f"the process that starts workers may have {limit:,} open files, and needs more: start fewer workers, or "
            "raise the limit first (ulimit -n)"
        )
    with contextlib.suppress(OSError):  # the supervisor is gone: nobody is left to tell
        control.sendall(frame(report.encode_failure(error)))
