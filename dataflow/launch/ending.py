"""Ending processes, whatever happened: ask them to stop, wait a moment, kill what is left, reap all."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable

from dataflow.launch.printer import Printer
from dataflow.launch.process import Process


def end(processes: list[Process], grace: float) -> OSError | None:
    """Ends every process that is left, prints what they still had to print, and closes everything.

    Whatever happens meanwhile, no process is left. Returns what kept something from being printed, if anything did.
    Printing may have to wait for whoever reads it: a second Ctrl-C ends that.
    """
    interrupts = _hold_interrupts()
    try:
        running = [process for process in processes if not process.poll()]
        for process in running:
            process.stop()
        deadline = time.monotonic() + grace
        while running and time.monotonic() < deadline:
            _drain(running)
            running = [process for process in running if not process.poll()]
            if running:
                time.sleep(0.01)
        for process in running:
            process.kill()
        for process in running:
            while not process.poll():
                time.sleep(0.001)
        _drain(processes, whole=True)
        for process in processes:
            process.control.close()
            for fd, (printer, lines) in process.outputs.items():
                printer.put(lines.close())
                os.close(fd)
    finally:
        interrupts()
    troubles = [printer.finish() for printer in printers(processes)]
    return next((trouble for trouble in troubles if trouble is not None), None)


def printers(processes: list[Process]) -> list[Printer]:
    """Those that print what these processes print, each once."""
    return list(dict.fromkeys(printer for process in processes for printer, _ in process.outputs.values()))


def _drain(processes: list[Process], whole: bool = False) -> None:
    """Takes what has been printed, without waiting: a worker must not hang on a full pipe while it ends.

    `whole`: all of it, however much is waiting to be read by others already. Pipes of processes that have ended hold
    little.
    """
    for process in processes:
        for fd, (printer, _) in process.outputs.items():
            os.set_blocking(fd, False)
            while (whole or not printer.full) and _more(fd) and process.print_some(fd):
                pass


def _more(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


def _hold_interrupts() -> Callable[[], None]:
    """A second Ctrl-C must not leave processes behind: it is ignored while they are ended, which takes a moment."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def restore() -> None:
        signal.signal(signal.SIGINT, before)

    return restore
