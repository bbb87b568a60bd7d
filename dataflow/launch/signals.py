"""Ctrl-C and SIGTERM while processes run: noted at once, and raised where nothing can be left behind by it.

SIGTERM means what Ctrl-C means: everybody ends, and `finally` clauses run. It is raised as `Terminated`.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar, TypeVarTuple

import trio

from dataflow.errors import Terminated
from dataflow.launch.spawning import ENDINGS

A = TypeVarTuple("A")
R = TypeVar("R")


class Signals:
    """Those that came while a set of processes ran."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._token: trio.lowlevel.TrioToken | None = None
        self._news = trio.Event()
        self.on_first: Callable[[], bool] | None = None  # what the first SIGTERM does, if not the end; whether it did

    def note(self, number: int, _: FrameType | None) -> None:
        """Handles a signal: wakes the loop that watches for it, if there is one."""
        self._received.append(number)
        if self._token is not None:
            with contextlib.suppress(trio.RunFinishedError):  # whoever comes next will ask for its meaning
                self._token.run_sync_soon(self._news.set)

    async def watch(self) -> None:
        """Raises what the first of them means, as soon as it arrives. A first SIGTERM may mean something else."""
        self._token = trio.lowlevel.current_trio_token()
        while True:
            if not self._received:
                await self._news.wait()
            if self._received != [signal.SIGTERM] or self.on_first is None:
                break
            first, self.on_first = self.on_first, None
            self._news = trio.Event()
            if not first():
                break
            del self._received[0]  # not all: another may have come while the first was acted upon
        meaning = self.meaning()
        assert meaning is not None
        raise meaning

    @property
    def impatient(self) -> bool:
        """Whether there was more than one."""
        return len(self._received) > 1

    def meaning(self) -> BaseException | None:
        """What is to be raised because of them, if there were any."""
        if signal.SIGTERM in self._received:
            return Terminated("this process received SIGTERM")
        return KeyboardInterrupt() if self._received else None


@contextmanager
def signals_noted() -> Iterator[Signals]:
    """Ctrl-C and SIGTERM are only noted meanwhile, if they would have ended this process.

    Handlers of the program's own stay, and what is ignored stays ignored. Only the main thread hears of signals.
    """
    signals = Signals()
    in_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in ENDINGS if in_main and _would_end(number)}
    try:
        for number in before:
            signal.signal(number, signals.note)
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _would_end(number: int) -> bool:
    handler = signal.getsignal(number)
    if number == signal.SIGTERM:
        return handler is signal.SIG_DFL
    return handler is signal.default_int_handler or (callable(handler) and _in_asyncio())


def _in_asyncio() -> bool:
    """Whether asyncio runs here: its handler of Ctrl-C waits for its loop, which we keep from running."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """SIGTERM interrupts what runs in this process as Ctrl-C would, and is then raised as Terminated."""
    if threading.current_thread() is not threading.main_thread() or not _would_end(signal.SIGTERM):
        yield
        return
    terminated = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal terminated
        terminated = True
        handler = signal.getsignal(signal.SIGINT)  # trio's, which knows where it can be raised
        if not callable(handler):
            raise KeyboardInterrupt  # Ctrl-C is ignored here
        handler(signal.SIGINT, frame)

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if not terminated:
            raise
        raise Terminated("this process received SIGTERM") from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def wakeups_lent() -> Iterator[None]:
    """Another loop of this thread (asyncio, in a notebook) may be told of signals through a descriptor: not now."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


def run_trio(function: Callable[[*A], Awaitable[R]], *args: *A) -> R:
    """`trio.run`, also where asyncio runs in this thread."""
    with wakeups_lent():
        return trio.run(function, *args)
