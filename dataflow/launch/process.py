"""A worker's process, as its supervisor sees it; and how workers are run."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections import deque
from dataclasses import dataclass, field

import trio

from dataflow.asking.messages import Question, decode_answer, encode_question
from dataflow.compiled.telling import on_a_terminal
from dataflow.launch.orders import Ask, Order
from dataflow.launch.output import Output
from dataflow.launch.questions import Questions
from dataflow.run.signal import Signal


@dataclass(frozen=True, slots=True)
class Settings:
    """How workers are run. Times are in seconds."""

    debug: bool = False
    limit: int = 64 << 20  # bytes of data on their way from one worker, see dataflow.comm.flow
    prefix: bool = False  # whether printed lines say which worker printed them
    grace: float = 2.0  # how long workers may take to end when told to
    patience: float = 5.0  # how long a worker may be stopped, or a host silent, before it is given up
    warn_after: float | None = 10.0  # how long nothing may move before a worker says what it waits for; None: for ever
    health: tuple[str, int] | None = None  # where cluster managers may ask whether this host is ready, see `health`
    terminal: bool = field(default_factory=on_a_terminal)  # whether what workers say on stderr is seen on one
    log: str = ""  # how workers log: a level, and perhaps json; empty: as Python does by itself


@dataclass(slots=True)
class Process:
    """One worker's process, as its supervisor sees it."""

    index: int
    control: socket.socket
    outputs: list[Output]
    pid: int | None = None  # None: it has not started
    status: int | None = None  # None: it has not ended
    ended: trio.Event = field(default_factory=trio.Event)
    unsent: deque[Order] = field(default_factory=deque)
    news: Signal = field(default_factory=Signal)  # there is something to send
    questions: Questions = field(default_factory=Questions)

    def say(self, order: Order) -> None:
        """Leaves an order to be sent (see `watching`)."""
        self.unsent.append(order)
        self.news.set()

    async def ask(self, question: Question) -> object:
        """What the worker answers. Refused if it does not."""
        return decode_answer(await self.ask_bytes(encode_question(question)))

    async def ask_bytes(self, question: bytes) -> bytes:
        """The same, encoded both ways."""
        with self.questions.asked() as asked:
            self.say(Ask(asked.number, question))
            return await asked.wait_bytes()

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

    def terminate(self) -> None:
        """Has the worker leave the others, if it can; else, and the second time, end with all of them."""
        if self.pid is not None and self.status is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(self.pid, signal.SIGTERM)

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
