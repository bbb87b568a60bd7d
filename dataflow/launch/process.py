"""A worker's process, as its supervisor sees it; and how workers are run."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass, field

import trio

from dataflow.compiled.telling import on_a_terminal
from dataflow.launch.output import Output


@dataclass(frozen=True, slots=True)
class Settings:
    """How workers are run. Times are in seconds."""

    debug: bool = False
    limit: int = 64 << 20  # bytes of data on their way from one worker, see dataflow.comm.flow
    prefix: bool = False  # whether printed lines say which worker printed them
    grace: float = 2.0  # how long workers may take to end when told to
    patience: float = 5.0  # how long a worker may be stopped, or a host silent, before it is given up
    warn_after: float | None = 10.0  # how long nothing may move before a worker says what it waits for; None: for ever
    terminal: bool = field(default_factory=on_a_terminal)  # whether what workers say on stderr is seen on one


@dataclass(slots=True)
class Process:
    """One worker's process, as its supervisor sees it."""

    index: int
    control: socket.socket
    outputs: list[Output]
    pid: int | None = None  # None: it has not started
    status: int | None = None  # None: it has not ended
    ended: trio.Event = field(default_factory=trio.Event)

    def exited(self, status: int) -> None:
        """It has ended, and that is how."""
        self.status = status
        self.ended.set()

    def stop(self) -> None:
        """Asks the worker to end: it will be told nothing more."""
        try:
            self.control.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has ended already

    def kill(self) -> None:
        """Ends the process at once. Its number is its own as long as the process that forked it lives."""
        if self.pid is not None and self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return  # it has ended with that process

    def stopped(self) -> bool:
        """Whether the process is stopped by a signal (SIGSTOP), where the system tells."""
        return self.pid is not None and self.status is None and is_stopped(self.pid)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal (SIGSTOP), where the system tells."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False
