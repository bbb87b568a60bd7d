"""Keys that go back into their bins, kept until nothing more can arrive at their time.

A bin may be on its way at the same time, and messages have no order; when the state input is past that time, every bin
is where it belongs. A capability is held meanwhile, so that nothing passes that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

from dataflow.lowlevel import Capability, InputPort, MessageCapability
from dataflow.time.order import Time

T = TypeVar("T")


class Returning(Generic[T]):
    """By time, what has arrived and waits for its bin."""

    def __init__(self, arrivals: InputPort) -> None:
        self._arrivals = arrivals
        self._waiting: SortedDict[Time, tuple[Capability, list[T]]] = SortedDict()

    def add(self, message: MessageCapability | Capability, piece: T) -> None:
        """Keeps a piece that came with a message."""
        if message.time not in self._waiting:
            self._waiting[message.time] = (message.delayed(message.time), [])
        self._waiting[message.time][1].append(piece)

    def due(self) -> Iterator[tuple[Capability, list[T]]]:
        """What can be installed now, in the order of time, each with a capability that ends when the next is asked
        for."""
        while self._waiting and not self._arrivals.could_see(self._waiting.peekitem(0)[0]):
            _, (capability, pieces) = self._waiting.popitem(0)
            yield capability, pieces
            capability.drop()
