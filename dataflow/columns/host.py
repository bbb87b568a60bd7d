"""The step of a stateful operator on columns: what is applied when, and the right to send what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sortedcontainers import SortedDict

from dataflow.builder import Context
from dataflow.capability import Capability, MessageCapability
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.columns.batch import Columns
from dataflow.columns.heaps import NEVER
from dataflow.columns.pacts import require_columns
from dataflow.order import Time

_FEW = 1 << 13  # rows of several times that are put together: more would not make a time's own costs any smaller


class Host:
    """Applies the records of a time, and those post-dated to it, once it is complete.

    At a time the inputs are applied in their order, the first one's records before the second's; then what was
    post-dated.

    When several times are complete, they are handed over together where the store says that this makes no difference
    (`fires_together`, `takes_together`): each comes out at its own time all the same. What a time costs by itself, some
    tenths of a millisecond in a query of two operators, would else be most of what a run that is late has to catch up
    with.
    """

    def __init__(self, context: Context, keyed: Any, inputs: Sequence[InputPort]) -> None:
        self._keyed = keyed
        self._inputs = inputs
        self._watched = list(context.inputs)  # a time is complete when none of these can deliver it
        self._output: OutputPort = context.outputs[0]
        self._waiting: SortedDict[Time, tuple[Capability, list[list[Columns]]]] = SortedDict()
        self._hold: Capability | None = None  # invariant: at the least pending time, if anything is pending

    def step(self) -> None:
        """Takes what has arrived, then applies what is complete, in the order of time."""
        self._gather()
        self._hold_least_pending()
        while (time := self._next_time()) is not None and self._is_complete(time):
            if time not in self._waiting and self._keyed.fires_together:
                self._fire_times()
            elif len(self._waiting) > 1 and self._keyed.takes_together and len(few := self._few_complete()) > 1:
                self._apply_times(few)
            else:
                self._apply_time(time)

    def _gather(self) -> None:
        for number, port in enumerate(self._inputs):
            for message, batch in port if port.queue else ():
                self.saw(message)
                if message.time not in self._waiting:
                    self._waiting[message.time] = (message.retain(), [[] for _ in self._inputs])
                self._waiting[message.time][1][number].append(require_columns(batch, self._keyed.name))

    def _is_complete(self, time: Time) -> bool:
        return not any(port.could_see(time) for port in self._watched)

    def _next_time(self) -> Time | None:
        least: Time | None = self._keyed.least_pending
        if not self._waiting:
            return least
        first = self._waiting.peekitem(0)[0]
        return first if least is None or first < least else least

    def _apply_time(self, time: Time) -> None:
        if time in self._waiting:
            now, batches = self._waiting.pop(time)
        else:
            assert self._hold is not None
            now, batches = self._hold.clone(), []
        for out in self.apply(time, batches):
            self._output.give(now, out)
        self._hold_from(now)
        now.drop()

    def _fire_times(self) -> None:
        """Applies what was post-dated to times that are complete, and at which nothing else is to be applied."""
        assert self._hold is not None
        following = [time for port in self._watched for time in port.frontier]
        if self._waiting:
            following.append(self._waiting.peekitem(0)[0])
        for time, results in self.fire(min(following, default=int(NEVER)) - 1):
            for out in results:
                self._output.give(self._hold, out, at=time)
        self._hold_least_pending()

    def _few_complete(self) -> list[Time]:
        """The first complete times, as many as have few records together, all of a kind."""
        times: list[Time] = []
        rows = 0
        for time, (_, (parts,)) in self._waiting.items():
            rows += sum(map(len, parts))
            if rows > _FEW or not self._is_complete(time):
                break
            times.append(time)
        alike = Columns.alike([batch for time in times for batch in self._waiting[time][1][0]])
        return times if alike else times[:1]

    def _apply_times(self, times: list[Time]) -> None:
        taken = [self._waiting.pop(time) for time in times]
        lengths = [sum(map(len, parts)) for _, (parts,) in taken]
        joined = Columns.concat([batch for _, (parts,) in taken for batch in parts])
        for (now, _), results in zip(taken, self.apply_all(times, lengths, joined), strict=True):
            for out in results:
                self._output.give(now, out)
            now.drop()

    def saw(self, message: MessageCapability) -> None:
        """A message is being taken. For hosts that do more."""

    def apply(self, time: Time, batches: list[list[Columns]]) -> list[Columns]:
        """Applies what has come for a time, and what was post-dated to it unless that is to be fired with that of later
        times; what comes out."""
        keyed = self._keyed
        results: list[Columns] = keyed.receive(time, batches) if keyed.fires_together else keyed.run(time, batches)
        return results

    def apply_all(self, times: list[Time], lengths: list[int], batch: Columns) -> list[list[Columns]]:
        """Applies the records of several times, of the one input, so many of each; what comes out at each."""
        results: list[list[Columns]] = self._keyed.run_all(times, lengths, batch)
        return results

    def fire(self, until: int) -> list[tuple[int, list[Columns]]]:
        """Applies what was post-dated to times up to one, perhaps not all; what comes out at each."""
        results: list[tuple[int, list[Columns]]] = self._keyed.fire(until)
        return results

    def _hold_from(self, now: Capability | MessageCapability) -> None:
        """Keeps the right to send at the least pending time, which may be new."""
        least = self._keyed.least_pending
        if least is not None and (self._hold is None or least < self._hold.time):
            later = now.delayed(least)
            if self._hold is not None:
                self._hold.drop()
            self._hold = later
        self._hold_least_pending()

    def _hold_least_pending(self) -> None:
        """What nobody waits for here any longer is let go."""
        least = self._keyed.least_pending
        if self._hold is not None and least is None:
            self._hold.drop()
            self._hold = None
        elif self._hold is not None and least is not None and self._hold.time < least:
            self._hold.downgrade(least)
