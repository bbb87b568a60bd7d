"""What a worker's process does, from fork to exit."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn, Protocol, runtime_checkable

import trio

from dataflow.asking.answers.known import AT_WORKER
from dataflow.asking.messages import decode_question
from dataflow.asking.run import answer
from dataflow.clients.standard import give_input
from dataflow.comm.link import Link
from dataflow.comm.linked import Linked
from dataflow.comm.patience import Patience
from dataflow.compiled.telling import Voice, teller
from dataflow.errors import PeerLost
from dataflow.execute import Main
from dataflow.launch import report
from dataflow.launch.descent import end_with_parent
from dataflow.launch.framing import cut_message, frame
from dataflow.launch.heap import keep_freed_memory
from dataflow.launch.lines import print_lines
from dataflow.launch.neighbours import Connect, Neighbours
from dataflow.launch.orders import Ask, Back, Go, Order, decode_order
from dataflow.launch.preparing import CompiledCode
from dataflow.launch.wishes import Recruiter
from dataflow.members.following import can_leave
from dataflow.recovery.resume import Resume
from dataflow.run.collecting import collect_seldom
from dataflow.run.exceptions import unwrap
from dataflow.run.logs import this_process
from dataflow.run.pump import Pump

_CHUNK = 1 << 16


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


@runtime_checkable
class Dials(Protocol):
    """Somebody who can connect with workers of other hosts."""

    async def dial(self, index: int, peer: int, address: tuple[str, int]) -> Link:
        """The link from one worker to another, which listens there. DataflowError if it cannot be had."""


class Dialled:
    """Links to workers of other hosts that join."""

    def __init__(self, dials: Dials) -> None:
        self._dials = dials
        self._made, self._taken = trio.open_memory_channel[tuple[int, Link]](math.inf)

    async def meet(self, index: int, peer: int, address: tuple[str, int]) -> None:
        """Connects with one."""
        self._made.send_nowait((peer, await self._dials.dial(index, peer, address)))

    async def next(self) -> tuple[int, Link]:
        """The next link that was made."""
        return await self._taken.receive()


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
    joins: bool = field(default=False, kw_only=True)  # whether it joins workers that run
    recovers: bool = False  # whether it waits to be told to begin, and may be told to go back


def run_child(assignment: Assignment, load: Load) -> NoReturn:
    """Runs one worker in a forked process, and exits."""
    status = 1
    supervisor = _Supervisor(assignment.ends.control)
    try:
        _settle_in(assignment)
        this_process.index = assignment.index
        signal.signal(signal.SIGTERM, supervisor.terminated)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        outcome = _live(assignment, supervisor, load())
        if outcome is not None:
            supervisor.tell(outcome)
            status = 0
    except BaseException as error:  # whatever it is, the supervisor is told, and the process ends
        supervisor.tell(report.encode_failure(error, supervisor.unbuilt))
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
    collect_seldom()
    teller.speak_as(assignment.voice)
    with contextlib.suppress(OSError):  # there may be none
        give_input(os.dup(0))  # nobody reads it by accident: only a source of standard input knows where it is
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
        self.unbuilt = True  # whether no dataflow has been built in this life
        self._telling = False
        self._scope: trio.CancelScope | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._received = bytearray()
        self._go: Go | None = None
        self._went = trio.Event()
        self.back: Back | None = None  # what the supervisor said to end this life
        self._pump: Pump | None = None
        self._working = trio.Event()  # the pump is there
        self._answering = False
        self._leaving = False  # whether it was told to leave
        self._late = False  # whether a signal came while an answer was being sent

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
        """Handles SIGTERM. The first means: leave, if the others can do without this worker. Else, and the second
        time, it tells the supervisor, which ends everybody, and ends this worker's own tasks."""
        if self._token is not None and self._pump is not None and not self._leaving and can_leave(self._pump):
            self._leaving = True
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._leave, self._pump)
            return
        if self._answering:
            self._late = True
        elif not self._telling:  # otherwise in the middle of something, which is the last that it says
            self.tell(report.encode_terminated())
        if self._token is not None and self._scope is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._scope.cancel)

    def _leave(self, pump: Pump) -> None:
        """Asks to be drained; if that cannot be, ends as if it had been told twice."""
        change = pump.changes.asking.scale((pump.index,), None, None, None)

        async def wait() -> None:
            await change.over()
            if change.state == "failed":
                self.terminated(0, None)

        pump.spawn(wait, "leaving")

    async def obey(self, nursery: trio.Nursery) -> None:
        """Ends the worker's life when the supervisor says so, or is gone. Answers what it asks meanwhile."""
        self._scope, self._token = nursery.cancel_scope, trio.lowlevel.current_trio_token()
        await self.told_to_stop(nursery)
        nursery.cancel_scope.cancel()

    async def told_to_stop(self, nursery: trio.Nursery | None = None) -> Back | None:
        """Waits until the supervisor ends this life: for another, or (None) for good, or because it is gone itself."""
        while isinstance(order := await self._order(), Go | Ask):
            if isinstance(order, Go):
                self._go = order
                self._went.set()
            elif nursery is not None:  # otherwise the life is over, and the supervisor knows what becomes of questions
                nursery.start_soon(self._answer, order)
        self.back = order
        return order

    def works(self, pump: Pump) -> None:
        """This life has a worker, which can be asked."""
        self._pump = pump
        self._working.set()

    async def _answer(self, ask: Ask) -> None:
        await self._working.wait()
        assert self._pump is not None
        given = await answer(decode_question(ask.question), self._pump, AT_WORKER)
        self._answering = True
        self.tell(report.encode_answered(ask.number, given))
        self._answering = False
        if self._late:
            self.tell(report.encode_terminated())

    def begin(self) -> None:
        """Another life is to begin, and nothing has been said about it."""
        self.unbuilt, self.back, self._go, self._went = True, None, None, trio.Event()
        self._scope = None
        self._pump, self._working = None, trio.Event()

    async def resume(self) -> Resume:
        """Waits until the supervisor says where this life goes on."""
        await self._went.wait()
        assert self._go is not None
        return Resume.decode(self._go.resume)

    async def _order(self) -> Order | None:
        while (message := cut_message(self._received)) is None:
            await trio.lowlevel.wait_readable(self.control)
            try:
                chunk = self.control.recv(_CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError:
                return None
            if not chunk:
                return None
            self._received += chunk
        return decode_order(message)


def _live(assignment: Assignment, supervisor: _Supervisor, cargo: Cargo) -> bytes | None:
    """The worker's lives, each in a loop of its own; its result to report, or None if the supervisor ended it."""
    neighbours = assignment.neighbours
    while True:
        outcome = trio.run(_run, assignment, supervisor, neighbours, cargo)
        if not isinstance(outcome, Back):
            return outcome
        neighbours = neighbours.again(outcome.life)
        supervisor.begin()
        gc.collect()  # the state of the old life must not be there beside that of the new one
        supervisor.tell(report.encode_idle(outcome.life))


async def _run(
    assignment: Assignment, supervisor: _Supervisor, neighbours: Neighbours, cargo: Cargo
) -> bytes | Back | None:
    """One life; its result to report, what is to follow it, or None if the supervisor ended it for good."""
    outcome: bytes | None = None

    async def live() -> None:
        nonlocal outcome
        outcome = await _work(assignment, supervisor, neighbours, cargo)
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervisor.obey, nursery)
            nursery.start_soon(live)
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if isinstance(error, PeerLost):
            # The other side died, or failed and is about to say why. That is the message people should see, not ours.
            if supervisor.back is not None:
                return supervisor.back
            supervisor.tell(report.encode_lost(error.peer))
            return await supervisor.told_to_stop()
        raise error from error.__cause__
    return supervisor.back or outcome


async def _work(assignment: Assignment, supervisor: _Supervisor, neighbours: Neighbours, cargo: Cargo) -> bytes:
    main, args, find_links = cargo
    resume = await supervisor.resume() if assignment.recovers else None
    links = await find_links(neighbours)()  # after that: now nobody of an earlier life is left, on any host
    debug, limit, warn_after = assignment.debug, assignment.limit, assignment.warn_after
    index, peers, joins = assignment.index, assignment.peers, assignment.joins
    pump = Pump(index, peers, debug, limit, warn_after, recovery=resume, joins=joins)
    pump.launcher = recruiter = Recruiter(supervisor.tell, getattr(find_links, "cannot_start", None))
    pump.inviter = recruiter if getattr(find_links, "invites", False) else None
    pump.preparation = CompiledCode()
    # Whoever looks for messages keeps its processor from others, and so perhaps from the one who would send them.
    transport = Linked(pump, links, None if assignment.crowded else Patience())
    pump.transport = transport
    try:
        async with pump.running() as nursery:
            transport.start(nursery)
            nursery.start_soon(transport.accept, neighbours.next_joiner)
            elsewhere: object = find_links
            if isinstance(elsewhere, Dials):
                pump.meeting = dialled = Dialled(elsewhere)
                nursery.start_soon(transport.accept, dialled.next)
            if joins:
                pump.changes.say(pump.roster.leader, "linked")
            nursery.start_soon(pump.run, name=f"worker {pump.index}")
            supervisor.works(pump)
            result = await pump.run_main(main, *args)
            outcome = report.encode_result(pump.index, result, pump.changes.left)
            await transport.say_goodbye()
    finally:
        supervisor.unbuilt = not pump.built
        await transport.close()
    return outcome


def socket_links(neighbours: Neighbours) -> Connect:
    """Links to workers that are all on this host."""
    return neighbours.links
