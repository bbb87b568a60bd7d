"""What a worker's process does, from fork to exit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import trio

from dataflow.comm.arena import Arena
from dataflow.comm.handshake import Keys
from dataflow.comm.link import Link, SharedArenas
from dataflow.comm.patience import Patience
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.transport import Linked
from dataflow.compiled.telling import Voice, teller
from dataflow.errors import PeerLost, TooManyWorkers
from dataflow.execute import Main
from dataflow.launch import report
from dataflow.launch.descent import end_with_parent
from dataflow.launch.framing import frame
from dataflow.launch.heap import keep_freed_memory
from dataflow.launch.lines import print_lines
from dataflow.run.exceptions import unwrap
from dataflow.run.pump import Pump

PEER = struct.Struct("<I")  # whom a socket that is handed over leads to

Connect = Callable[[], Awaitable[dict[int, Link]]]


@dataclass(frozen=True, slots=True)
class Ends:
    """A worker's ends of its connections with the supervisor: to report, and to print."""

    control: socket.socket
    stdout: int
    stderr: int

    def close(self) -> None:
        """In a process that has no use for them."""
        self.control.close()
        os.close(self.stdout)
        os.close(self.stderr)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a worker shares with the others of its host: nobody else can have it."""

    index: int  # this worker's
    others: set[int]
    sockets: dict[int, socket.socket]  # to those that started earlier
    post: socket.socket  # through which those to later ones arrive
    key: bytes
    arenas: dict[int, Arena]  # everybody's, its own as well

    async def links(self) -> dict[int, Link]:
        """The links to them, when all have started. Nothing needs proof."""
        await trio.lowlevel.checkpoint()
        self.post.setblocking(False)
        while self.others - set(self.sockets):
            await trio.lowlevel.wait_readable(self.post)
            self._take()
        return {peer: self._link(peer) for peer in self.sockets}

    def _take(self) -> None:
        said, descriptors, _, _ = socket.recv_fds(self.post, PEER.size, 1)
        if not said:
            raise ConnectionError("the process that starts workers has ended")
        if not descriptors:  # the system drops those that may not be opened
            raise TooManyWorkers("this worker may not open as many files as there are workers: raise ulimit -n")
        (peer,) = PEER.unpack(said)
        self.sockets[peer] = socket.socket(fileno=descriptors[0])

    def _link(self, peer: int) -> Link:
        keys = Keys(direction_key(self.key, self.index, peer), direction_key(self.key, peer, self.index))
        shared = SharedArenas(self.arenas[self.index], self.arenas[peer])
        return Link(SocketPipe(self.sockets[peer]), keys, peer, shared=shared)


FindLinks = Callable[[Neighbours], Connect]
"""How a worker gets its links to all others: those on this host, and the rest."""

Cargo = tuple[Main, tuple[object, ...], FindLinks]
Load = Callable[[], Cargo]
"""Gives main, its arguments, and how a worker finds its links."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a process is to be: which worker, of how many, how it finds the others, and whom it reports to."""

    index: int
    peers: int
    neighbours: Neighbours
    ends: Ends
    parent: int
    debug: bool
    limit: int
    crowded: bool  # whether there are more workers than processors on this host
    warn_after: float | None  # see dataflow.run.watch
    voice: Voice  # what it may say about compiling


def run_child(assignment: Assignment, load: Load) -> NoReturn:
    """Runs one worker in a forked process, and exits."""
    status = 1
    supervisor = _Supervisor(assignment.ends.control)
    try:
        _settle_in(assignment)
        signal.signal(signal.SIGTERM, supervisor.terminated)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        main, args, find_links = load()
        outcome = trio.run(_run, assignment, supervisor, main, args, find_links)
        if outcome is not None:
            supervisor.tell(outcome)
            status = 0
    except BaseException as error:  # whatever it is, the supervisor is told, and the process ends
        supervisor.tell(report.encode_failure(error))
    finally:
        teller.close()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(status)  # not sys.exit: what others registered to happen at the end is not ours to do


def _settle_in(assignment: Assignment) -> None:
    """Signals, standard streams, and an end when the parent ends. Ctrl-C and SIGTERM were blocked before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the supervisor decides what it means
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    end_with_parent(assignment.parent)
    keep_freed_memory()
    teller.speak_as(assignment.voice)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(assignment.ends.stdout, 1)
    os.dup2(assignment.ends.stderr, 2)
    for fd in {null, assignment.ends.stdout, assignment.ends.stderr} - {0, 1, 2}:
        os.close(fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    print_lines()


class _Supervisor:
    """The supervisor, as a worker reaches it."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self._telling = False
        self._scope: trio.CancelScope | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def tell(self, message: bytes) -> None:
        """Says something to the supervisor. If that is gone there is nobody left to tell."""
        self._telling = True
        self.control.setblocking(True)
        try:
            self.control.sendall(frame(message))
        except OSError:
            os._exit(1)
        self._telling = False

    def terminated(self, _: int, frame_: FrameType | None) -> None:
        """Handles SIGTERM: tells the supervisor, which ends everybody, and ends this worker's own tasks."""
        if not self._telling:  # otherwise in the middle of something, which is the last that it says
            self.tell(report.encode_terminated())
        if self._token is not None and self._scope is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._scope.cancel)

    async def obey(self, scope: trio.CancelScope) -> None:
        """Ends the worker when the supervisor says so, or is gone."""
        self._scope, self._token = scope, trio.lowlevel.current_trio_token()
        await self.told_to_stop()
        scope.cancel()

    async def told_to_stop(self) -> None:
        """Waits until the supervisor says anything at all, or is gone."""
        await trio.lowlevel.wait_readable(self.control)


async def _run(
    assignment: Assignment, supervisor: _Supervisor, main: Main, args: tuple[object, ...], find_links: FindLinks
) -> bytes | None:
    """The worker's life; its result to report, or None if the supervisor ended it."""
    outcome: bytes | None = None

    async def live() -> None:
        nonlocal outcome
        outcome = await _work(assignment, find_links, main, args)
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervisor.obey, nursery.cancel_scope)
            nursery.start_soon(live)
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if isinstance(error, PeerLost):
            # The other side died, or failed and is about to say why. That is the message people should see, not ours.
            supervisor.tell(report.encode_lost(error.peer))
            await supervisor.told_to_stop()
            return None
        raise error from error.__cause__
    return outcome


async def _work(assignment: Assignment, find_links: FindLinks, main: Main, args: tuple[object, ...]) -> bytes:
    links = await find_links(assignment.neighbours)()
    pump = Pump(assignment.index, assignment.peers, assignment.debug, assignment.limit, assignment.warn_after)
    # Whoever looks for messages keeps its processor from others, and so perhaps from the one who would send them.
    transport = Linked(pump, links, None if assignment.crowded else Patience())
    pump.transport = transport
    try:
        async with pump.running() as nursery:
            transport.start(nursery)
            nursery.start_soon(pump.run, name=f"worker {pump.index}")
            result = await pump.run_main(main, *args)
            outcome = report.encode_result(pump.index, result)
            await transport.say_goodbye()
    finally:
        await transport.close()
    return outcome


def socket_links(neighbours: Neighbours) -> Connect:
    """Links to workers that are all on this host."""
    return neighbours.links


def direction_key(key: bytes, sender: int, receiver: int) -> bytes:
    """The key for frames from one worker to another of the same host."""
    return key + struct.pack("<II", sender, receiver)
