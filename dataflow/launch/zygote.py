"""The zygote: the process that workers are forked from, and what it does.

The caller may have threads, a JVM, or locks that are held: its forks would hang. So the caller starts this process
afresh (by exec; see `starting`). The zygote has the engine loaded, and no threads. It opens the parcel with main and
what main uses, forks the workers, and tells the supervisor who has started and who has ended. It lives as long as they
do. If the zygote is killed, the kernel kills the workers; if the supervisor is killed, the kernel kills the zygote.

Reading the parcel imports the program's modules, once for all workers. If that starts threads, workers cannot be forked
from this process any more. Then a fork that was made before takes over, and each worker reads the parcel by itself.
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
from dataflow.launch.descent import end_with_parent, fork
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
        """As bytes, for the zygote."""
        of = self.settings
        settings = [of.debug, of.limit, of.warn_after, of.terminal]
        return codec.encode([self.workers.start, self.workers.stop, self.peers, settings, self.argv])

    @classmethod
    def decode(cls, data: bytes) -> Errand:
        """The errand that was encoded."""
        start, stop, peers, (debug, limit, warn_after, terminal), argv = codec.decode(data)
        settings = Settings(debug, limit, warn_after=warn_after, terminal=terminal)
        return cls(range(start, stop), peers, settings, argv)


def serve(connection: int, parent: int) -> NoReturn:
    """The life of this process. `connection`: a descriptor, to the supervisor. `parent`: the supervisor's number."""
    end_with_parent(parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the caller may ignore it, and this process would inherit that
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
            except BaseException as error:  # the supervisor ends those that have started
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
    """So many bytes, and not one more: descriptors come with the bytes that follow."""
    received = b""
    while len(received) < size:
        chunk = control.recv(size - len(received))
        if not chunk:
            os._exit(1)  # the supervisor has closed the connection: nothing is to be started any more
        received += chunk
    return received


def _receive_ends(control: socket.socket, workers: range) -> tuple[int, dict[int, Ends]]:
    """The descriptor of the parcel, and by worker its ends of its connections with the supervisor."""
    (parcel,) = _receive_descriptors(control, FOR_PARCEL, 1)
    ends = {}
    for index in workers:
        connection, stdout, stderr = _receive_descriptors(control, FOR_WORKER, 3)
        ends[index] = Ends(socket.socket(fileno=connection), stdout, stderr)
    return parcel, ends


def _receive_descriptors(control: socket.socket, purpose: bytes, count: int) -> list[int]:
    said, descriptors, _, _ = socket.recv_fds(control, 1, count)
    if not said:
        os._exit(1)  # the supervisor has closed the connection: nothing is to be started any more
    if len(descriptors) < count:  # the system drops descriptors beyond the limit of open files
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    assert said == purpose
    return list(descriptors)


# Main, and what it uses


def _open(parcel: int, control: socket.socket, ends: dict[int, Ends]) -> Load:
    """Reads the parcel, and returns the function by which a worker gets what was in it. The process that this returns
    in has no threads.

    Reading the parcel imports modules of the program, and so runs their code. If that starts threads, a fork that was
    made before returns from here, and this process only waits for that fork to end.
    """
    waiting, go_on = os.pipe()
    parent = os.getpid()
    spare = fork()
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
