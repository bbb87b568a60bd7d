"""The heart of a dataflow on one worker: which operators run next, and what becomes of the progress that they make.

Everything here happens several times in each epoch, so it asks before it calls: what has nothing to do costs a look at
a list. `docs/internals/engine.md` says what happens in a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from time import perf_counter
from typing import TYPE_CHECKING

from dataflow.build.operator import Operator
from dataflow.comm.messages import Progress, Taken
from dataflow.progress.broadcast import Inbox, Outbox, ProgressBatch
from dataflow.progress.tracker import Change, Pointstamp, Tracker
from dataflow.progress.validity import Validity
from dataflow.run.interest import EVERYTHING
from dataflow.time.antichain import Antichain

if TYPE_CHECKING:
    from dataflow.operators.following import Following
    from dataflow.progress.graph import Graph
    from dataflow.run.pump import Pump

SLICE = 0.001  # seconds after the first round of a step in which another may begin


class Stepping(ABC):
    """A dataflow as far as it is stepped. (A part of `Dataflow`.)"""

    graph: Graph
    tracker: Tracker
    inbox: Inbox
    _validity: Validity
    _integers_only: bool

    def __init__(self, pump: Pump, number: int, name: str, debug: bool) -> None:
        self.pump = pump
        self.number = number
        self.name = name
        self.debug = debug
        self.operators: list[Operator] = []
        self.followers: list[Following] = []  # streams whose time follows that of the entries
        self.outbox = Outbox(pump.index)
        self.built = False
        self.dropped = False
        self.stirred = False  # whether the pump has it on its list of those that have something to do
        self.busy_seconds: list[float] = []  # by operator, what its steps took in sweeps; for those who look
        self._counts = self.outbox.pending.counts  # changes since the last flush
        self._heard: dict[Pointstamp, int] = {}  # changes received and not applied; what cancels stays as a zero
        self._watchers: list[list[Callable[[], None]]] = []  # by index of location
        self._bits: list[int] = []  # by index of location, see `interest`
        self._active: list[int] = []  # a heap of operators to run in this sweep
        self._next: list[int] = []  # and in the next
        self._idle: dict[int, None] = {}  # those to run when there is nothing else to do, in the order of their turns
        self._cursor = -1  # the operator that runs now, or -1
        self._last_frontiers: dict[int, Antichain] = {}  # debug mode only

    @abstractmethod
    def notify_end(self) -> None:
        """Wakes whoever waits for this dataflow: nothing more will happen in it."""

    # What there is to do

    def schedule(self, number: int) -> None:
        """Puts an operator on the list of those to run: in this sweep if its turn is still to come."""
        if number > self._cursor:
            heappush(self._active, number)
        else:
            self._next.append(number)
        if not self.stirred:
            self.stir()

    def stir(self) -> None:
        """Has the pump step this dataflow in its next turn. Whatever gives it something to do ends here."""
        if self.built:  # or it will be, and be stirred then
            pump = self.pump
            if not self.stirred:
                self.stirred = True
                pump.stirred.append(self)
            if not pump.awake:
                pump.wake()

    def schedule_idle(self, number: int) -> None:
        """Has an operator run when there is nothing else to do."""
        self._idle[number] = None
        if not self.stirred:
            self.stir()

    @property
    def runnable(self) -> list[int]:
        """The operators that have something to do."""
        return sorted({*self._active, *self._next, *self._idle})

    @property
    def unsettled(self) -> bool:
        """Whether changes have been received and not applied."""
        return bool(self._heard)

    @property
    def busy(self) -> bool:
        """Whether there is something to do without hearing from anybody."""
        return bool(self._active or self._next or self._heard or self._counts or self._idle)

    @property
    def complete(self) -> bool:
        """Whether nothing can happen here any more."""
        return self.dropped or (not self.tracker.outstanding and not self.busy)

    # Operators

    def run(self, number: int, idle: bool = False) -> None:
        """Runs the step of one operator. What it raises gets a note that says where it was raised."""
        operator = self.operators[number]
        operator.active = False
        operator.is_idle = idle
        if self._idle:
            self._idle.pop(number, None)
        try:
            operator.step()
        except StopIteration as error:  # which would mean something else to the coroutine that called us
            wrapped = RuntimeError(f"StopIteration was raised: {error!r}")
            wrapped.add_note(self.where(operator))
            raise wrapped from error
        except BaseException as error:
            error.add_note(self.where(operator))
            raise
        taken = True
        for port in operator.inputs:
            port.message.live = False  # the step is over, and with it the right that came with its last message
            if port.queue:
                taken = False
        if taken and operator.owed:
            self._acknowledge_taken(operator)

    def _acknowledge_taken(self, operator: Operator) -> None:
        """Acknowledges what the operator has taken, so that those who sent it may send more."""
        for sender, size in operator.owed:
            self.pump.took(sender, size)
        operator.owed.clear()
        for port in operator.inputs:
            if port.owed:
                for sender, size in port.owed.items():
                    self.pump.send(sender, Taken(self.pump.index, self.number, port.index, size))
                port.owed.clear()

    def run_only(self, number: int) -> None:
        """Runs one of the runnable operators, out of turn (for the seeded scheduler)."""
        for waiting in (self._active, self._next):
            if number in waiting:
                waiting.remove(number)
                heapify(self._active)
                self.run(number)
                return
        self.run(number, idle=number in self._idle)

    def sweep(self) -> None:
        """Runs every operator that has something to do once, in the order of construction."""
        active = self._active
        if self._next:
            for number in self._next:
                heappush(active, number)
            self._next = []
        busy = self.busy_seconds
        last = perf_counter()  # not in nanoseconds: integers as large as these cost twice as much to add
        try:
            while active:
                self._cursor = number = heappop(active)
                self.run(number)
                now = perf_counter()  # one look at the clock for each step: its end is where the next begins
                busy[number] += now - last
                last = now
        finally:
            self._cursor = -1

    # Progress

    def flush(self) -> None:
        """Broadcasts every change since the last flush to all workers, this one included."""
        for follower in self.followers:
            follower.follow()  # in the same batch as whom it follows
        counts = self._counts
        if not counts:
            return
        changes = tuple(counts.items())
        number = self.outbox.take_number()
        if self._heard:
            self.hear(changes)
        else:
            self._heard = counts.copy()
            if not self.stirred:
                self.stir()
        counts.clear()
        pump = self.pump
        if pump.roster.others:
            pump.broadcast(Progress(pump.index, self.number, ProgressBatch(pump.index, number, changes)))

    def hear(self, changes: Iterable[Change]) -> None:
        """Keeps changes until `settle` applies them. A message that was sent and taken in the meantime cancels out."""
        heard = self._heard
        for pointstamp, diff in changes:
            heard[pointstamp] = heard.get(pointstamp, 0) + diff
        if not self.stirred:
            self.stir()

    def hear_words(self, senders: list[int], words: list[int], start: int, stop: int) -> None:
        """The same, from boards (`dataflow.comm.board`): four words for each change, which are checked here. All of
        these workers say the same."""
        if self.dropped:
            return
        heard, locations = self._heard, len(self._watchers) if self._integers_only else 0
        times = len(senders)
        for at in range(start, stop, 4):
            location, time = words[at + 1], words[at + 2]
            if not (0 <= location < locations and time >= 0):
                self._validity.require(senders[0], [((location, time), 0)])
            pointstamp = (location, time)
            heard[pointstamp] = heard.get(pointstamp, 0) + times * words[at + 3]
        if not self.stirred:
            self.stir()

    def settle(self) -> None:
        """Applies the changes that have been received, and calls the watchers of every frontier that moved."""
        if not self._heard:
            return
        changes, self._heard = self._heard, {}
        watchers, bits, moved = self._watchers, self._bits, 0
        for index in self.tracker.propagate(changes.items()):
            if self.debug:
                self._assert_monotone(index)
            moved |= bits[index]
            for watcher in watchers[index]:
                watcher()
        self.pump.moved |= moved if self.tracker.outstanding else EVERYTHING

    def step(self, rounds: int = 16) -> None:
        """Runs operators and settles progress until there is nothing to do; at most `rounds` times, and not again once
        `SLICE` is over: other dataflows, main and the transport have their turn. If there is nothing to do to begin
        with, one of the operators that wait for that has its turn."""
        until = 0.0
        pump = self.pump
        counts, active = self._counts, self._active
        if self._heard:
            self.settle()  # before anything is done here: what moves a frontier now is not for us to tell
            if pump.moved:
                pump.tell_moved()
        elif self._idle and not (active or self._next or counts):
            self.run(next(iter(self._idle)), idle=True)
        for number in range(rounds):
            if active or self._next:
                self.sweep()
            if counts or self.followers:
                self.flush()
            if not number:
                pump.exchange()  # what we find out now, others can find out at the same time
            if self._heard:
                self.settle()
                if pump.moved:
                    pump.tell_moved()
            if not (active or self._next or counts):
                return
            now = pump.clock.now()
            if not number:
                until = now + SLICE
            elif now >= until:
                return

    def where(self, operator: Operator) -> str:
        """The note that an exception gets."""
        return (
            f"in operator {operator.label} of dataflow {self.name!r} on worker {self.pump.index} of {self.pump.peers}"
        )

    def _assert_monotone(self, index: int) -> None:
        now = self.tracker.frontier(index)
        before = self._last_frontiers.get(index)
        assert before is None or before.dominates(now), (self.graph.name(self.graph.locations[index]), before, now)
        self._last_frontiers[index] = now
