"""Workers of different processes: one link to each, and on one host memory that all of them share.

Links lead over the socket pairs of processes on one host or over TCP (`dataflow.launch.mesh`); those between workers
that were started together on one host lead through rings (`ring`), which are looked at all at once (`gathering`).
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from dataflow.comm.conversation import Conversation
from dataflow.comm.gathering import Gathering
from dataflow.comm.link import Link
from dataflow.comm.messages import AnyMessage, BlocksReturned, Goodbye, Hello, Progress
from dataflow.comm.patience import LONGEST, Patience
from dataflow.comm.ring import RingPipe
from dataflow.errors import PeerLost
from dataflow.run.interest import EVERYTHING
from dataflow.run.signal import Signal

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

_MOMENT = 500e-6  # seconds
_AT_ONCE = 16  # answers that a reading task looks for before it lets others have their turn


class Linked:
    """One link to each other worker."""

    def __init__(self, pump: Pump, links: Mapping[int, Link], patience: Patience | None = None) -> None:
        """`patience` decides when to look for messages before sleeping; without it, never."""
        self._pump = pump
        self._links = dict(links)
        self._posted: dict[Link, None] = {}  # links with something to send, since the last flush
        self._farewell = Signal()
        rings = {link: link.pipe for link in links.values() if isinstance(link.pipe, RingPipe)}
        self._gathering = Gathering(rings, self) if rings else None
        self._sockets = [link for link in links.values() if link.pipe.pollable and link not in rings]
        self._patience = patience if rings or self._sockets else None
        self._alone_until = 0.0  # until when nobody else in this loop is thought to want to run,
        self._alone_since = -1  # unless a task was woken after so many
        self._said = False  # whether something was written on the board since the last flush
        self._count_outsiders()

    # Sending

    def send(self, to: int, message: AnyMessage) -> None:
        """Queues a message for worker `to`."""
        link = self._links.get(to)
        if link is not None:  # else it has left
            link.post(message)
            self._posted[link] = None

    def broadcast(self, others: Sequence[int], message: AnyMessage) -> None:
        """Writes a message on the board, if it belongs there, and queues it for those who do not read that."""
        gathering = self._gathering
        if gathering is not None and gathering.says(message):
            self._said = True
            if len(gathering.peers) == len(self._links):
                return
            others = [to for to in others if to not in gathering.peers]
        for to in others:
            self.send(to, message)

    def reaches(self, worker: int) -> bool:
        """Whether there is a link."""
        return worker in self._links

    def flush(self) -> bool:
        """Sends every queue as one frame. Whether there was anything to send."""
        if not self._said and not self._posted:
            return False
        if self._gathering is None:
            for link in self._posted:
                link.flush()
            self._posted.clear()
        elif self._gathering.flush(self._posted):
            self._posted.clear()
            self._said = False
        return True

    # Receiving

    def collect(self) -> bool:
        """Receives what has arrived already: on a busy machine the answer to what was just sent."""
        gathering = self._gathering
        found = False
        if gathering is not None:
            found = gathering.collect()
            if gathering.waits and gathering.go_on():
                self._said = True
                self.flush()
        for link in self._sockets:
            messages = link.read_now()
            if messages:
                self.hear_messages(messages)
                found = True
        return found

    def linger(self) -> bool:
        """Looks for messages until they come, or patience ends, or somebody else in this loop could do something."""
        patience = self._patience
        if patience is None:
            return False
        now = perf_counter()
        if not patience.begin(now) or not self._alone(now):
            return False
        until = patience.look()
        while not self._look():
            if perf_counter() >= until:
                patience.in_vain()
                return False
            os.sched_yield()  # others who share this core come first
        return True

    def _alone(self, now: float) -> bool:
        """Whether nothing else in this loop wants to run now: no task (but a pump that was woken), no timer. To ask
        costs as much as a look at all rings: what is true now is taken to be true for a moment, unless one of our own
        signals wakes a task, as the one of a main does whose time has passed."""
        if now < self._alone_until and self._alone_since == Signal.woken:
            return True
        loop = trio.lowlevel.current_statistics()
        if loop.tasks_runnable > self._pump.scheduled or loop.seconds_to_next_deadline <= LONGEST:
            return False
        self._alone_since = Signal.woken
        self._alone_until = now + min(_MOMENT, loop.seconds_to_next_deadline - LONGEST)
        return True

    def _look(self) -> bool:
        """Receives what has arrived; whether there was anything."""
        if not self.collect():
            return False
        self._take_turn()
        return True

    def _take_turn(self, collected: bool = True) -> None:
        if self._patience is not None:
            self._patience.arrived(perf_counter())
        self._pump.turn(collected)

    def stay_awake(self) -> None:
        """This worker looks for messages by itself until `may_sleep`."""
        if self._gathering is not None:
            self._gathering.stay_awake()

    def may_sleep(self, interest: int) -> bool:
        """Others are to ring this worker's bell; False if there is something to collect already."""
        return self._gathering is None or self._gathering.may_sleep(interest)

    def concluded(self) -> None:
        """All that was collected has been applied."""
        if self._gathering is not None:
            self._gathering.concluded()

    def wake_watchers(self, moved: int) -> None:
        """Rings the bells of those to whom it is of interest that these frontiers have moved."""
        if self._gathering is not None:
            self._gathering.wake(moved)

    # Tasks

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the tasks of all links. What they raise ends the worker."""
        for link in self._links.values():
            self._start(link, nursery)
        if not self.may_sleep(EVERYTHING):
            self._pump.wake()

    def _start(self, link: Link, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._read, link, name=f"from worker {link.peer}")
        nursery.start_soon(link.write, name=f"to worker {link.peer}")

    async def accept(self, next_joiner: Callable[[], Awaitable[tuple[int, Link]]]) -> None:
        """Adds links to workers that join, as they come."""
        async with trio.open_nursery() as nursery:
            while True:
                peer, link = await next_joiner()
                self._links[peer] = link
                if link.pipe.pollable:
                    self._sockets.append(link)
                self._count_outsiders()
                self._pump.conversations.setdefault(peer, Conversation(peer))
                self._start(link, nursery)
                self._pump.changes.linked()
                self._pump.turn()
                self._settle()

    async def _read(self, link: Link) -> None:
        try:
            if isinstance(link.pipe, RingPipe):
                await self._attend(link, link.pipe)
            else:
                await link.read(self._receive)
        except PeerLost as error:
            if not self._pump.changes.lost(link.peer, str(error)):
                raise
        if link.peer not in self._pump.roster.present:  # it had not joined, or has left
            await self._forget(link)
        self._farewell.set()

    async def _forget(self, link: Link) -> None:
        self._links.pop(link.peer, None)
        self._posted.pop(link, None)
        if link in self._sockets:
            self._sockets.remove(link)
        if self._gathering is not None:
            self._gathering.forget(link.peer)
        self._count_outsiders()
        await link.close()

    def _count_outsiders(self) -> None:
        if self._gathering is not None:
            self._gathering.outsiders = len(self._gathering.peers) < len(self._links)

    async def _attend(self, link: Link, pipe: RingPipe) -> None:
        """Looks at all rings and boards whenever one worker rings the bell. PeerLost if it ends without a goodbye."""
        while await pipe.hear_bell():
            self._rung()
        self._rung()  # for what it said before it ended
        if not link.said_goodbye:
            raise PeerLost(link.peer)

    def _rung(self) -> None:
        self.stay_awake()
        for _ in range(_AT_ONCE):
            if self._pump.busy:
                break
            if not self._look() and not self.linger() and self._pump.may_sleep():
                return
        self._pump.wake()  # which collects what there is, and says when it sleeps, after others have had their turn

    def _receive(self, messages: list[AnyMessage]) -> None:
        """A reading task has received messages; others may follow at once."""
        self.stay_awake()
        self.hear_messages(messages)
        self._take_turn(collected=False)  # boards and rings were not looked at
        for _ in range(_AT_ONCE):
            if self._pump.busy or not self.linger():
                break
        self._settle()

    def _settle(self) -> None:
        """After a turn outside of `Pump.run`: others are to wake this worker, for what it waits for now."""
        if self._gathering is not None and not self._pump.may_sleep():
            self._pump.wake()

    # What has arrived

    def hear_changes(self, senders: list[int], dataflow: int, words: list[int], start: int, stop: int) -> None:
        """Progress, from boards."""
        self._pump.hear_changes(senders, dataflow, words, start, stop)

    def hear_letter(self, letter: Hello | Progress) -> None:
        """A greeting, or progress, from a board."""
        self._pump.hear_letter(letter)

    def hear_messages(self, messages: list[AnyMessage]) -> None:
        """Gives messages to the worker, and keeps none: its operators may be done with them before its turn is over,
        and then their memory can be used again."""
        for message in messages:
            if isinstance(message, Goodbye):
                self._pump.said_goodbye(message)
                self._farewell.set()
            elif not isinstance(message, BlocksReturned):  # which concerned the link alone
                self._pump.receive(message)
        messages.clear()

    # The end

    def part_from(self, worker: int) -> None:
        """A worker has left, and waits until everybody has said goodbye."""
        if worker in self._links:
            if self._gathering is not None:
                self._gathering.part_from(worker)
            self.send(worker, Goodbye(self._pump.index))

    async def say_goodbye(self) -> None:
        """Tells every peer that there is nothing more to come, and waits until all have said the same.

        Whoever closes a connection with bytes unread may destroy what the other has not read yet: so all stay until all
        are done.
        """
        for link in tuple(self._links.values()):
            self.send(link.peer, Goodbye(self._pump.index))
        self.flush()
        for link in tuple(self._links.values()):
            await link.drain()
        while not all(link.said_goodbye for link in tuple(self._links.values())):
            await self._farewell.wait()

    async def close(self) -> None:
        """Ends every connection."""
        for link in tuple(self._links.values()):
            await link.close()
