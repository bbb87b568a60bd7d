"""A host that joins a run: `python -m dataflow run app:main --join HOST:PORT`.

Its supervisor asks host 0, which listens for that as long as the run lasts, and proves the secret. Worker 0 gives its
workers numbers. They listen, and everybody who is there connects to them; from then on they are joiners like any other
(docs/internals/membership.md). The two supervisors have nothing more to say to each other: what a guest returns is
known where it runs, and when it is gone those who were connected with its workers notice.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from dataflow.asking.messages import Question, Refused
from dataflow.comm import codec
from dataflow.comm.codec import require_list
from dataflow.comm.handshake import SUPERVISORS, Identity, cluster_digest
from dataflow.comm.link import Link
from dataflow.errors import ProtocolError
from dataflow.execute import Main, check_main
from dataflow.launch.hosts import ClusterError, Tls, Unreachable
from dataflow.launch.mesh import Address, accept_all, connect_one, serve_others
from dataflow.launch.neighbours import Connect, Neighbours
from dataflow.launch.printer import Printer
from dataflow.launch.process import Settings
from dataflow.launch.supervisor import run_processes
from dataflow.launch.talk import Talk
from dataflow.launch.verdict import ByWorker
from dataflow.text import plain

GUESTS = cluster_digest("guests")  # in the place of the digest of a file of hosts, which guests do not have
_MOST = 1 << 10  # workers of a host that joins
_LONGEST = 60.0  # seconds that host 0 may take to answer: other changes of the membership come first

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

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= _MOST:
            raise ClusterError(f"1 to {_MOST:,} workers can join at once, not {self.workers}")
        if self.wait <= 0:
            raise ClusterError(f"cannot wait {self.wait:g} seconds for the run")
        if len(self.secret) < 16:
            raise ClusterError("the secret must have at least 16 bytes: it is that of the run")


@dataclass(frozen=True, slots=True)
class GuestLinks:
    """How a worker that joins finds the others: those on its own host by socket pairs; the rest connect to it."""

    guest: Guest
    first: int  # the number of the guest's first worker
    present: tuple[int, ...]  # who will connect

    def __call__(self, neighbours: Neighbours) -> Connect:
        """A way to be connected with all of them."""

        async def connect() -> dict[int, Link]:
            guest, index = self.guest, neighbours.index
            me = Identity(guest.secret, GUESTS, index)
            address = (guest.listen, guest.port + index - self.first)
            pipes = await accept_all(me, address, set(self.present), guest.tls, guest.wait)
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
    first, present = trio.run(_ask_to_join, guest)
    numbers = range(first, first + guest.workers)
    links = GuestLinks(guest, first, present)
    return run_processes(main, args, numbers, len(present) + guest.workers, settings, links, joins=True)


async def _ask_to_join(guest: Guest) -> tuple[int, tuple[int, ...]]:
    """The number of this host's first worker, and who is there."""
    title = f"a run at {guest.host[0]}:{guest.host[1]}"
    me = Identity(guest.secret, GUESTS, SUPERVISORS + 1)
    pipe, keys = await connect_one(me, SUPERVISORS, guest.host, guest.tls, guest.wait, title)
    talk = Talk(pipe, keys)
    try:
        await talk.say(codec.encode(["join", guest.workers, guest.listen, guest.port]))
        with trio.move_on_after(_LONGEST + guest.wait):
            answer = await talk.hear()
            if answer is None:
                raise Unreachable(f"{title} has ended the connection: it may be over")
            return _read_welcome(answer)
    finally:
        await talk.close()
    raise Unreachable(f"{title} has not answered")


def _read_welcome(answer: bytes | memoryview) -> tuple[int, tuple[int, ...]]:
    kind, *content = require_list(codec.decode(answer))
    if kind == "refused":
        raise ClusterError(f"the run does not let this host join: {plain(str(content[0]))}")
    first, present = content
    there = [worker for worker in require_list(present) if type(worker) is int]
    if kind != "welcome" or type(first) is not int or not there:
        raise ProtocolError(f"{plain(str(content))} where a welcome belongs")
    return first, tuple(there)


# On host 0


async def welcome_guests(me: Identity, listen: Address, tls: Tls | None, ask: Ask, printer: Printer) -> None:
    """Listens for hosts that join, as long as the run lasts. `ask` asks worker 0."""

    async def serve(talk: Talk) -> None:
        request = await talk.hear()
        if request is None:
            return
        try:
            answer = ["welcome", *require_list(await ask(_question(request)), 2)]
        except (Refused, ProtocolError, ValueError, TypeError) as error:
            answer = ["refused", str(error)]
        await talk.say(codec.encode(answer))
        await talk.hear()  # until it has read that, and is gone

    await serve_others(me, listen, tls, serve, printer)


def _question(request: bytes | memoryview) -> Question:
    kind, workers, host, port = require_list(codec.decode(request), 4)
    if kind != "join" or type(workers) is not int or not 1 <= workers <= _MOST or type(host) is not str:
        raise ProtocolError("that is no request to join")
    if type(port) is not int or not 0 < port <= 65535 - workers:
        raise ProtocolError(f"there are no ports for {workers} workers from {port} on")
    return Question("guests", {"at": [[host, port + place] for place in range(workers)]})


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


