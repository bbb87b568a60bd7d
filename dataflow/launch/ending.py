"""Ending processes, whatever happened: ask them to stop, wait a moment, kill what is left, reap all."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from dataflow.launch.process import Process


def end(processes: list[Process], grace: float) -> OSError | None:
    """Ends every process that is left, prints what they still had to print, and closes everything.

    Whatever happens meanwhile, no process is left. Returns what kept the last words from being printed, if anything.
    """
    interrupts = _hold_interrupts()
    trouble: list[OSError] = []
    try:
        running = [process for process in processes if not process.poll()]
        for process in running:
            process.stop()
        deadline = time.monotonic() + grace
        while running and time.monotonic() < deadline:
            _drain(running, trouble)
            running = [process for process in running if not process.poll()]
            if running:
                time.sleep(0.01)
        for process in running:
            process.kill()
        for process in running:
            while not process.poll():
                time.sleep(0.001)
        _drain(processes, trouble)
        for process in processes:
            process.control.close()
            for fd, (_, lines) in process.outputs.items():
                _try(trouble, process.print, fd, lines.close())
                os.close(fd)
    finally:
        interrupts()
    return trouble[0] if trouble else None


def _drain(processes: list[Process], trouble: list[OSError]) -> None:
    """Prints what has been printed, without waiting: a worker must not hang on a full pipe while it ends."""
    for process in processes:
        for fd in process.outputs:
            os.set_blocking(fd, False)
            while _more(fd) and _try(trouble, process.print_some, fd):
                pass


def _try(trouble: list[OSError], action: Callable[..., Any], *args: Any) -> Any:
    """What the action returns; True if it could not be done, which is remembered."""
    try:
        return action(*args)
    except OSError as error:
        trouble.append(error)
        return True


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
