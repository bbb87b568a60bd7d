"""Giving the zygote, the process that workers are forked from (`spawning`), what it needs.

It gets the descriptor of a parcel with main and what main uses, and the workers' ends of their connections with the
supervisor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

import trio

from dataflow.asking.door import Door
from dataflow.asking.messages import Question
from dataflow.comm import codec
from dataflow.errors import TooManyWorkers, WorkerFailed
from dataflow.launch.descent import no_process
from dataflow.launch.elastic import ElasticHost
from dataflow.launch.errand import FOR_PARCEL, FOR_WORKER, Anew, Errand
from dataflow.launch.framing import cut_message, frame
from dataflow.launch.lines import LineAssembler
from dataflow.launch.orders import Go
from dataflow.launch.output import Output, make_output
from dataflow.launch.printer import Printer
from dataflow.launch.process import Process, is_stopped
from dataflow.launch.report import decode_failure
from dataflow.launch.spawning import Spawned, spawn

_CHUNK = 1 << 16
_FILES_EACH, _FILES_MORE = 3, 7  # files that this process opens for each worker, and besides


@dataclass
class Crew:
    """The processes of this host: those that run workers, and the zygote."""

    workers: range
    stdout: Printer = field(default_factory=lambda: Printer(sys.stdout))
    stderr: Printer = field(default_factory=lambda: Printer(sys.stderr))
    zygote: Zygote | None = None
    processes: list[Process] = field(default_factory=list)
    door: Door | None = None  # where the run is asked, if it has a name
    ask_elsewhere: Callable[[int, Question], Awaitable[object]] | None = None  # how workers of other hosts are asked
    may_leave: bool = False  # whether a run goes on without these workers
    leaving: trio.Event = field(default_factory=trio.Event)  # they were told to leave
    spawned: Spawned | None = None  # a process that is to be the zygote, if there is one already
    go: Go | None = None  # what workers that join are told, if they wait for it
    host: ElasticHost | None = None  # who brings workers from elsewhere, and goes on without those that leave

    def leave(self) -> bool:
        """Has all workers leave those of other hosts, if that can be; whether it can."""
        if self.may_leave:
            self.leaving.set()
            for process in self.running:
                process.terminate()
        return self.may_leave

    @property
    def outputs(self) -> list[Output]:
        """What all of them print."""
        zygote = self.zygote.outputs if self.zygote is not None else []
        return [*zygote, *(output for process in self.processes for output in process.outputs)]

    @property
    def running(self) -> list[Process]:
        """Those that may not have ended."""
        return [process for process in self.processes if process.status is None]


class Zygote:
    """The zygote, as the supervisor sees it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, outputs: list[Output]) -> None:
        self.process = process
        self.control = control
        self.outputs = outputs
        self.lost = False  # whether nothing more will be heard
        self._received = bytearray()

    def hear(self, processes: list[Process]) -> BaseException | None:
        """Takes in what the zygote has said, without waiting: who has started, and who has ended. Returns what failed,
        if anything did."""
        failure: BaseException | None = None
        while (chunk := self._receive()) is not None:
            self._received += chunk
        while (message := cut_message(self._received)) is not None:
            kind, *told = codec.decode(message)
            if kind == "failure":
                failure = failure or decode_failure(None, told)
                continue
            index, value = told
            (process,) = (process for process in processes if process.index == index)
            if kind == "started":
                process.pid = value
            else:
                process.exited(value)
        return failure

    def _receive(self) -> bytes | None:
        try:
            chunk = self.control.recv(_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            chunk = b""
        self.lost = self.lost or not chunk
        return chunk or None

    def obituary(self) -> WorkerFailed:
        """What to say if the zygote has ended before its time."""
        try:
            status = self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            return WorkerFailed("the process that starts workers does not answer any more")
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        return WorkerFailed(f"the process that starts workers {how} before the computation was complete")

    def stopped(self) -> bool:
        """Whether a signal (SIGSTOP) has stopped the zygote, on systems that tell."""
        return is_stopped(self.process.pid)

    def end(self, grace: float) -> None:
        """Ends the zygote, and with it all that it has forked; returns when the zygote has ended."""
        self.control.close()
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(crew: Crew, errand: Errand, parcel: int, prefix: bool) -> None:
    """Starts the zygote. All that is started or opened is in the crew, for whoever has to end it."""
    _flush(sys.stdout)
    _flush(sys.stderr)
    try:
        crew.zygote = _take(crew)
        control = crew.zygote.control
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended: `hear` will find that out
            control.sendall(frame(errand.encode()))
            socket.send_fds(control, [FOR_PARCEL], [parcel])
            send_ends(crew, control, errand.workers, prefix)
    except OSError as error:
        raise too_many_files(error, errand) or no_process(error) or error from None


def too_many_files(error: OSError, errand: Errand) -> TooManyWorkers | None:
    """What to say where this process may not open as many files as workers need; None if that is not it."""
    if error.errno != errno.EMFILE:
        return None
    count = errand.workers.stop - errand.workers.start  # len() fails for more than 2^63
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _FILES_EACH * count + _FILES_MORE
    return TooManyWorkers(
        f"{count:,} workers on one host need {needed:,} more open files in this process, which may have {limit:,}: "
        "start fewer workers, or raise the limit first (ulimit -n)"
    )


def start_anew(crew: Crew, anew: Anew, prefix: bool) -> None:
    """Has workers replaced, whose processes have ended and been closed, and all connected for another life."""
    assert crew.zygote is not None
    control = crew.zygote.control
    crew.processes = [process for process in crew.processes if process.index not in anew.replaced]
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended: whoever listens will say so
        control.sendall(frame(anew.encode()))
        send_ends(crew, control, anew.replaced, prefix)


def send_ends(crew: Crew, control: socket.socket, workers: Iterable[int], prefix: bool) -> None:
    """Sends the zygote the ends of workers that it is to fork."""
    for index in workers:
        with _make_worker(crew, index, f"[worker {index}] " if prefix else "") as ends:
            socket.send_fds(control, [FOR_WORKER], ends)


@contextlib.contextmanager
def _make_worker(crew: Crew, index: int, prefix: str) -> Iterator[list[int]]:
    """Adds a worker that has not started yet. Yields the descriptors of its ends of our connections with it."""
    with contextlib.ExitStack() as theirs:
        mine, control = socket.socketpair()
        process = Process(index, mine, [])
        crew.processes.append(process)  # at once: whatever fails from here on, `ending` closes what is open
        ends = [theirs.enter_context(control).fileno()]
        for printer in (crew.stdout, crew.stderr):
            output, write_end = make_output(printer, prefix)
            process.outputs.append(output)
            theirs.callback(os.close, write_end)
            ends.append(write_end)
        yield ends


def _take(crew: Crew) -> Zygote:
    """The process that was spawned for this crew already, or a new one."""
    spawned, crew.spawned = crew.spawned or spawn(), None
    spawned.taken = True
    printers = (crew.stdout, crew.stderr)
    outputs = [Output(fd, printer, LineAssembler("")) for fd, printer in zip(spawned.outputs, printers, strict=True)]
    return Zygote(spawned.process, spawned.control, outputs)


def _flush(stream: TextIO | None) -> None:
    """What was printed before comes before what workers print."""
    if stream is not None and not stream.closed:
        stream.flush()
