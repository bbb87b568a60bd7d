"""The interface between a worker and the way to its peers, and its implementations.

`InProcess` joins workers of one trio loop. `Linked` joins workers of different processes, by one link to each: over
the socket pairs of processes on one host (`dataflow.launch.processes`) or over TCP (`dataflow.launch.mesh`). One
conformance suite runs on all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from dataflow.comm.link import Link
from dataflow.comm.messages import AnyMessage, Goodbye
from dataflow.signal import Signal

if TYPE_CHECKING:
    from dataflow.worker import Worker


class Transport(Protocol):
    """Carries messages between workers.

    Messages from one worker to another arrive once each and in order (the simulation of `dataflow.testing` lets data
    overtake, so nothing relies on more than order among the rest). `send` does not wait, and never calls into the
    receiving worker directly; what was sent may stay here until `flush`.
    """

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to worker `to`."""

    def flush(self) -> None:
        """Lets go of everything that was sent."""

    def poll(self) -> None:
        """Receives what has arrived already, for somebody who is about to wait for it."""


class InProcess:
    """Workers of one trio loop: a message is put into the receiver's mailbox as it is, without copying."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to worker `to`."""
        self._workers[to].post(message)

    def flush(self) -> None:
        """Nothing is kept."""

    def poll(self) -> None:
        """What has arrived is in the mailbox."""


class Linked:
    """One link to each other worker."""

    def __init__(self, worker: Worker, links: Mapping[int, Link]) -> None:
        self._worker = worker
        self._links = dict(links)
        self._farewell = Signal()
        self._posted = False  # whether anything was sent since the last flush

    def send(self, to: int, message: AnyMessage) -> None:
        """Queues a message for worker `to`."""
        self._links[to].post(message)
        self._posted = True

    def flush(self) -> None:
        """Sends every queue as one frame."""
        if self._posted:
            self._posted = False
            for link in self._links.values():
                link.flush()

    def poll(self) -> None:
        """Receives what has arrived already: on a busy machine the answer to what was just sent."""
        for link in self._links.values():
            messages = link.read_now()
            if messages:
                self._receive(messages)

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the tasks of all links. What they raise ends the worker."""
        for link in self._links.values():
            nursery.start_soon(self._read, link, name=f"from worker {link.peer}")
            nursery.start_soon(link.write, name=f"to worker {link.peer}")

    async def _read(self, link: Link) -> None:
        await link.read(self._receive)
        self._farewell.set()

    def _receive(self, messages: list[AnyMessage]) -> None:
        worker = self._worker
        for message in messages:
            if isinstance(message, Goodbye):
                self._farewell.set()
            else:
                worker.receive(message)
        worker.turn()

    async def say_goodbye(self) -> None:
        """Tells every peer that there is nothing more to come, and waits until all have said the same.

        Whoever closes a connection with bytes unread may destroy what the other has not read yet: so all stay until all
        are done.
        """
        for link in self._links.values():
            link.post(Goodbye(self._worker.index))
        for link in self._links.values():
            await link.drain()
        while not all(link.said_goodbye for link in self._links.values()):
            await self._farewell.wait()

    async def close(self) -> None:
        """Ends every connection."""
        for link in self._links.values():
            await link.close()
