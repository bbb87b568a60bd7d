"""Channels of a dataflow whose membership has changed, or has gaps. Others use those of `dataflow.channels.channel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dataflow.channels.channel import LocalChannel, RoutedChannel, root_of
from dataflow.channels.pact import Batch, Pact
from dataflow.progress.graph import Target
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort
    from dataflow.members.history import History
    from dataflow.run.dataflow import Dataflow


_LOOK = 64  # batches, after which it is asked whether an old membership can be forgotten


def passed_everywhere(dataflow: Dataflow, time: Time) -> bool:
    """Whether nothing before a time of the root can arrive anywhere in a dataflow, the keeper's operators excepted,
    which hold times for snapshots. O(locations)."""
    nodes = dataflow.program_nodes
    for index, location in enumerate(dataflow.graph.locations):
        if isinstance(location, Target) and (nodes is None or location.node < nodes):
            root = root_of(len(dataflow.graph.levels(location)) - 1)
            if any(root(each) < time for each in dataflow.tracker.frontier(index)):
                return False
    return True


class MemberChannel(RoutedChannel):
    """To those who take part at a record's time. While a change is near, a batch is split for either membership."""

    __slots__ = ("_history", "_root", "_until_look")

    def __init__(self, dataflow: Dataflow, target: InputPort, pact: Pact, before: LocalChannel | RoutedChannel) -> None:
        super().__init__(dataflow, target, pact)
        self.most = before.most
        self._history: History = dataflow.history
        self._root: Callable[[Time], Time] = root_of(target.depth)
        self._until_look = _LOOK

    def prepare(self, batch: Batch) -> Sequence[tuple[tuple[int, ...], Sequence[Batch]]]:
        """The parts of the batch for each membership that may hold at its time."""
        if len(self._history) > 1:
            self._until_look -= 1
            if not self._until_look:
                self._until_look = _LOOK
                self._history.retire(lambda time: passed_everywhere(self._dataflow, time))
        return [(members, self.split(batch, len(members))) for members in self._history.memberships]

    def push(self, time: Time, prepared: Sequence[tuple[tuple[int, ...], Sequence[Batch]]]) -> None:  # type: ignore[override]
        """Sends a message to each worker that has a part in the batch."""
        self.note(time)
        now = self._history.at(self._root(time))  # another channel may have forgotten memberships meanwhile: see retire
        members, parts = next(each for each in reversed(prepared) if each[0] is now)
        for worker, part in zip(members, parts, strict=True):
            self.push_to(worker, time, part)


class AudienceChannel(RoutedChannel):
    """To everybody who is there, whatever the time: for updates of configurations, and statistics."""

    __slots__ = ()

    def prepare(self, batch: Batch) -> Sequence[Batch]:
        """One part for everybody."""
        return self.split(batch, len(self._dataflow.pump.roster.audience))

    def push(self, time: Time, parts: Sequence[Batch]) -> None:
        """Sends a message to everybody."""
        for worker, part in zip(self._dataflow.pump.roster.audience, parts, strict=True):
            self.push_to(worker, time, part)
