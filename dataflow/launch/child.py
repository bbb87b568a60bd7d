"""What a worker's process does, from fork to exit."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TextIO

import trio

from dataflow.comm.arena import Arena
from dataflow.comm.handshake import Keys
from dataflow.comm.link import Link, Shared
from dataflow.comm.patience import Patience
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.transport import Linked
from dataflow.compiled.telling import Voice, teller
from dataflow.errors import PeerLost
from dataflow.execute import Main
from dataflow.groups import unwrap
from dataflow.launch import report
from dataflow.launch.heap import keep_freed_memory
from dataflow.worker import Worker

_LENGTH = struct.Struct("<Q")
_PR_SET_PDEATHSIG = 1

Connect = Callable[[], Awaitable[dict[int, Link]]]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a process is to be: which worker, of how many, how it finds the others, and whom it reports to."""

    index: int
    peers: int
    connect: Connect
    control: socket.socket
    stdout: int
    stderr: int
    parent: int
    debug: bool
    limit: int
    crowded: bool  # whether there are more workers than processors on this host
    warn_after: float | None  # see dataflow.watch
    voice: Voice  # what it may say about compiling


def run_child(assignment: Assignment, main: Main, args: tuple[Any, ...]) -> None:
    """Runs one worker in a forked process, and exits. Never returns."""
    status = 1
    try:
        _settle_in(assignment)
        outcome = trio.run(_run, assignment, main, args)
        if outcome is not None:
            _tell(assignment.control, outcome)
            status = 0
    except BaseException as error:  # whatever it is, the supervisor is told, and the process ends
        _tell(assignment.control, report.encode_failure(error))
    finally:
        teller.close()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(status)  # not sys.exit: what the parent registered to happen at its exit is not ours to do


def _settle_in(assignment: Assignment) -> None:
    """Signals, standard streams, and an end when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the supervisor decides what it means
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != assignment.parent:  # it ended before we asked to be told
        os._exit(1)
    keep_freed_memory()
    teller.speak_as(assignment.voice)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(assignment.stdout, 1)
    os.dup2(assignment.stderr, 2)
    for fd in {null, assignment.stdout, assignment.stderr} - {0, 1, 2}:
        os.close(fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = _line_stream(1)
    sys.stderr = _line_stream(2)


def _line_stream(fd: int) -> TextIO:
    """A text stream that passes on each line as it is completed."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


async def _run(assignment: Assignment, main: Main, args: tuple[Any, ...]) -> bytes | None:
    """The worker's life; its result to report, or None if the supervisor ended it."""
    outcome: bytes | None = None

    async def live() -> None:
        nonlocal outcome
        outcome = await _work(assignment, main, args)
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_obey, assignment.control, nursery.cancel_scope)
            nursery.start_soon(live)
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if isinstance(error, PeerLost):
            # The other side died, or failed and is about to say why. That is the message people should see, not ours.
            _tell(assignment.control, report.encode_lost(error.peer))
            await _told_to_stop(assignment.control)
            return None
        raise error from error.__cause__
    return outcome


async def _work(assignment: Assignment, main: Main, args: tuple[Any, ...]) -> bytes:
    links = await assignment.connect()
    worker = Worker(assignment.index, assignment.peers, assignment.debug, assignment.limit, assignment.warn_after)
    # Whoever looks for messages keeps its processor from others, and so perhaps from the one who would send them.
    transport = Linked(worker, links, None if assignment.crowded else Patience())
    worker.transport = transport
    try:
        async with worker.running() as nursery:
            transport.start(nursery)
            nursery.start_soon(worker.pump, name=f"worker {worker.index}")
            result = await worker.run_main(main, *args)
            outcome = report.encode_result(worker.index, result)
            await transport.say_goodbye()
    finally:
        await transport.close()
    return outcome


async def _obey(control: socket.socket, scope: trio.CancelScope) -> None:
    """Ends the worker when the supervisor says so, or is gone."""
    await _told_to_stop(control)
    scope.cancel()


async def _told_to_stop(control: socket.socket) -> None:
    """Waits until the supervisor says anything at all, or is gone."""
    control.setblocking(False)
    await trio.lowlevel.wait_readable(control)


def _tell(control: socket.socket, message: bytes) -> None:
    """Says something to the supervisor. If that is gone there is nobody left to tell."""
    control.setblocking(True)
    try:
        control.sendall(_LENGTH.pack(len(message)) + message)
    except OSError:
        os._exit(1)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a worker shares with the others of its host, made before they were forked: nobody else can have it."""

    sockets: dict[int, socket.socket]  # one to each of them
    key: bytes
    arenas: dict[int, Arena]  # everybody's, its own as well

    def links(self, index: int) -> dict[int, Link]:
        """The links of worker `index` to them. Nothing needs proof."""
        return {peer: self._link(index, peer) for peer in self.sockets}

    def _link(self, index: int, peer: int) -> Link:
        keys = Keys(direction_key(self.key, index, peer), direction_key(self.key, peer, index))
        shared = Shared(self.arenas[index], self.arenas[peer])
        return Link(SocketPipe(self.sockets[peer]), keys, peer, shared=shared)


def socket_links(index: int, neighbours: Neighbours) -> Connect:
    """Links to workers that are all on this host."""

    async def connect() -> dict[int, Link]:
        await trio.lowlevel.checkpoint()
        return neighbours.links(index)

    return connect


def direction_key(key: bytes, sender: int, receiver: int) -> bytes:
    """The key for frames from one worker to another of the same host."""
    return key + struct.pack("<II", sender, receiver)
