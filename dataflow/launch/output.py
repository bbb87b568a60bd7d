"""What a process prints, on its way to the supervisor's own streams."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass

from dataflow.launch.lines import LineAssembler
from dataflow.launch.printer import Printer

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Output:
    """One stream of one process: the end of a pipe that we read, and where its lines go."""

    fd: int
    printer: Printer
    lines: LineAssembler

    def print_some(self) -> bool:
        """Passes on what can be read without waiting; False at the end."""
        try:
            chunk = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        self.printer.put(self.lines.feed(chunk) if chunk else self.lines.close())
        return bool(chunk)

    def drain(self, whole: bool = False) -> None:
        """Passes on what has been printed, without waiting: a process must not hang on a full pipe while it ends.

        `whole`: all of it, even if the printer is full. Pipes of processes that have ended hold little.
        """
        os.set_blocking(self.fd, False)
        while (whole or not self.printer.full) and self._more() and self.print_some():
            pass

    def close(self) -> None:
        """Passes on the rest of a line, and closes the pipe."""
        try:
            self.printer.put(self.lines.close())
        finally:
            os.close(self.fd)

    def _more(self) -> bool:
        poll = select.poll()  # not select.select, which knows no descriptor above 1,023
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(0))


def make_output(printer: Printer, prefix: str = "") -> tuple[Output, int]:
    """A new pipe: what is printed into its other end, whose number is given, comes out of this one."""
    read_end, write_end = os.pipe()
    return Output(read_end, printer, LineAssembler(prefix)), write_end
