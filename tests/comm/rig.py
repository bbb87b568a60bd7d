"""Every transport as a way to run one script on several ends: in one loop, in forked processes, through rings, over TCP
and TLS."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import trio

from dataflow.comm.arena import Arena
from dataflow.comm.hall import Hall, HallPlan, make_hall
from dataflow.comm.handshake import Identity, Keys, cluster_digest
from dataflow.comm.link import Link, SharedArenas
from dataflow.comm.linked import Linked
from dataflow.comm.messages import AnyMessage, Progress
from dataflow.comm.patience import Patience
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.ring import RingPipe
from dataflow.comm.transport import InProcess, Transport
from dataflow.launch.hosts import Tls
from dataflow.launch.mesh import connect_all
from dataflow.launch.neighbours import direction_key
from dataflow.members.roster import Roster
from dataflow.progress.broadcast import UNNUMBERED, ProgressBatch
from dataflow.run.interest import EVERYTHING

HANG = 30.0  # seconds: a fail-safe, not an expectation
SECRET = b"a secret for tests only"

Script = Callable[["End"], Awaitable[None]]
Rig = Callable[[Script, int], None]


class End:
    """One end of a transport: in the place of a worker, it only collects what arrives."""

    def __init__(self, index: int, peers: int) -> None:
        self.index = index
        self.peers = peers
        self.transport: Transport | None = None
        self.inbox: list[AnyMessage] = []
        self.turns = 0  # how often something was delivered
        self._news = trio.Event()

    @property
    def others(self) -> list[int]:
        return [peer for peer in range(self.peers) if peer != self.index]

    def send(self, to: int, *messages: AnyMessage, flush: bool = True) -> None:
        """Sends messages, in one go unless told otherwise."""
        assert self.transport is not None
        for message in messages:
            self.transport.send(to, message)
        if flush:
            self.transport.flush()

    def broadcast(self, *messages: AnyMessage) -> None:
        """Sends messages to all others."""
        assert self.transport is not None
        for message in messages:
            self.transport.broadcast(self.others, message)
        self.transport.flush()
        self.transport.wake_watchers(EVERYTHING)

    def of(self, sender: int) -> list[AnyMessage]:
        """What has arrived from one of the others."""
        return [message for message in self.inbox if message.sender == sender]

    async def receive(self, count: int) -> list[AnyMessage]:
        """Waits until so many messages have arrived in all."""
        while len(self.inbox) < count:
            self._news = trio.Event()
            await self._news.wait()
        return self.inbox

    # What a transport expects of a worker

    def post(self, message: AnyMessage) -> None:
        self.inbox.append(message)
        self.turn()

    def deliver(self, message: AnyMessage) -> None:
        self.inbox.append(message)

    def turn(self) -> None:
        self.turns += 1
        self._news.set()


class _Worker:
    """What `Linked` sees of an end: `receive` means another thing there."""

    def __init__(self, end: End) -> None:
        self.index = end.index
        self.scheduled = self.busy = False  # there is no pump
        self.receive = end.deliver
        self.turn = lambda collected=False: end.turn()
        self.said_goodbye = lambda goodbye: None
        self.hear_letter = end.deliver
        self._end = end
        self._woken = trio.Event()
        self.roster = Roster(end.index, range(end.peers))


    def hear_changes(self, senders: list[int], dataflow: int, words: list[int], start: int, stop: int) -> None:
        changes = tuple([((words[at + 1], words[at + 2]), words[at + 3]) for at in range(start, stop, 4)])
        for sender in senders:
            self._end.deliver(Progress(sender, dataflow, ProgressBatch(sender, UNNUMBERED, changes)))

    def may_sleep(self) -> bool:
        assert self._end.transport is not None
        return self._end.transport.may_sleep(EVERYTHING)

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """As a pump does: collects what there is whenever it is woken."""
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            assert self._end.transport is not None
            self._end.transport.stay_awake()
            while self._end.transport.collect() or not self.may_sleep():
                self.turn()
                await trio.lowlevel.checkpoint()


async def _play(end: End, links: Mapping[int, Link], script: Script, patience: Patience | None = None) -> None:
    """Runs a script over links, says goodbye as workers do, and closes."""
    worker = _Worker(end)
    transport = Linked(worker, links, patience)  # type: ignore[arg-type]
    end.transport = transport
    try:
        with trio.fail_after(HANG):
            async with trio.open_nursery() as nursery:
                transport.start(nursery)
                nursery.start_soon(worker.run)
                await script(end)
                await transport.say_goodbye()
                nursery.cancel_scope.cancel()
    finally:
        await transport.close()


# ------------------------------------------------------------------------------------------------------ in one process


def in_process(script: Script, peers: int) -> None:
    """Messages are handed over as they are."""
    ends = [End(index, peers) for index in range(peers)]
    transport = InProcess(ends)  # type: ignore[arg-type]

    async def run() -> None:
        with trio.fail_after(HANG):
            async with trio.open_nursery() as nursery:
                for end in ends:
                    end.transport = transport
                    nursery.start_soon(script, end)

    trio.run(run)


def socket_pairs(script: Script, peers: int) -> None:
    """Linked ends in one trio loop."""
    pairs = _pairs(peers)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            for index in range(peers):
                nursery.start_soon(_play, End(index, peers), _links(pairs, index), script)

    trio.run(run)


def rings(script: Script, peers: int) -> None:
    """Ends in one trio loop that speak through memory, of which there is little."""
    pairs = _pairs(peers)
    plan, memory = _hall(peers)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            for index in range(peers):
                links = _ring_links(pairs, Hall(plan, memory, index))
                nursery.start_soon(_play, End(index, peers), links, script)

    trio.run(run)


def tcp(script: Script, peers: int, tls: Tls | None = None) -> None:
    """Ends that find each other over loopback, and prove themselves, in one trio loop."""
    addresses = _addresses(peers)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            for index in range(peers):
                nursery.start_soon(_play_over_tcp, End(index, peers), addresses, tls, script)

    trio.run(run)


# ----------------------------------------------------------------------------------------------------------- processes


def processes(script: Script, peers: int, patience: Patience | None = None) -> None:
    """Forked processes with socket pairs and shared memory, which is small enough to run out."""
    pairs = _pairs(peers)
    arenas = [Arena(1 << 20) for _ in range(peers)]

    async def member(index: int) -> None:
        for (owner, _), sock in pairs.items():
            if owner != index:
                sock.close()
        await _play(End(index, peers), _links(pairs, index, arenas), script, patience)

    _fork(member, peers, pairs)


def lingering(script: Script, peers: int) -> None:
    """The same, and each looks for more after whatever arrives, however often that was in vain."""
    processes(script, peers, Patience(few=0))


def ring_processes(script: Script, peers: int, patience: Patience | None = None) -> None:
    """Forked processes that speak through memory: what workers of one host do."""
    pairs = _pairs(peers)
    plan, memory = _hall(peers)
    arenas = [Arena(1 << 20) for _ in range(peers)]

    async def member(index: int) -> None:
        for (owner, _), sock in pairs.items():
            if owner != index:
                sock.close()
        await _play(End(index, peers), _ring_links(pairs, Hall(plan, memory, index), arenas), script, patience)

    _fork(member, peers, pairs)


def ring_lingering(script: Script, peers: int) -> None:
    """The same, and each looks for more."""
    ring_processes(script, peers, Patience(few=0))


def tcp_processes(script: Script, peers: int, tls: Tls | None = None) -> None:
    """Forked processes that share nothing but addresses and a secret."""
    addresses = _addresses(peers)

    async def member(index: int) -> None:
        await _play_over_tcp(End(index, peers), addresses, tls, script)

    _fork(member, peers, {})


def tls(script: Script, peers: int) -> None:
    """The same with certificates."""
    tcp_processes(script, peers, certificates())


RIGS: dict[str, Rig] = {
    "in one process": in_process,
    "socket pairs": socket_pairs,
    "processes": processes,
    "processes that linger": lingering,
    "rings": rings,
    "rings between processes": ring_processes,
    "rings between processes that linger": ring_lingering,
    "TCP": tcp,
    "TCP between processes": tcp_processes,
    "TLS between processes": tls,
}
LINKED = {name: rig for name, rig in RIGS.items() if name != "in one process"}


async def _play_over_tcp(end: End, addresses: list[tuple[str, int]], tls: Tls | None, script: Script) -> None:
    me = Identity(SECRET, cluster_digest("rig", end.peers), end.index)
    others = {peer: address for peer, address in enumerate(addresses) if peer != end.index}
    pipes = await connect_all(me, addresses[end.index], others, tls, HANG, lambda peer: f"end {peer}")
    await _play(end, {peer: Link(pipe, keys, peer) for peer, (pipe, keys) in pipes.items()}, script)


def _pairs(peers: int) -> dict[tuple[int, int], socket.socket]:
    pairs = {}
    for a in range(peers):
        for b in range(a + 1, peers):
            pairs[a, b], pairs[b, a] = socket.socketpair()
    return pairs


def _links(
    pairs: Mapping[tuple[int, int], socket.socket], index: int, arenas: Sequence[Arena] | None = None
) -> dict[int, Link]:
    key = b"k" * 24
    links = {}
    for (owner, peer), sock in pairs.items():
        if owner == index:
            keys = Keys(direction_key(key, index, peer), direction_key(key, peer, index))
            shared = SharedArenas(arenas[index], arenas[peer]) if arenas else None
            links[peer] = Link(SocketPipe(sock), keys, peer, shared=shared)
    return links


def _hall(peers: int) -> tuple[HallPlan, memoryview]:
    plan = HallPlan(peers, board=1 << 12, ring=1 << 12)
    memory = make_hall(plan)
    assert memory is not None
    return plan, memory


def _ring_links(
    pairs: Mapping[tuple[int, int], socket.socket], hall: Hall, arenas: Sequence[Arena] | None = None
) -> dict[int, Link]:
    links = {}
    for (owner, peer), sock in pairs.items():
        if owner == hall.slot:
            shared = SharedArenas(arenas[owner], arenas[peer]) if arenas else None
            links[peer] = Link(RingPipe(hall, peer, sock, peer), None, peer, shared=shared)
    return links


def _fork(member: Callable[[int], Awaitable[None]], peers: int, pairs: Mapping[Any, socket.socket]) -> None:
    """Runs each member in a process of its own; what one raises is raised here, as text."""
    running = {}
    for index in range(peers):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            failure = b""
            try:
                os.close(read)
                trio.run(member, index)
            except BaseException:
                failure = traceback.format_exc().encode()
            finally:
                os.write(write, failure[-60_000:])
                os._exit(0)
        os.close(write)
        running[index] = (pid, read)
    for sock in pairs.values():
        sock.close()
    failures = {}
    for index, (pid, read) in running.items():
        with open(read, "rb") as pipe:
            failures[index] = pipe.read().decode()
        os.waitpid(pid, 0)
    told = [f"end {index}:\n{failure}" for index, failure in failures.items() if failure]
    assert not told, "\n".join(told)


# ----------------------------------------------------------------------------------------------- ports and certificates


def free_ports(count: int = 1) -> int:
    """The first of so many consecutive ports that nobody listens on, outside the range that the system hands out."""
    for base in range(20_000 + os.getpid() * 37 % 9_000, 32_000, count):
        if all(_free(base + i) for i in range(count)):
            return base
    raise RuntimeError("there are no free ports")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _addresses(peers: int) -> list[tuple[str, int]]:
    base = free_ports(peers)
    return [("127.0.0.1", base + index) for index in range(peers)]


@functools.cache
def certificates(name: str = "good") -> Tls:
    """A certificate for 127.0.0.1 from an authority of that name, made by openssl the first time."""
    folder = Path(tempfile.mkdtemp(prefix="certificates"))
    atexit.register(shutil.rmtree, folder)
    _openssl(folder, "req", "-x509", "-nodes", *_EC, "-subj", f"/CN=authority {name}", "-days", "2",
             "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
    _openssl(folder, "req", "-nodes", *_EC, "-subj", "/CN=host", "-keyout", "host.key", "-out", "host.csr")
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    _openssl(folder, "x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
             "-days", "2", "-extfile", "ext", "-out", "host.pem")  # fmt: skip
    return Tls(folder / "host.pem", folder / "host.key", folder / "ca.pem")


_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def garbled(data: bytes, at: int) -> bytes:
    """The same bytes with one of them changed."""
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
