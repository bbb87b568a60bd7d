"""The step of a stateful operator: which records are applied when, and the right to send what comes out.

This is the one loop around a store, for rows and columns, native and migratable: a native operator runs `Host.step`
alone, Megaphone's S installs what arrives and then runs the same step, with an observer that counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Generic, Protocol, TypeVar

from sortedcontainers import SortedDict

from dataflow.build.builder import Context
from dataflow.build.capability import Capability, MessageCapability
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.errors import TimeError
from dataflow.state.kept import KeptState
from dataflow.state.store import B, Store
from dataflow.time.order import Time

_FEW = 1 << 13  # records of several times that are put together: more would not make a time's own costs any smaller
_NEVER = (1 << 63) - 1  # after every time to which records are post-dated together

C_contra = TypeVar("C_contra", contravariant=True)


class Observer(Protocol[C_contra]):
    """Who watches a host at work. Everything is called in the host's own step."""

    def saw(self, message: MessageCapability) -> None:
        """A message of records is being taken."""

    def applying(self, batches: Sequence[Sequence[C_contra]]) -> None:
        """These batches, by input, are about to be applied."""

    def applied(self, since: Time, until: Time, nanoseconds: int) -> None:
        """Records of some times, from one to another, have been applied, which took so long."""


class Host(Generic[B]):
    """Applies the records of a time, and those post-dated to it, once it is complete.

    At a time the inputs are applied in their order, the first one's records before the second's; then what was
    post-dated. When several times are complete, they are handed to the store together where it says that this makes no
    difference: each comes out at its own time all the same. What a time costs by itself (tenths of a millisecond in a
    query of two operators) would else be most of what a run that is late has to catch up with.
    """

    def __init__(
        self,
        context: Context,
        store: Store[B],
        inputs: Sequence[InputPort],
        observer: Observer[B] | None = None,
        kept: KeptState[B] | None = None,
    ) -> None:
        """`kept`: the store's share in snapshots. If the dataflow has any, the output must start with a capability."""
        self._store = store
        self._inputs = inputs
        self._observer = observer
        self._watched = list(context.inputs)  # a time is complete when none of these can deliver it
        self._output: OutputPort = context.outputs[0]
        self._waiting: SortedDict[Time, tuple[Capability, list[list[B]]]] = SortedDict()
        self._hold: Capability | None = None  # invariant: at the least pending time, if anything is pending
        self._kept = kept
        self._seen: Time | None = None  # the last time that was applied
        self._gate = None if kept is None else kept.enrol(context.activate, self._resume)
        self._start = None if self._gate is None else context.capability()  # until what was saved is back

    def step(self) -> None:
        """Takes what has arrived, then applies what is complete, in the order of time."""
        self._gather()
        self._hold_least_pending()
        self._apply_complete()
        while self._gives_share():
            self._apply_complete()

    def _resume(self) -> None:
        """The state is back that was saved, and with it what was post-dated."""
        if self._start is not None:
            self.hold_from(self._start)
            self._start.release()  # on a worker that joins it may have been closed from the beginning
            self._start = None

    def _gives_share(self) -> bool:
        """Gives the share of a cut, if one waits and everything before it has been applied; whether it did."""
        gate = self._gate
        if gate is None or gate.cut is None or any(port.could_see(gate.cut - 1) for port in self._watched):
            return False
        time = self._next_time()
        if time is not None and time < gate.cut:
            return False
        assert self._kept is not None
        self._kept.give(gate.cut, self._seen)
        return True

    def _apply_complete(self) -> None:
        """Applies what is complete, as far as the gate opens."""
        while (time := self._next_time()) is not None and self._is_complete(time):
            if self._gate is not None and not self._gate.opens(time):
                return
            if time not in self._waiting and self._store.fires_together:
                self._fire_times()
            elif not (self._store.takes_together and len(self._waiting) > 1 and self._apply_few()):
                self._apply_time(time)

    def hold_from(self, capability: Capability | MessageCapability) -> None:
        """Keeps the right to send at the least pending time, which may be new: whoever puts state into the store calls
        this with what that state came with."""
        least = self._store.least_pending
        if least is not None and (self._hold is None or least < self._hold.time):
            later = capability.delayed(least)
            if self._hold is not None:
                self._hold.drop()
            self._hold = later
        self._hold_least_pending()

    def _gather(self) -> None:
        for number, port in enumerate(self._inputs):
            for message, batch in port if port.queue else ():
                if self._observer is not None:
                    self._observer.saw(message)
                if message.time not in self._waiting:
                    self._require_possible(message.time)
                    self._waiting[message.time] = (message.retain(), [[] for _ in self._inputs])
                self._waiting[message.time][1][number].append(self._store.accept(batch))

    def _require_possible(self, time: Time) -> None:
        last = self._store.last_time
        if last is not None and time > last:
            raise TimeError(
                f"{self._store.name} got records at {time}, and state in columns has times up to {last}: count in a "
                "larger unit (such as `worker.dataflow(time='ms')`), or keep state in rows"
            )

    def _is_complete(self, time: Time) -> bool:
        return not any(port.could_see(time) for port in self._watched)

    def _next_time(self) -> Time | None:
        least = self._store.least_pending
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
        began = self._begin(batches)
        store = self._store
        for out in store.receive(time, batches) if store.fires_together else store.run(time, batches):
            self._output.give(now, out)
        self._end(time, time, began)
        self.hold_from(now)
        now.drop()

    def _fire_times(self) -> None:
        """Applies what was post-dated to times that are complete, and at which nothing else is to be applied."""
        assert self._hold is not None
        following = [time for port in self._watched for time in port.frontier]
        if self._waiting:
            following.append(self._waiting.peekitem(0)[0])
        if self._gate is not None:
            following.append(self._gate.limit)
        began = self._begin(())
        fired = self._store.fire(min([*following, _NEVER]) - 1)
        for time, results in fired:
            for out in results:
                self._output.give(self._hold, out, at=time)
        self._end(fired[0][0], fired[-1][0], began)
        self._hold_least_pending()

    def _apply_few(self) -> bool:
        """Applies the first complete times together, as many as have few records; False if there are not several, or
        the store cannot take their batches together."""
        times: list[Time] = []
        count = 0
        for time, (_, (parts, *_)) in self._waiting.items():
            count += sum(map(len, parts))
            if count > _FEW or not self._is_complete(time) or (self._gate is not None and not self._gate.opens(time)):
                break
            times.append(time)
        if len(times) < 2:
            return False
        batches = [self._waiting[time][1][0] for time in times]
        if not self._store.can_take_together(batches):
            return False
        began = self._begin([[batch for parts in batches for batch in parts]])
        for time, results in zip(times, self._store.run_all(times, batches), strict=True):
            now, _ = self._waiting.pop(time)
            for out in results:
                self._output.give(now, out)
            now.drop()
        self._end(times[0], times[-1], began)
        return True

    def _begin(self, batches: Sequence[Sequence[B]]) -> int:
        if self._kept is not None:
            self._kept.before_changing()  # what is frozen for a snapshot is copied before it changes
        if self._observer is None:
            return 0
        self._observer.applying(batches)
        return perf_counter_ns()

    def _end(self, since: Time, until: Time, began: int) -> None:
        self._seen = until
        if self._observer is not None:
            self._observer.applied(since, until, perf_counter_ns() - began)

    def _hold_least_pending(self) -> None:
        """Lets go of times that nobody waits for here any longer: what was post-dated to them was applied, or left."""
        least = self._store.least_pending
        if self._hold is not None and least is None:
            self._hold.drop()
            self._hold = None
        elif self._hold is not None and least is not None and self._hold.time < least:
            self._hold.downgrade(least)
