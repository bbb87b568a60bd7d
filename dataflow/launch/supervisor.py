"""The parent of worker processes: starts them, prints what they print, collects their results, and ends them.

Processes are forked, so that closures and lambdas in `main` need not be serialised. The supervisor itself runs no
dataflow: it is never busy, and so can tell a worker that is busy from one that is gone.

Whatever happens, `Processes.end` runs last: it asks the workers to stop, gives them a moment to run their `finally`
clauses, kills what is left, and reaps every process. If the supervisor itself is killed, the kernel kills the
workers.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

import trio

from dataflow import codec
from dataflow.errors import WorkerFailed
from dataflow.execute import Main, refuse_inside_a_loop
from dataflow.groups import unwrap
from dataflow.launch.child import Assignment, Connect, run_child, socket_links
from dataflow.launch.lines import LineAssembler
from dataflow.launch.report import decode_failure
from dataflow.launch.verdict import Event, Exited, Failed, Lost, Returned, Silent, Verdict
from dataflow.signal import Signal

FindLinks = Callable[[int, dict[int, socket.socket], bytes], Connect]
"""(index, sockets to the others on this host, key for those): how a worker gets its links."""

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 16
_BUFFER = 1 << 20  # of the kernel's, for each direction of a connection between two workers


@dataclass(frozen=True, slots=True)
class Settings:
    """How workers are run. Times are in seconds."""

    debug: bool = False
    limit: int = 64 << 20  # bytes of data on their way from one worker, see dataflow.comm.flow
    prefix: bool = False  # whether printed lines say which worker printed them
    grace: float = 2.0  # how long workers may take to end when told to
    patience: float = 5.0  # how long a worker may be stopped, or a host silent, before it is given up


@dataclass
class Process:
    """One worker's process, as its supervisor sees it."""

    index: int
    pid: int
    control: socket.socket
    outputs: dict[int, tuple[TextIO, LineAssembler]] = field(default_factory=dict)  # by file descriptor
    status: int | None = None
    unheard: bool = False  # whether the reader of what it prints is gone

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

    def print(self, fd: int, text: str) -> None:
        """Passes on what the worker printed. If that is no longer possible (nobody reads it, the disk is full), says so
        once."""
        stream, _ = self.outputs[fd]
        if text and not self.unheard:
            try:
                _write(stream, text)
                stream.flush()
            except OSError:
                self.unheard = True
                raise

    def stopped(self) -> bool:
        """Whether the process is stopped by a signal (SIGSTOP), where the system tells."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                return stat.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
        except OSError:
            return False


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # the terminal knows fewer characters than the worker
        stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))


def run_processes(
    main: Main,
    args: tuple[Any, ...],
    workers: range,
    peers: int,
    settings: Settings,
    find_links: FindLinks = socket_links,
) -> dict[int, Any]:
    """Runs workers in processes of their own until all are done; their results, by worker.

    `workers` are the numbers of those to run here, of `peers` in all. `find_links` is how they find each other.
    """
    refuse_inside_a_loop()
    processes: list[Process] = []
    try:
        fork_workers(processes, main, args, workers, peers, settings, find_links)
        results = trio.run(supervise, processes, workers, settings)
    except BaseExceptionGroup as group:
        error = unwrap(group)
        raise error from error.__cause__
    finally:
        unprinted = end(processes, settings.grace)
    if unprinted is not None:
        raise unprinted
    return results


# Starting


def fork_workers(
    processes: list[Process],
    main: Main,
    args: tuple[Any, ...],
    workers: range,
    peers: int,
    settings: Settings,
    find_links: FindLinks,
) -> None:
    """Forks one process per worker. Each keeps its own ends of what was made for it, and closes the rest.

    Adds them to `processes` as they start, for whoever has to end them if this fails half-way. Ctrl-C has to wait: a
    child must not take it for its own before it has settled in.
    """
    key = secrets.token_bytes(24)
    pairs = _socket_pairs(workers)
    controls = {index: socket.socketpair() for index in workers}
    outputs = {index: (os.pipe(), os.pipe()) for index in workers}
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for index in workers:
            pid = os.fork()
            if pid == 0:
                mine = {peer: pairs[index, peer] for peer in workers if peer != index}
                connect = find_links(index, mine, key)
                (_, out), (_, err) = outputs[index]
                control = controls[index][1]
                _close_others(controls, outputs, pairs, index)
                debug, limit = settings.debug, settings.limit
                run_child(Assignment(index, peers, connect, control, out, err, parent, debug, limit), main, args)
            prefix = f"[worker {index}] " if settings.prefix else ""
            (out, _), (err, _) = outputs[index]
            streams = {out: (sys.stdout, LineAssembler(prefix)), err: (sys.stderr, LineAssembler(prefix))}
            processes.append(Process(index, pid, controls[index][0], streams))
    finally:
        _close_theirs(controls, outputs, pairs, {process.index for process in processes})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _close_theirs(
    controls: dict[int, tuple[socket.socket, socket.socket]],
    outputs: dict[int, tuple[tuple[int, int], tuple[int, int]]],
    pairs: dict[tuple[int, int], socket.socket],
    started: set[int],
) -> None:
    """In the parent: closes every end that is a worker's, and all of what was made for workers that did not start."""
    for sock in pairs.values():
        sock.close()
    for index, (mine, theirs) in controls.items():
        theirs.close()
        if index not in started:
            mine.close()
    for index, ends in outputs.items():
        for read_end, write_end in ends:
            os.close(write_end)
            if index not in started:
                os.close(read_end)


def _socket_pairs(workers: range) -> dict[tuple[int, int], socket.socket]:
    """For each two workers a pair of connected sockets: (a, b) is a's end of the connection to b."""
    pairs = {}
    for a in workers:
        for b in workers:
            if a < b:
                pairs[a, b], pairs[b, a] = socket.socketpair()
    for sock in pairs.values():
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    return pairs


def _close_others(
    controls: dict[int, tuple[socket.socket, socket.socket]],
    outputs: dict[int, tuple[tuple[int, int], tuple[int, int]]],
    pairs: dict[tuple[int, int], socket.socket],
    index: int,
) -> None:
    """In a worker's process: closes every end that is not its own, or nobody would ever see an end of anything."""
    for other, (parents, childs) in controls.items():
        parents.close()
        if other != index:
            childs.close()
    for other, ends in outputs.items():
        for read_end, write_end in ends:
            os.close(read_end)
            if other != index:
                os.close(write_end)
    for (owner, _), sock in pairs.items():
        if owner != index:
            sock.close()


# Watching


async def supervise(processes: list[Process], workers: range, settings: Settings) -> dict[int, Any]:
    """Waits until every worker has returned; raises the verdict if something goes wrong."""
    verdict = Verdict(workers)
    news = Signal()

    def tell(event: Event) -> None:
        verdict.handle(event)
        news.set()

    async with trio.open_nursery() as nursery:
        for process in processes:
            nursery.start_soon(watch_process, process, tell)
            for fd in process.outputs:
                nursery.start_soon(_print_output, process, fd)
        nursery.start_soon(_watch_for_silence, processes, settings.patience, tell)
        await reach_verdict(verdict, news, settings)
        nursery.cancel_scope.cancel()
    return verdict.results


async def reach_verdict(verdict: Verdict, news: Signal, settings: Settings) -> None:
    """Returns when all is done; raises the verdict otherwise."""
    while not verdict.complete and verdict.error is None:
        if verdict.suspicious:
            with trio.move_on_after(settings.grace) as waiting:
                await news.wait()
            if waiting.cancelled_caught:
                verdict.give_up_waiting()
        else:
            await news.wait()
    if verdict.error is not None:
        raise verdict.error


async def watch_process(process: Process, tell: Callable[[Event], None]) -> None:
    """Hears what a worker reports, and how its process ends.

    Not by the end of the connection: a child that the worker has started may have a copy of it, and live on.
    """
    process.control.setblocking(False)
    received = bytearray()

    def hear(chunk: bytes) -> None:
        received.extend(chunk)
        while (message := _cut_message(received)) is not None:
            tell(_understand(process.index, message))

    async def listen() -> None:
        while chunk := await _receive(process.control):
            hear(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await _wait_exit(process)
        nursery.cancel_scope.cancel()
    while chunk := _receive_now(process.control):  # what it said last
        hear(chunk)
    assert process.status is not None
    tell(Exited(process.index, process.status))


async def _wait_exit(process: Process) -> None:
    if sys.platform == "linux":
        watch = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(watch)
        finally:
            os.close(watch)
    while not process.poll():  # noqa: ASYNC110
        await trio.sleep(0.01)  # other systems tell only those who ask


async def _receive(sock: socket.socket) -> bytes:
    while True:
        await trio.lowlevel.wait_readable(sock)
        try:
            return sock.recv(_CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return b""


def _receive_now(sock: socket.socket) -> bytes:
    try:
        return sock.recv(_CHUNK)
    except OSError:
        return b""


def _cut_message(received: bytearray) -> bytes | None:
    """The first whole message of what a worker has sent, taken off the front."""
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    if len(received) < _LENGTH.size + length:
        return None
    message = bytes(received[_LENGTH.size : _LENGTH.size + length])
    del received[: _LENGTH.size + length]
    return message


def _understand(worker: int, data: bytes) -> Event:
    try:
        message = codec.decode(data)
    except ValueError as error:  # a result of a class that only the worker has imported
        return Failed(worker, WorkerFailed(f"what worker {worker} returned cannot be brought here: {error}", worker))
    kind = message[0]
    if kind == "result":
        return Returned(worker, message[1])
    if kind == "lost":
        return Lost(worker, message[1])
    return Failed(worker, decode_failure(worker, message))


async def _print_output(process: Process, fd: int) -> None:
    """Prints what a worker prints, in whole lines."""
    os.set_blocking(fd, False)
    while True:
        await trio.lowlevel.wait_readable(fd)
        if not _print_some(process, fd):
            return


def _print_some(process: Process, fd: int) -> bool:
    """Prints what can be read without waiting; False at the end."""
    try:
        chunk = os.read(fd, _CHUNK)
    except BlockingIOError:
        return True
    _, lines = process.outputs[fd]
    process.print(fd, lines.feed(chunk) if chunk else lines.close())
    return bool(chunk)


async def _watch_for_silence(processes: list[Process], patience: float, tell: Callable[[Event], None]) -> None:
    """Tells of workers that are stopped for longer than `patience`. Being busy is not being stopped."""
    tick = min(1.0, patience / 4)
    stopped_for = {process.index: 0.0 for process in processes}
    last = time.monotonic()
    while True:
        await trio.sleep(tick)
        now = time.monotonic()
        awake = now - last < 2 * tick + 1  # otherwise we were stopped ourselves (Ctrl-Z), and so were they
        last = now
        for process in processes:
            if process.status is None and process.stopped() and awake:
                stopped_for[process.index] += tick
            else:
                stopped_for[process.index] = 0.0
            if stopped_for[process.index] > patience:
                tell(Silent(process.index, f"is stopped and has not answered for {patience:g} seconds"))


# Ending


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
            while _more(fd) and _try(trouble, _print_some, process, fd):
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
