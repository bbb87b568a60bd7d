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
import os
import signal
import socket
import sys
import types
from typing import NoReturn

from dataflow.compiled.ahead import load_ahead
from dataflow.compiled.telling import Voice, teller
from dataflow.launch.child import Ends, Load
from dataflow.launch.descent import end_with_parent, fork
from dataflow.launch.errand import FOR_PARCEL, Errand, receive_descriptors, receive_ends, receive_message, tell_failure
from dataflow.launch.forking import Forks
from dataflow.launch.lines import print_lines
from dataflow.launch.parcel import unpack
from dataflow.launch.threads import has_threads
from dataflow.run.logs import begin_logging


def serve(connection: int, parent: int) -> NoReturn:
    """The life of this process. `connection`: a descriptor, to the supervisor. `parent`: the supervisor's number."""
    end_with_parent(parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the caller may ignore it, and this process would inherit that
    print_lines()
    control = socket.socket(fileno=connection)
    status = 1
    try:
        errand = Errand.decode(receive_message(control))
        teller.speak_as(Voice(errand.settings.terminal))
        begin_logging(errand.settings.log)
        (parcel,) = receive_descriptors(control, FOR_PARCEL, 1)
        ends = receive_ends(control, errand.workers)
        sys.argv[:] = errand.argv
        sys.modules["__main__"] = types.ModuleType("__main__")
        load = _open(parcel, control, ends, errand.life > 0)
        with Forks(control, errand, ends, load) as forks:
            try:
                forks.start_all()
            except BaseException as error:  # the supervisor ends those that have started
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


def _open(parcel: int, control: socket.socket, ends: dict[int, Ends], replaces: bool) -> Load:
    """Reads the parcel, and returns the function by which a worker gets what was in it. The process that this returns
    in has no threads. `replaces`: workers that end are replaced, and then nobody should have to wait for imports.

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
        if replaces:
            load_ahead()
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
