"""Crossings: records that came in before a cut and go out at or after it (docs/internals/recovery.md).

Whoever changes the times of records has them: an input (`send(at=)`), `delay`, windows, a loop at the root. They are
that operator's share of a snapshot, and it sends them again after a recovery.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast, runtime_checkable

from sortedcontainers import SortedDict

from dataflow.build.builder import Context
from dataflow.build.capability import Capability, MessageCapability
from dataflow.build.cuts import Participant, Share
from dataflow.channels.pact import Pact
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow

T = TypeVar("T")


@runtime_checkable
class NamesWorkers(Protocol):
    """A record with the number of a worker in it."""

    def renumbered(self, workers: int) -> object:
        """The same, where there are so many workers now."""


class _Crossing(Participant, Generic[T]):
    """What is common: crossings of old worker w go to worker w mod workers. Behind an exchange (`pact`) they go, if the
    number of workers is another one now, to where their like will go."""

    pact: Pact | None = None

    def __init__(self, name: str, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self.name = _participant_name(dataflow, name)

    def restore(self, shares: Mapping[int, object]) -> None:
        """Takes back what crosses."""
        pump = self._dataflow.pump
        same = sorted(shares) == list(range(pump.peers))
        for worker, crossings in shares.items():
            assert isinstance(crossings, list)
            for since, at, item in crossings:
                if not same and self.pact is not None:
                    mine = self.pact.split(item, pump.peers)[pump.index]
                    if len(mine):
                        self.again(since, at, cast("T", mine))  # what a pact splits are batches, and so are its parts
                elif worker % pump.peers == pump.index:
                    self.again(since, at, item if same else _renumbered(item, pump.peers))

    @abstractmethod
    def again(self, since: Time, at: Time, item: T) -> None:
        """Takes one back."""


def _renumbered(item: T, workers: int) -> T:
    """Records that name workers, where there are other workers now than when they were sent."""
    if isinstance(item, list):
        item[:] = [record.renumbered(workers) if isinstance(record, NamesWorkers) else record for record in item]
    return item


class SentAhead(_Crossing[T]):
    """What an operator has sent at later times than its own: kept until no snapshot can want it. For operators that
    send at once. Costs nothing without recovery, nor for what is not sent ahead."""

    def __init__(
        self,
        name: str,
        dataflow: Dataflow,
        now: Callable[[], Time | None],
        send: Callable[[Time, T], None],
        on_resume: Callable[[], None] = lambda: None,
    ) -> None:
        """`now`: nothing that comes in before this time will be sent any more; None: nothing at all. `send` sends
        again, at a time; `on_resume` is called when it has."""
        super().__init__(name, dataflow)
        self._on_resume = on_resume
        self._now = now
        self._send = send
        self._log: list[tuple[Time, Time, T]] = []  # sent since, at, what
        self._last: Time | None = None
        self.gate = dataflow.enrol(self, self.consider)

    @property
    def owes_nothing(self) -> bool:
        """Whether no later cut crosses what was sent."""
        return self.gate is None or not any(at >= self.gate.limit for _, at, _ in self._log)

    def saw(self, time: Time) -> None:
        """Something was sent at a time, or will be: the end of a run is after it."""
        if self._last is None or time > self._last:
            self._last = time

    def sent(self, since: Time, at: Time, item: T) -> None:
        """Something was sent at a later time."""
        if self.gate is not None:
            limit = self.gate.limit
            self._log = [entry for entry in self._log if entry[1] >= limit]
            self._log.append((since, at, item))

    def again(self, since: Time, at: Time, item: T) -> None:
        """Sends it again; a second crash must not lose it."""
        self._log.append((since, at, item))
        self._send(at, item)

    def resume(self) -> None:
        """All that was sent is sent again."""
        self._on_resume()

    def consider(self) -> None:
        """Gives the share of a cut, if one waits and nothing can be sent before it any more."""
        gate, now = self.gate, self._now()
        if now is not None:
            self.saw(now)
        while gate is not None and gate.cut is not None and (now is None or now >= gate.cut):
            cut = gate.cut
            gate.give(Share([list(entry) for entry in self._log if entry[0] < cut <= entry[1]], seen=self._last))


class Waiting(_Crossing[T]):
    """Items that wait until a later time is complete, for operators that put records off. They come out in the order
    of times.

    Costs, with n times for which something waits: `add` O(log n), `due` O(log n) for each time.
    """

    def __init__(self, context: Context, name: str, dataflow: Dataflow, pact: Pact | None = None) -> None:
        """If the dataflow recovers, the operator's output must start with a capability. `pact`: how items got here."""
        super().__init__(name, dataflow)
        self.pact = pact
        self._inputs = context.inputs
        self._items: SortedDict[Time, tuple[Capability, list[tuple[Time, T]]]] = SortedDict()
        self._seen: Time | None = None
        self.gate = dataflow.enrol(self, context.activate)
        self._start = None if self.gate is None else context.capability()

    def add(self, message: MessageCapability | Capability, at: Time, item: T, since: Time) -> None:
        """Keeps an item that came at `since` until `at`."""
        if at not in self._items or at < since:  # the latter raises
            self._items[at] = (message.delayed(at), [])
        self._items[at][1].append((since, item))

    def again(self, since: Time, at: Time, item: T) -> None:
        """Keeps an item that was kept before."""
        assert self._start is not None
        self.add(self._start, at, item, since)

    def resume(self) -> None:
        """All that was kept is back."""
        if self._start is not None:
            self._start.release()  # on a worker that joins it may have been closed from the beginning
            self._start = None

    def due(self) -> Iterator[tuple[Capability, list[T]]]:
        """What waits no longer, each time with its capability. To be called in every step, and exhausted."""
        while True:
            while self._items and self._is_due(self._items.peekitem(0)[0]):
                self._seen, (capability, items) = self._items.popitem(0)
                yield capability, [item for _, item in items]
                capability.drop()
            if not self._gives_share():
                return

    def _is_due(self, time: Time) -> bool:
        return not any(port.could_see(time) for port in self._inputs) and (self.gate is None or self.gate.opens(time))

    def _gives_share(self) -> bool:
        gate = self.gate
        if gate is None or gate.cut is None or any(port.could_see(gate.cut - 1) for port in self._inputs):
            return False
        cut = gate.cut
        if self._items and self._items.peekitem(0)[0] < cut:
            return False
        crossing = [[since, at, item] for at, (_, items) in self._items.items() for since, item in items if since < cut]
        gate.give(Share(crossing, seen=self._seen))
        return True


def _participant_name(dataflow: Dataflow, name: str) -> str:
    """A name for a participant whose own is not known to be the only one: that, or with a number."""
    if dataflow.keeper is None or name not in dataflow.keeper.participants:
        return name
    names = (f"{name} {number}" for number in itertools.count(2))
    return next(each for each in names if each not in dataflow.keeper.participants)
