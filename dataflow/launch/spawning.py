"""Spawning the zygote, the process that workers are forked from.

The zygote is a new program (exec), so nothing that the caller has becomes part of it: no threads, no locks, no JVM, no
loop. It gets the caller's interpreter with its options, environment, working directory and module path. To load the
engine takes it longer than everything else that it does, so it is spawned first of all, and the caller loads what it
needs itself meanwhile: hence this module imports nothing but what every interpreter has at hand.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dataflow.errors import DataflowError

ENDINGS = (signal.SIGINT, signal.SIGTERM)
_CODE = """\
import gc, sys
gc.disable()
connection, parent, *sys.path = sys.argv[1:]
from dataflow.launch.zygote import serve
serve(int(connection), int(parent))
"""


class Spawned:
    """A process that has not been told yet what it is for."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, outputs: list[int]) -> None:
        """`outputs`: descriptors from which what it prints is read, standard output first."""
        self.process = process
        self.control = control
        self.outputs = outputs
        self.taken = False  # whether somebody else ends it

    def abandon(self) -> None:
        """Ends a process that nobody has taken."""
        if not self.taken:
            self.taken = True
            self.control.close()
            for fd in self.outputs:
                os.close(fd)
            self.process.kill()
            self.process.wait()


@contextmanager
def spawning() -> Iterator[Spawned | None]:
    """Spawns a process for whoever takes it inside; it is ended if nobody has. None if that cannot be done, as will be
    found out, and said, where it is needed."""
    spawned: Spawned | None = None
    try:
        with _endings_put_off(), contextlib.suppress(OSError):
            spawned = spawn()
        yield spawned
    finally:
        if spawned is not None:
            spawned.abandon()


@contextmanager
def _endings_put_off() -> Iterator[None]:
    """Ctrl-C and SIGTERM that come meanwhile are raised afterwards, if they would have ended this process. (To block
    them is not enough: where there are other threads, one of these gets the signal, and the main thread raises.)"""
    received: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    ending = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: handler for number in ENDINGS if in_main and (handler := signal.getsignal(number)) in ending}
    try:
        for number in before:
            signal.signal(number, lambda number, _: received.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in received[:1]:
            signal.raise_signal(first)


def spawn() -> Spawned:
    """Starts the process. Ctrl-C and SIGTERM stay blocked in it: only the supervisor acts on them."""
    if not sys.executable:
        raise DataflowError("workers are started with sys.executable, which is not set: set it to a Python interpreter")
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        mine, control = socket.socketpair()
        ours.callback(mine.close)
        theirs.enter_context(control)
        outputs, ends = [], []
        for _ in range(2):
            read_end, write_end = os.pipe()
            ours.callback(os.close, read_end)
            theirs.callback(os.close, write_end)
            outputs.append(read_end)
            ends.append(write_end)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
        try:
            process = subprocess.Popen(
                _command(control.fileno()),
                stdin=None,  # ours, for a source that reads it
                stdout=ends[0],
                stderr=ends[1],
                pass_fds=[control.fileno()],
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        ours.pop_all()
        return Spawned(process, mine, outputs)


def _command(connection: int) -> list[str]:
    """The interpreter with the options of this one (-P: the working directory must not shadow anything)."""
    options: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *options, "-P", "-c", _CODE, str(connection), str(os.getpid()), *map(str, sys.path)]
