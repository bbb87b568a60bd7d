"""A worker's process, as its supervisor sees it; and how workers are run."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass, field

from dataflow.compiled.telling import on_a_terminal
from dataflow.launch.lines import LineAssembler
from dataflow.launch.printer import Printer

_CHUNK = 1 << 16


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


@dataclass
class Process:
    """One worker's process, as its supervisor sees it."""

    index: int
    pid: int
    control: socket.socket
    outputs: dict[int, tuple[Printer, LineAssembler]] = field(default_factory=dict)  # by file descriptor
    status: int | None = None

    def stop(self) -> None:
        """Asks the worker to end."""
        try:
            self.control.send(b"x", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            return  # it has ended already

    def kill(self) -> None:
        """Ends the process at once."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> bool:
        """Whether the process has ended (and been reaped)."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def print_some(self, fd: int) -> bool:
        """Passes on what the worker printed and can be read without waiting; False at the end."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        printer, lines = self.outputs[fd]
        printer.put(lines.feed(chunk) if chunk else lines.close())
        return bool(chunk)

    def stopped(self) -> bool:
        """Whether the process is stopped by a signal (SIGSTOP), where the system tells."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                return stat.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
        except OSError:
            return False
