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
import os
import signal
import socket
import sys
import types
from typing import NoReturn

from dataflow.compiled.telling import Voice, teller
from dataflow.launch.child import Ends, Load
from dataflow.launch.descent import end_with_parent
from dataflow.launch.errand import FOR_PARCEL, Errand, receive_descriptors, receive_ends, receive_message, tell_failure
from dataflow.launch.forking import Forks
from dataflow.launch.lines import print_lines
from dataflow.launch.parcel import unpack
from dataflow.launch.threads import has_threads


def serve(connection: int, parent: int) -> NoReturn:
    """The life of this process. `connection`: to the supervisor, which is the process `parent`."""
    end_with_parent(parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the caller may ignore it, and we would inherit that
    print_lines()
    control = socket.socket(fileno=connection)
    status = 1
    try:
        errand = Errand.decode(receive_message(control))
        teller.speak_as(Voice(errand.settings.terminal))
        (parcel,) = receive_descriptors(control, FOR_PARCEL, 1)
        ends = receive_ends(control, errand.workers)
        sys.argv[:] = errand.argv
        sys.modules["__main__"] = types.ModuleType("__main__")
        load = _open(parcel, control, ends)
        with Forks(control, errand, ends, load) as forks:
            try:
                forks.start_all()
            except BaseException as error:  # those that have started are ended by the supervisor
                tell_failure(control, error)
            forks.watch()
        status = 0
    except BaseException as error:  # whatever it is, the supervisor is told, and this process ends
        tell_failure(control, error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(status)


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
