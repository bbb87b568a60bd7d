"""Ending processes, whatever happened: ask them to stop, wait a moment, kill what is left, reap all.

Each step is taken, whatever the ones before it came to: nothing that goes wrong may leave a process behind.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

from dataflow.launch.starting import Crew, Zygote


class Steps:
    """Steps of which each is taken, and what went wrong in them."""

    def __init__(self) -> None:
        self.troubles: list[Exception] = []

    def take(self, step: Callable[..., object], *args: object) -> None:
        """Takes a step, and notes what it raises."""
        try:
            step(*args)
        except Exception as error:
            self.troubles.append(error)


def end(crew: Crew, grace: float) -> list[Exception]:
    """Ends every process that is left, takes what they still had to print, and closes everything.

    Whatever happens meanwhile, no process is left. Returns what went wrong.
    """
    steps = Steps()
    zygote = crew.zygote
    if zygote is not None:
        steps.take(_stop, crew, zygote, grace)
        for process in crew.processes:
            steps.take(process.kill)
        steps.take(_wait, crew, zygote, grace)
        steps.take(zygote.end, grace)
    for output in crew.outputs:
        steps.take(output.drain, True)
        steps.take(output.close)
    for process in crew.processes:
        steps.take(process.control.close)
    return steps.troubles


def finish_printing(crew: Crew, patience: float | None) -> list[Exception]:
    """Waits until everything is printed, for whoever reads it; for `patience` seconds at most, unless that is None.

    What kept it from being printed.
    """
    return [trouble for printer in (crew.stdout, crew.stderr) if (trouble := printer.finish(patience)) is not None]


def _stop(crew: Crew, zygote: Zygote, grace: float) -> None:
    """Asks the workers to stop, and gives them a moment for their `finally` clauses."""
    for process in crew.running:
        process.stop()
    _wait(crew, zygote, grace)


def _wait(crew: Crew, zygote: Zygote, seconds: float) -> None:
    """Waits until all have ended, or nothing more will be heard of them. A worker must not hang on a full pipe."""
    deadline = time.monotonic() + seconds
    zygote.hear(crew.processes)
    while crew.running and not zygote.lost and time.monotonic() < deadline:
        for output in crew.outputs:
            output.drain()
        poll = select.poll()
        poll.register(zygote.control, select.POLLIN)
        poll.poll(10)  # milliseconds
        zygote.hear(crew.processes)
