"""Notifications: which times can no longer arrive, for operators that wait for their completion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from dataflow.build.capability import Capability
from dataflow.errors import CapabilityError
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort


class Notificator:
    """Holds capabilities until no input of its operator can deliver their times any more.

    Iterating yields the capabilities that are due, in the total order of their times; each is dropped when the loop
    goes on, unless it was dropped or handed back (`notify_at`) before. One capability is held per distinct time.

    Costs, with n pending times: `notify_at` O(log n); iterating O(log n) for each that is due, and O(n) more
    where times are only partially ordered.
    """

    def __init__(self, inputs: Sequence[InputPort]) -> None:
        self._inputs = inputs
        self._held: SortedDict[Time, Capability] = SortedDict()  # in the total order of times

    def notify_at(self, capability: Capability) -> None:
        """Takes over a capability, to yield it when its time is complete."""
        if not capability.live:
            raise CapabilityError(f"{capability!r} cannot be waited for")
        time = capability.time
        if time in self._held:
            if self._held[time] is not capability:
                capability.drop()
        else:
            self._held[time] = capability

    @property
    def pending(self) -> tuple[Time, ...]:
        """The times that are waited for."""
        return tuple(self._held)

    def __contains__(self, time: Time) -> bool:
        return time in self._held

    def __iter__(self) -> Iterator[Capability]:
        while (time := self._next_due()) is not None:
            capability = self._held.pop(time)
            yield capability
            if capability.live and self._held.get(capability.time) is not capability:
                capability.drop()

    def _next_due(self) -> Time | None:
        if not self._held:
            return None
        if not self._inputs or self._inputs[0].domain.total:
            first = self._held.peekitem(0)[0]
            return first if self._complete(first) else None
        return next(filter(self._complete, self._held), None)

    def _complete(self, time: Time) -> bool:
        return not any(port.could_see(time) for port in self._inputs)
