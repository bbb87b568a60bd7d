"""A host that joins a run: `python -m dataflow run app:main --join HOST:PORT`.

Its supervisor asks host 0, which listens for that as long as the run lasts, and proves the secret. Worker 0 gives its
workers numbers. They listen, and everybody who is there connects to them; from then on they are joiners like any other
(docs/internals/membership.md). The two supervisors have nothing more to say to each other: what a guest returns is
known where it runs, and when it is gone those who were connected with its workers notice.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import trio

from dataflow.asking.messages import Question, Refused
from dataflow.comm import codec
from dataflow.comm.codec import require_list, require_text
from dataflow.comm.handshake import SUPERVISORS, Identity, cluster_digest
from dataflow.comm.link import Link
from dataflow.errors import ProtocolError
from dataflow.execute import Main, check_main
from dataflow.launch.errand import Errand
from dataflow.launch.hosts import ClusterError, Tls, Unreachable
from dataflow.launch.mesh import Address, accept_all, connect_one, serve_others
from dataflow.launch.neighbours import Connect, Neighbours
from dataflow.launch.orders import Go
from dataflow.launch.printer import Printer
from dataflow.launch.process import Settings
from dataflow.launch.signals import Signals, run_trio
from dataflow.launch.starting import start
from dataflow.launch.supervisor import Crew, run_processes, supervise, watch_signals
from dataflow.launch.talk import Talk
from dataflow.launch.verdict import ByWorker
from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import Resume
from dataflow.text import plain

GUESTS = cluster_digest("guests")  # in the place of the digest of a file of hosts, which guests do not have
_MOST = 1 << 10  # workers of a host that joins
_LONGEST = 60.0  # seconds that host 0 may take to answer: other changes of the membership come first

_KEEPS = "snapshots: say --recovery, and where this host finds them"

Ask = Callable[[Question], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Guest:
    """What a host that joins knows."""

    host: Address  # where host 0 listens
    listen: str
    port: int  # of its first worker; the others have the ports after it
    workers: int
    secret: bytes
    tls: Tls | None = None
    wait: float = 30.0
    recovery: Recovery | None = None  # where this host finds the run's snapshots, if it keeps any
    number: int | None = None  # of its first worker, if it was invited

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= _MOST:
            raise ClusterError(f"1 to {_MOST:,} workers can join at once, not {self.workers}")
        if self.wait <= 0:
            raise ClusterError(f"cannot wait {self.wait:g} seconds for the run")
        if len(self.secret) < 16:
            raise ClusterError("the secret must have at least 16 bytes: it is that of the run")


@dataclass(frozen=True, slots=True)
class Admission:
    """What a host that joins is told."""

    first: int  # the number of its first worker
    present: tuple[int, ...]  # who will connect
    fellows: tuple[tuple[int, str, int], ...]  # who joins at the same time on other hosts: number, and where
    resume: Resume | None  # where the run keeps snapshots


@dataclass(frozen=True, slots=True)
class GuestLinks:
    """How a worker that joins finds the others: those on its own host by socket pairs; fellows on other hosts as those
    of a file of hosts do; the rest connect to it."""

    guest: Guest
    admission: Admission

    def __call__(self, neighbours: Neighbours) -> Connect:
        """A way to be connected with all of them."""

        async def connect() -> dict[int, Link]:
            guest, index, told = self.guest, neighbours.index, self.admission
            me = Identity(guest.secret, GUESTS, index)
            address = (guest.listen, guest.port + index - told.first)
            above = {number for number, _, _ in told.fellows if number > index}
            below = {number: (host, port) for number, host, port in told.fellows if number < index}
            pipes = await accept_all(me, address, {*told.present, *above}, below, guest.tls, guest.wait)
            remote = {peer: Link(pipe, keys, peer) for peer, (pipe, keys) in pipes.items()}
            return remote | await neighbours.links()

        return connect

    async def dial(self, index: int, peer: int, address: Address) -> Link:
        """Connects with a worker that joins later."""
        return await dial(Identity(self.guest.secret, GUESTS, index), peer, address, self.guest.tls, self.guest.wait)


async def dial(me: Identity, peer: int, address: Address, tls: Tls | None, wait: float) -> Link:
    """Connects with a worker that joins. Unreachable, if it does not listen in time."""
    pipe, keys = await connect_one(me, peer, address, tls, wait, f"worker {peer}")
    return Link(pipe, keys, peer)


def run_guest(main: Main, args: tuple[object, ...], guest: Guest, settings: Settings) -> ByWorker:
    """Joins a run, and works there until it is over or has no more need of this host."""
    check_main(main, guest.workers)
    told = trio.run(_ask_to_join, guest)
    numbers = range(told.first, told.first + guest.workers)
    peers = len(told.present) + len(told.fellows) + guest.workers
    resume, recovery = told.resume, guest.recovery
    live = None if resume is None or recovery is None else partial(_live, replace(resume, recovery=recovery))
    links = GuestLinks(guest, told)
    return run_processes(
        main, args, numbers, peers, settings, links, recovery=recovery, run_lives=live, joins=True
    )


def _live(resume: Resume, crew: Crew, errand: Errand, parcel: int, _: Recovery, signals: Signals) -> ByWorker:
    """The one life of workers that join a run with recovery: when it is over, others go on without them."""
    settings, go = errand.settings, Go(1, resume.for_joiner().encode())
    start(crew, replace(errand, life=1), parcel, settings.prefix)
    for process in crew.processes:
        process.say(go)
    signals.on_first = crew.leave
    return run_trio(watch_signals, partial(supervise, crew, settings), signals)


async def _ask_to_join(guest: Guest) -> Admission:
    """Asks host 0."""
    title = f"a run at {guest.host[0]}:{guest.host[1]}"
    me = Identity(guest.secret, GUESTS, SUPERVISORS + 1)
    pipe, keys = await connect_one(me, SUPERVISORS, guest.host, guest.tls, guest.wait, title)
    talk = Talk(pipe, keys)
    try:
        asked = [guest.workers, guest.listen, guest.port, guest.number, guest.recovery is not None]
        await talk.say(codec.encode(["join", *asked]))
        with trio.move_on_after(_LONGEST + guest.wait):
            answer = await talk.hear()
            if answer is None:
                raise Unreachable(f"{title} has ended the connection: it may be over")
            return _read_welcome(answer)
    finally:
        await talk.close()
    raise Unreachable(f"{title} has not answered")


def _read_welcome(answer: bytes | memoryview) -> Admission:
    kind, *content = require_list(codec.decode(answer))
    if kind == "refused":
        raise ClusterError(f"the run does not let this host join: {plain(str(content[0]))}")
    first, present, fellows, resume = content
    there = [worker for worker in require_list(present) if type(worker) is int]
    if kind != "welcome" or type(first) is not int or not there or not (resume is None or type(resume) is bytes):
        raise ProtocolError(f"{plain(str(content))} where a welcome belongs")
    others = tuple(_read_fellow(require_list(each, 3)) for each in require_list(fellows))
    return Admission(first, tuple(there), others, None if resume is None else Resume.decode(resume))


def _read_fellow(told: list[object]) -> tuple[int, str, int]:
    number, host, port = told
    if type(number) is not int or type(port) is not int:
        raise ProtocolError(f"{plain(str(told))} is not where a worker listens")
    return number, require_text(host), port


# On host 0


async def welcome_guests(
    me: Identity, listen: Address, tls: Tls | None, ask: Ask, resume: Resume | None, printer: Printer
) -> None:
    """Listens for hosts that join, as long as a life lasts. `ask` asks worker 0; `resume`: where snapshots are kept."""
    kept = None if resume is None else resume.for_joiner().encode()

    async def serve(talk: Talk) -> None:
        request = await talk.hear()
        if request is None:
            return
        try:
            question, recovers = _question(request)
            if recovers != (resume is not None):
                raise Refused(f"it keeps {'no snapshots: leave --recovery out' if recovers else _KEEPS}")
            answer = ["welcome", *require_list(await ask(question), 3), kept]
        except (Refused, ProtocolError, ValueError, TypeError) as error:
            answer = ["refused", str(error)]
        await talk.say(codec.encode(answer))
        await talk.hear()  # until it has read that, and is gone

    await serve_others(me, listen, tls, serve, printer)


def _question(request: bytes | memoryview) -> tuple[Question, bool]:
    """What is asked of worker 0, and whether the host says where it finds snapshots."""
    kind, workers, host, port, number, recovers = require_list(codec.decode(request), 6)
    if kind != "join" or type(workers) is not int or not 1 <= workers <= _MOST or type(host) is not str:
        raise ProtocolError("that is no request to join")
    if type(port) is not int or not 0 < port <= 65535 - workers:
        raise ProtocolError(f"there are no ports for {workers} workers from {port} on")
    if number is not None and type(number) is not int:
        raise ProtocolError(f"{plain(str(number))} is no number of a worker")
    at = [[host, port + place] for place in range(workers)]
    return Question("guests", {"at": at, "number": number}), recovers is True


def free_port(host: str, count: int) -> int:
    """A port at which, and after which, nobody listens here at the moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(64):
        with socket.socket(family) as probe:
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
        if port + count <= 65535 and all(_is_free(family, host, port + place) for place in range(count)):
            return port
    raise ClusterError(f"there are no {count} free ports in a row on {host}: say --listen {host}:PORT")


def _is_free(family: socket.AddressFamily, host: str, port: int) -> bool:
    with socket.socket(family) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


