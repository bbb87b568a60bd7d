"""A run in the background: it begins at once, and whoever started it goes on."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from dataflow.asking.client import NoSuchRun, ask_run
from dataflow.asking.messages import Question, Refused
from dataflow.commands.asking import PATIENCE, Status
from dataflow.errors import DataflowError, Terminated
from dataflow.execute import check_main, execute
from dataflow.notebook.looks import Look, look
from dataflow.recovery.policy import Recovery
from dataflow.run.readings import WorkerReading
from dataflow.run.worker import A, Worker

R = TypeVar("R")

_KEPT = 120  # looks
_numbers = itertools.count(1)


class LiveRun(Generic[R]):
    """A run. In a notebook it shows itself, with a button that stops it."""

    def __init__(self, name: str, run: Callable[[], list[R]], every: float) -> None:
        self.name = name
        self.looks: deque[Look] = deque(maxlen=_KEPT)
        self._run = run
        self._every = every
        self._results: list[R] | None = None
        self._error: BaseException | None = None
        self._stopping = False
        self._over = threading.Event()
        self._changed: list[Callable[[], None]] = []  # called after each look, from another thread
        self._before: list[WorkerReading] = []
        threading.Thread(target=self._live, name=name, daemon=True).start()
        threading.Thread(target=self._watch, name=f"{name}: looks", daemon=True).start()

    def __repr__(self) -> str:
        rate = sum(flow.rate for flow in self.looks[-1].dataflows) if self.looks and not self.over else 0.0
        return f"<run {self.name}, {self.state}{f', {rate:,.0f} records/s' if rate else ''}>"

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def state(self) -> str:
        """What it does, in a word: running, stopping, done, stopped, failed."""
        if not self.over:
            return "stopping" if self._stopping else "running"
        if self._error is None:
            return "done"
        return "stopped" if self._stopping and isinstance(self._error, Terminated) else "failed"

    @property
    def problem(self) -> str:
        """What it failed with, with notes that say where; nothing if it has not."""
        if self._error is None or self.state != "failed":
            return ""
        notes = getattr(self._error, "__notes__", [])
        return "\n".join([f"{type(self._error).__name__}: {self._error}", *notes])

    def _live(self) -> None:
        try:
            self._results = self._run()
        except BaseException as error:
            self._error = error
        self._over.set()
        self._tell()

    def _watch(self) -> None:
        """Looks at it again and again. One that does not answer is just beginning or ending, or is busy."""
        while not self._over.wait(self._every):
            with suppress(DataflowError, OSError, ValueError):
                now = Status(self.name).workers
                if now:
                    self.looks.append(look(self._before, now))
                    self._before = now
            self._tell()

    def _tell(self) -> None:
        for changed in tuple(self._changed):
            changed()

    def watch(self, changed: Callable[[], None]) -> None:
        """Has a function called after each look, and at the end, from another thread."""
        self._changed.append(changed)

    def stop(self, timeout: float = 30.0) -> None:
        """Ends it: all workers run their `finally` clauses. Waits until it has ended."""
        self._stopping = True
        deadline = time.monotonic() + timeout
        while not self.over:
            with suppress(NoSuchRun, Refused):  # it is just beginning, or has just ended
                ask_run(self.name, Question("stop"), PATIENCE)
                self._over.wait(max(0.0, deadline - time.monotonic()))
            if self._over.wait(0.05):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self!r} was told to stop, and is still there after {timeout:g} seconds")

    def wait(self, timeout: float | None = None) -> list[R]:
        """Waits for its end; what each main returned, or raises what it failed with. One that was stopped gives no
        results."""
        if not self._over.wait(timeout):
            raise TimeoutError(f"{self!r} has not ended after {timeout:g} seconds")
        if self.state == "failed" and self._error is not None:
            raise self._error
        return self._results or []

    # In a notebook

    def _ipython_display_(self) -> None:
        from dataflow.notebook.showing import show

        show(self)


def live(
    main: Callable[[Worker, *A], Awaitable[R]],
    *args: *A,
    workers: int = 1,
    every: float = 0.5,
    name: str | None = None,
    recovery: str | os.PathLike[str] | Recovery | None = None,
) -> LiveRun[R]:
    """Runs `await main(worker, *args)` on each worker in the background, as `dataflow.execute` does, and returns at
    once: a `LiveRun`, which can be stopped, waited for and looked at. As the last line of a cell of a notebook it shows
    itself: rate, latency, frontier and bins, each `every` seconds, with a button that stops it."""
    check_main(main, workers)
    if not every > 0:
        raise ValueError(f"every must be a positive number of seconds, not {every!r}")
    name = name or f"live-{os.getpid()}-{next(_numbers)}"

    def run() -> list[R]:
        return execute(main, *args, workers=workers, recovery=recovery, name=name)

    return LiveRun(name, run, every)
