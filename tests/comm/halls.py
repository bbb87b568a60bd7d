"""Workers that share a hall, all in one process and one trio loop, so that a seed decides what happens when.

Boards and rings are tiny, so that they are full now and then. Wherever a worker reads or writes what another may write
or read at the same time, the seed may have some other worker take a turn in between, as another processor would. The
clock is virtual: when nobody is awake any more, time runs out at once, so a bell that was not rung is a failure and not
a hang.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from dataflow.comm.gathering import Gathering
from dataflow.comm.hall import Hall, HallPlan, make_hall
from dataflow.comm.handshake import Keys
from dataflow.comm.link import Link
from dataflow.comm.linked import Linked
from dataflow.comm.pipes import SocketPipe
from dataflow.comm.ring import RingPipe
from dataflow.run.exceptions import unwrap
from dataflow.run.interest import EVERYTHING
from dataflow.run.pump import Pump

__all__ = ["EVERYTHING", "LONG", "ROOMY", "TINY", "InHall", "Interleaving", "Stalled", "join"]

LONG = 1000.0  # virtual seconds: whoever waits longer was not woken
_DEEPEST = 6  # calls within calls, of different workers or of the same
_PAUSES = (0, 0, 0, 1, 3, 12)  # rounds of trio's loop that a task comes late
TINY = {"board": 1 << 9, "ring": 1 << 8}  # bytes: sixteen entries, and less than one batch of records
ROOMY = {"board": 1 << 16, "ring": 1 << 16}


_GUARDED = [
    (Pump, "turn"),
    *((Gathering, name) for name in ("flush", "collect", "may_sleep", "wake")),
    *((RingPipe, name) for name in ("try_send", "knock")),
    *((Linked, name) for name in ("flush", "collect")),
]


class Stalled(AssertionError):
    """Everybody sleeps, and not all is done."""


@dataclass
class Interleaving:
    """Has other workers take turns in the middle of one's own."""

    chance: Random
    often: float
    late: float  # how often what was sent through a socket is not there yet
    pumps: list[Pump] = field(default_factory=list)
    active: list[int] = field(default_factory=list)  # those who are at work, the last one now
    turns: int = 0

    def fence(self) -> None:
        """In the place of the real one: what others do may come here."""
        if len(self.active) == _DEEPEST or self.chance.random() >= self.often:
            return
        others = [pump for pump in self.pumps if pump._pumped and not pump._failed and pump.index not in self.active]
        if others:
            self.turns += 1
            self.take_turn(self.chance.choice(others))

    def guarded(self, method: Any) -> Any:
        """A method of a pump, or of what it reads and writes with, in which nobody else may have that pump take a
        turn."""

        def call(it: Any, *args: Any, **named: Any) -> Any:
            self.active.append(_worker_of(it))
            try:
                return method(it, *args, **named)
            finally:
                self.active.pop()

        return call

    def take_turn(self, pump: Pump) -> None:
        """What a worker does when its bell is rung, up to where it would sleep."""
        assert pump.transport is not None
        pump.transport.stay_awake()
        pump.turn_for_main()
        if not pump.may_sleep():
            pump.wake()

    def ringing(self, method: Any) -> Any:
        """Somebody's bell is rung: it may be faster than who rings."""

        def ring(pipe: RingPipe) -> None:
            method(pipe)
            self.fence()

        return ring

    def sending(self, method: Any) -> Any:
        """Something was sent through a socket: it is there before what is sent through the next one, and others may
        hear of it in between."""

        def send(pipe: SocketPipe, pieces: Any) -> int:
            sent: int = method(pipe, pieces)
            self.fence()
            return sent

        return send

    def reading(self, method: Any) -> Any:
        """Somebody looks into a socket: what was sent may be on its way still, as long as it takes others to hear of
        it. The kernel wakes the reading task when it is there."""

        def read(link: Link) -> list[Any]:
            if self.chance.random() < self.late:
                return []
            messages: list[Any] = method(link)
            return messages

        return read

    def slow(self, method: Any) -> Any:
        """A task that waits for a bell or a socket: it may come back to that long after it was rung or sent, as the
        task of a process does that does not have the processor. Without this all workers keep step with trio's loop."""

        async def wait(pipe: Any, *args: Any) -> Any:
            for _ in range(self.chance.choice(_PAUSES)):
                await trio.lowlevel.checkpoint()
            return await method(pipe, *args)

        return wait

    def exchange(self, pump: Pump) -> None:
        """In the place of `Pump.exchange`."""
        assert pump.transport is not None
        if pump.transport.flush():
            self.fence()
            pump.transport.collect()


@dataclass(frozen=True)
class InHall:
    """A way to run programs (see `tests.programs.running`)."""

    workers: int
    seed: int
    debug: bool = False
    outsiders: int = 0  # of the workers, so many have no part in the hall: the others reach them by sockets
    sizes: Any = field(default_factory=lambda: TINY)

    def __call__(self, main: Any, *args: Any, workers: int | None = None) -> list[Any]:
        chance = Random(self.seed)
        between = Interleaving(chance, chance.choice((0.0, 0.1, 0.4)), chance.choice((0.0, 0.5, 0.9)))
        with _one_order(self.seed), pytest.MonkeyPatch.context() as patch:
            for module in ("gathering", "board", "ring"):
                patch.setattr(f"dataflow.comm.{module}.fence", between.fence)
                patch.setattr(f"dataflow.comm.{module}.WEAK", True)
            patch.setattr(Pump, "exchange", lambda pump: between.exchange(pump))
            patch.setattr(RingPipe, "ring_bell", between.ringing(RingPipe.ring_bell))
            patch.setattr(SocketPipe, "try_send", between.sending(SocketPipe.try_send))
            patch.setattr(Link, "read_now", between.reading(Link.read_now))
            patch.setattr(SocketPipe, "receive_into", between.slow(SocketPipe.receive_into))
            patch.setattr(RingPipe, "hear_bell", between.slow(RingPipe.hear_bell))
            for kind, name in _GUARDED:
                patch.setattr(kind, name, between.guarded(getattr(kind, name)))
            clock = trio.testing.MockClock(autojump_threshold=0)
            return trio.run(self._run, between, main, args, workers or self.workers, clock=clock)

    async def _run(self, between: Interleaving, main: Any, args: tuple[Any, ...], workers: int) -> list[Any]:
        results: dict[int, Any] = {}
        transports = join(workers, between, self.debug, self.sizes, self.outsiders)

        async def live(pump: Pump, transport: Linked) -> None:
            try:
                async with pump.running() as nursery:
                    transport.start(nursery)
                    nursery.start_soon(pump.run)
                    results[pump.index] = await pump.run_main(main, *args)
                    await transport.say_goodbye()
            finally:
                with trio.CancelScope(shield=True):
                    await transport.close()

        try:
            with trio.move_on_after(LONG) as patience:
                async with trio.open_nursery() as nursery:
                    for pump, transport in zip(between.pumps, transports, strict=True):
                        nursery.start_soon(live, pump, transport)
        except BaseExceptionGroup as group:
            raise unwrap(group) from None
        if patience.cancelled_caught:
            raise Stalled(f"seed {self.seed}: nobody is awake, and workers {sorted(results)} of {workers} are done")
        return [results[index] for index in sorted(results)]


def _worker_of(it: Any) -> int:
    """Whose a pump is, or what it reads and writes with."""
    if isinstance(it, Pump):
        return it.index
    if isinstance(it, Linked):
        return it._pump.index
    slot: int = it.hall.slot if isinstance(it, RingPipe) else it._me
    return slot


def join(workers: int, between: Interleaving, debug: bool, sizes: Any, outsiders: int = 0) -> list[Linked]:
    """Workers in a hall, and how they reach each other; the last so many are not in it."""
    inside = workers - outsiders if workers > outsiders + 1 else workers  # a hall is for two at least
    plan = HallPlan(inside, **sizes)
    memory = make_hall(plan)
    assert memory is not None
    sockets: dict[tuple[int, int], socket.socket] = {}
    for a in range(workers):
        for b in range(a):
            sockets[a, b], sockets[b, a] = socket.socketpair()
    transports = []
    for me in range(workers):
        hall = Hall(plan, memory, me) if me < inside else None
        pump = Pump(me, workers, debug, warn_after=None)
        links = {}
        for peer in range(workers):
            if peer != me:
                pipe = _pipe(hall if peer < inside else None, sockets[me, peer], peer)
                links[peer] = Link(pipe, None if isinstance(pipe, RingPipe) else Keys(b"", b""), peer)
        pump.transport = transport = Linked(pump, links)
        between.pumps.append(pump)
        transports.append(transport)
    return transports


def _pipe(hall: Hall | None, connection: socket.socket, peer: int) -> RingPipe | SocketPipe:
    return SocketPipe(connection) if hall is None else RingPipe(hall, peer, connection, peer)


@contextmanager
def _one_order(seed: int) -> Iterator[None]:
    """Has trio choose between tasks as the seed says (see dataflow.testing)."""
    scheduling: Any = trio._core._run
    chance, flag = scheduling._r, scheduling._ALLOW_DETERMINISTIC_SCHEDULING
    state = chance.getstate()
    chance.seed(seed)
    scheduling._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        yield
    finally:
        chance.setstate(state)
        scheduling._ALLOW_DETERMINISTIC_SCHEDULING = flag
