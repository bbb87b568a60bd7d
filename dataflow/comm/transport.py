"""The interface between a worker and the way to its peers, and its implementations.

`InProcess` joins workers of one trio loop. `Linked` joins workers of different processes, by one link to each: over
the socket pairs of processes on one host (`dataflow.launch.child`) or over TCP (`dataflow.launch.mesh`). One
conformance suite runs on all.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import trio

from dataflow.comm.conversation import Conversation
from dataflow.comm.link import Link
from dataflow.comm.messages import AnyMessage, BlocksReturned, Goodbye
from dataflow.comm.patience import LONGEST, Patience
from dataflow.errors import PeerLost
from dataflow.run.signal import Signal

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

_AT_ONCE = 16  # answers that a reading task looks for before it lets others have their turn


class Transport(Protocol):
    """Carries messages between workers.

    Messages from one worker to another arrive once each and in order (the simulation of `dataflow.testing` lets data
    overtake, so nothing relies on more than order among the rest). `send` does not wait, and never calls into the
    receiving worker directly; what was sent may stay here until `flush`.
    """

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to worker `to`."""

    def reaches(self, worker: int) -> bool:
        """Whether something can be sent to a worker that joins."""

    def part_from(self, worker: int) -> None:
        """A worker has left."""

    def flush(self) -> None:
        """Lets go of everything that was sent."""

    def poll(self) -> None:
        """Receives what has arrived already, for somebody who is about to wait for it."""

    def linger(self) -> bool:
        """Looks for messages for a moment, if they may be worth it; whether some were received."""


class InProcess:
    """Workers of one trio loop: a message is put into the receiver's mailbox as it is, without copying."""

    def __init__(self, pumps: Sequence[Pump]) -> None:
        self._pumps = pumps

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to worker `to`."""
        self._pumps[to].post(message)

    def reaches(self, worker: int) -> bool:
        """Whether it has started."""
        return worker < len(self._pumps)

    def part_from(self, worker: int) -> None:
        """It has left, and nobody minds."""

    def flush(self) -> None:
        """Nothing is kept."""

    def poll(self) -> None:
        """What has arrived is in the mailbox."""

    def linger(self) -> bool:
        """There is nothing to look for: whoever sends is in this loop."""
        return False


class Linked:
    """One link to each other worker."""

    def __init__(self, pump: Pump, links: Mapping[int, Link], patience: Patience | None = None) -> None:
        """`patience` decides when to look for messages before sleeping; without it, never."""
        self._pump = pump
        self._links = dict(links)
        self._farewell = Signal()
        self._posted = False  # whether anything was sent since the last flush
        self._patience = patience if any(link.pollable for link in links.values()) else None

    def send(self, to: int, message: AnyMessage) -> None:
        """Queues a message for worker `to`."""
        link = self._links.get(to)
        if link is not None:  # else it has left
            link.post(message)
            self._posted = True

    def reaches(self, worker: int) -> bool:
        """Whether there is a link."""
        return worker in self._links

    def flush(self) -> None:
        """Sends every queue as one frame."""
        if self._posted:
            self._posted = False
            for link in tuple(self._links.values()):
                link.flush()

    def poll(self) -> None:
        """Receives what has arrived already: on a busy machine the answer to what was just sent."""
        self._look()

    def linger(self) -> bool:
        """Looks for messages until they come, or patience ends, or somebody else in this loop could do something."""
        patience = self._patience
        if patience is None:
            return False
        if not patience.begin(perf_counter()) or not self._alone():
            return False
        until = patience.look()
        while not self._look():
            if perf_counter() >= until:
                patience.in_vain()
                return False
            os.sched_yield()  # others who share this core come first
        return True

    def _alone(self) -> bool:
        """Whether nothing else in this loop wants to run now: no task (but a pump that was woken), no timer."""
        loop = trio.lowlevel.current_statistics()
        return loop.tasks_runnable <= self._pump.awake and loop.seconds_to_next_deadline > LONGEST

    def _look(self) -> bool:
        """Receives what has arrived; whether there was anything."""
        found = False
        for link in tuple(self._links.values()):
            messages = link.read_now()
            if messages:
                self._take(messages)
                found = True
        return found

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the tasks of all links. What they raise ends the worker."""
        for link in self._links.values():
            nursery.start_soon(self._read, link, name=f"from worker {link.peer}")
            nursery.start_soon(link.write, name=f"to worker {link.peer}")

    async def accept(self, next_joiner: Callable[[], Awaitable[tuple[int, Link]]]) -> None:
        """Adds links to workers that join, as they come."""
        async with trio.open_nursery() as nursery:
            while True:
                peer, link = await next_joiner()
                self._links[peer] = link
                self._pump.conversations.setdefault(peer, Conversation(peer))
                nursery.start_soon(self._read, link, name=f"from worker {peer}")
                nursery.start_soon(link.write, name=f"to worker {peer}")
                self._pump.changes.linked()
                self._pump.turn()

    async def _read(self, link: Link) -> None:
        try:
            await link.read(self._receive)
        except PeerLost as error:
            if not self._pump.changes.lost(link.peer, str(error)):
                raise
        if link.peer not in self._pump.roster.present:  # it had not joined, or has left
            self._links.pop(link.peer, None)
            await link.close()
        self._farewell.set()

    def _receive(self, messages: list[AnyMessage]) -> None:
        """A reading task has received messages; others may follow at once."""
        self._take(messages)
        for _ in range(_AT_ONCE):
            if not self.linger():
                break

    def _take(self, messages: list[AnyMessage]) -> None:
        if self._patience is not None:
            self._patience.arrived(perf_counter())
        self._hand_over(messages)
        self._pump.turn()

    def _hand_over(self, messages: list[AnyMessage]) -> None:
        """Gives messages to the worker, and keeps none: its operators may be done with them before its turn is over,
        and then their memory can be used again."""
        for message in messages:
            if isinstance(message, Goodbye):
                self._pump.said_goodbye(message)
                self._farewell.set()
            elif not isinstance(message, BlocksReturned):  # which concerned the link alone
                self._pump.receive(message)
        messages.clear()

    def part_from(self, worker: int) -> None:
        """A worker has left, and waits until everybody has said goodbye."""
        if worker in self._links:
            self._links[worker].post(Goodbye(self._pump.index))
            self._posted = True

    async def say_goodbye(self) -> None:
        """Tells every peer that there is nothing more to come, and waits until all have said the same.

        Whoever closes a connection with bytes unread may destroy what the other has not read yet: so all stay until all
        are done.
        """
        for link in tuple(self._links.values()):
            link.post(Goodbye(self._pump.index))
        for link in tuple(self._links.values()):
            await link.drain()
        while not all(link.said_goodbye for link in tuple(self._links.values())):
            await self._farewell.wait()

    async def close(self) -> None:
        """Ends every connection."""
        for link in tuple(self._links.values()):
            await link.close()
