"""What the process does that workers are forked from.

The caller may have threads, a JVM, locks that are held: its forks would hang. So it starts this process afresh (by
exec; see `starting`), which has the engine loaded and no threads. It opens the parcel with main and what main uses,
forks the workers, and tells the supervisor who has started and who has ended. It lives as long as they do; if it is
killed the kernel kills them, and if the supervisor is killed the kernel kills it.

Reading the parcel imports the program's modules, once for all workers. Where that starts threads, workers cannot be
forked from here any more: a fork that was made before takes over, and each worker reads the parcel by itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import sys
import types
from dataclasses import dataclass
from typing import NoReturn

from dataflow.comm import codec
from dataflow.compiled.telling import Voice, teller
from dataflow.errors import TooManyWorkers
from dataflow.launch import report
from dataflow.launch.child import Ends, Load
from dataflow.launch.descent import end_with_parent
from dataflow.launch.forking import Forks
from dataflow.launch.framing import frame
from dataflow.launch.lines import print_lines
from dataflow.launch.parcel import unpack
from dataflow.launch.process import Settings
from dataflow.launch.threads import has_threads

FOR_PARCEL, FOR_WORKER = b"p", b"w"  # what descriptors are sent for: one of the parcel, three of each worker
_LENGTH = 8  # bytes before a message that say how long it is


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be started: plain data, which is read before the parcel is opened."""

    workers: range
    peers: int
    settings: Settings
    argv: list[str]

    def encode(self) -> bytes:
        """For the way to the zygote."""
        of = self.settings
        settings = [of.debug, of.limit, of.warn_after, of.terminal]
        return codec.encode([self.workers.start, self.workers.stop, self.peers, settings, self.argv])

    @classmethod
    def decode(cls, data: bytes) -> Errand:
        """What was encoded."""
        start, stop, peers, (debug, limit, warn_after, terminal), argv = codec.decode(data)
        settings = Settings(debug, limit, warn_after=warn_after, terminal=terminal)
        return cls(range(start, stop), peers, settings, argv)


def serve(connection: int, parent: int) -> NoReturn:
    """The life of this process. `connection`: to the supervisor, which is the process `parent`."""
    end_with_parent(parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the caller may ignore it, and we would inherit that
    print_lines()
    control = socket.socket(fileno=connection)
    status = 1
    try:
        errand = Errand.decode(_receive_message(control))
        teller.speak_as(Voice(errand.settings.terminal))
        parcel, ends = _receive_ends(control, errand.workers)
        sys.argv[:] = errand.argv
        sys.modules["__main__"] = types.ModuleType("__main__")
        load = _open(parcel, control, ends)
        with Forks(control, errand.workers, errand.peers, errand.settings, ends, load) as forks:
            try:
                forks.start_all()
            except BaseException as error:  # those that have started are ended by the supervisor
                _tell(control, error)
            forks.watch()
        status = 0
    except BaseException as error:  # whatever it is, the supervisor is told, and this process ends
        _tell(control, error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(status)


def _tell(control: socket.socket, error: BaseException) -> None:
    """Reports a failure."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        error = TooManyWorkers(
            f"the process that starts workers may have {limit:,} open files, and needs more: start fewer workers, or "
            "raise the limit first (ulimit -n)"
        )
    with contextlib.suppress(OSError):  # the supervisor is gone: nobody is left to tell
        control.sendall(frame(report.encode_failure(error)))


# What the supervisor sends


def _receive_message(control: socket.socket) -> bytes:
    length = int.from_bytes(_exactly(control, _LENGTH), "little")
    return _exactly(control, length)


def _exactly(control: socket.socket, size: int) -> bytes:
    """So many bytes, and not one more: descriptors come with those that follow."""
    received = b""
    while len(received) < size:
        chunk = control.recv(size - len(received))
        if not chunk:
            os._exit(1)  # the supervisor has changed its mind
        received += chunk
    return received


def _receive_ends(control: socket.socket, workers: range) -> tuple[int, dict[int, Ends]]:
    """The descriptor of the parcel, and the worker's ends of its connections with the supervisor."""
    (parcel,) = _receive_descriptors(control, FOR_PARCEL, 1)
    ends = {}
    for index in workers:
        connection, stdout, stderr = _receive_descriptors(control, FOR_WORKER, 3)
        ends[index] = Ends(socket.socket(fileno=connection), stdout, stderr)
    return parcel, ends


def _receive_descriptors(control: socket.socket, purpose: bytes, count: int) -> list[int]:
    said, descriptors, _, _ = socket.recv_fds(control, 1, count)
    if not said:
        os._exit(1)  # the supervisor has changed its mind
    if len(descriptors) < count:  # the system drops those that may not be opened
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    assert said == purpose
    return list(descriptors)


# Main, and what it uses


def _open(parcel: int, control: socket.socket, ends: dict[int, Ends]) -> Load:
    """Reads the parcel; how a worker gets what was in it. Returns in a process that has no threads.

    Reading it imports modules of the program's and calls their code. If that starts threads, a fork that was made
    before goes on in place of this process, which stays only as its parent.
    """
    waiting, go_on = os.pipe()
    parent = os.getpid()
    spare = os.fork()
    if spare == 0:
        end_with_parent(parent)
        os.close(go_on)
        if not os.read(waiting, 1):
            os._exit(0)
        os.close(waiting)
        return lambda: unpack(parcel)  # each worker reads it by itself
    os.close(waiting)
    try:
        cargo = unpack(os.dup(parcel))
        threads = has_threads()
        if threads:
            os.write(go_on, b"x")
            _close(control, ends)
    finally:
        os.close(go_on)
        _, status = os.waitpid(spare, 0)
    if threads:
        os._exit(abs(os.waitstatus_to_exitcode(status)))
    os.close(parcel)
    return lambda: cargo


def _close(control: socket.socket, ends: dict[int, Ends]) -> None:
    control.close()
    for end in ends.values():
        end.close()
