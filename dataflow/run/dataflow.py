"""One dataflow on one worker: its operators, its tracker, and what goes round between them.

The life of a change: an operator's step takes and gives messages and handles capabilities, all of which is gathered
in the outbox; `flush` broadcasts it to every worker, this one included; `settle` applies what has been received to the
tracker and activates whoever watches a frontier that moved. `step` does all of this until nothing is left to do.
The seeded scheduler of `dataflow.testing` calls the same pieces in any other order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from heapq import heapify, heappop, heappush
from time import perf_counter_ns
from typing import TYPE_CHECKING

import trio

from dataflow.build.hooks import HookRegistry
from dataflow.build.operator import Operator
from dataflow.channels.channel import AcknowledgedChannel, AloneChannel, LocalChannel, RoutedChannel
from dataflow.channels.pact import Batch, Pipeline
from dataflow.channels.ports import InputPort, OutputPort
from dataflow.comm.flow import weigh
from dataflow.comm.messages import Data, Dropped, Hello, Message, Progress, Taken
from dataflow.errors import ConstructionError, DataflowDropped, GraphMismatch, ProtocolError, Stuck
from dataflow.members.history import History
from dataflow.members.joining import Joinable, begin
from dataflow.progress.broadcast import Inbox, Outbox
from dataflow.progress.graph import Graph, Source, Target
from dataflow.progress.tracker import Change, Pointstamp, Tracker, make_tracker
from dataflow.progress.validity import Validity
from dataflow.run.agreement import first_difference
from dataflow.run.snapshots import TakesSnapshots
from dataflow.time.antichain import Antichain
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.members.decisions import Welcome
    from dataflow.operators.following import ControlStream, Following
    from dataflow.operators.probe import Probe
    from dataflow.recovery.keeper import Keeper
    from dataflow.run.pump import Pump
    from dataflow.time.timestamp import Domain
    from dataflow.values import Record

SLICE = 0.001  # seconds after the first round of a step in which another may begin
writing: ContextVar[Dataflow | None] = ContextVar("writing", default=None)
"""The dataflow whose sink the current task writes for, if any. Such a task must not wait for room in that dataflow."""


class Dataflow(TakesSnapshots, Joinable):
    """The part of a dataflow that lives on one worker."""

    tracker: Tracker

    def __init__(self, pump: Pump, number: int, name: str, debug: bool, domain: Domain) -> None:
        self.pump = pump
        self.root_domain = domain  # of its times
        self.recovers = pump.recovery is not None  # whether it takes snapshots, and goes on from them
        self.number = number
        self.name = name
        self.debug = debug
        self.graph = Graph()
        self.operators: list[Operator] = []
        self.hooks = HookRegistry()  # through which others reach its state
        self.outbox = Outbox(pump.index)
        self.history = History(pump.roster.members)  # who takes part, as a function of time
        self.beginning: Welcome | None = pump.beginnings.pop(number, None)  # if this worker joins it
        self.exchanges: list[tuple[OutputPort, int, InputPort]] = []  # with the place of the channel
        self.entries: list[OutputPort] = []  # on which records enter: inputs and sources
        self.fed: list[OutputPort] = []  # those that main feeds
        self.controls: dict[str, ControlStream[Record]] = {}  # by name, streams that are advanced by the run
        self.followers: list[Following] = []  # streams whose time follows that of the entries
        self.lines: list[int] = []  # operators behind which a time line begins (event time)
        self.keeper: Keeper | None = None  # of snapshots, with recovery
        self.program_nodes: int | None = None  # how many the program added, if the keeper has some besides
        self.resume_at: Time | None = None  # where a recovered dataflow goes on
        self.built = False
        self.started = trio.Event()  # set when construction is complete, or abandoned
        self.dropped = False
        self.stirred = False  # whether the pump has it on its list of those that have something to do
        self.close_inputs: list[Callable[[], None]] = []  # called when main has returned
        self.on_end: list[Callable[[], None]] = []  # called when the dataflow ends: each wakes somebody who waits
        self.probes: list[Probe] = []  # for explanations
        self.unconnected: dict[int, str] = {}  # feedback operators whose loop is still open
        self.inbox = Inbox()
        self._heard: dict[Pointstamp, int] = {}  # changes received and not applied; what cancels stays as a zero
        self.greeted: set[int] = set()
        self._held: dict[int, list[Message]] = {}  # by sender, messages that arrived before its Hello
        self._inputs: dict[int, InputPort] = {}  # by index of location
        self._watchers: list[list[Callable[[], None]]] = []  # by index of location
        self._early_watchers: list[tuple[Source | Target, Callable[[], None]]] = []
        self._active: list[int] = []  # a heap of operators to run in this sweep
        self._next: list[int] = []  # and in the next
        self._idle: dict[int, None] = {}  # those to run when there is nothing else to do, in the order of their turns
        self._cursor = -1  # the operator that runs now, or -1
        self._last_frontiers: dict[int, Antichain] = {}  # debug mode only
        self.busy_ns: list[int] = []  # by operator, the time that its steps took in sweeps; for those who look

    # Construction

    def complete_construction(self) -> None:
        """Freezes the graph, connects the channels, and greets the other workers."""
        if self.unconnected:
            names = ", ".join(self.unconnected.values())
            raise ConstructionError(f"{names}: the loop is open; connect a stream with connect_loop(...)")
        if not self.graph.nodes:
            raise ConstructionError("a dataflow needs at least one operator")
        if self.keeper is not None:
            self.program_nodes = len(self.graph.nodes)
            self.keeper.build()
        self.graph.freeze()
        self.tracker = make_tracker(self.graph, len(self.history.latest) if self.beginning is None else 0)
        self.busy_ns = [0] * len(self.operators)
        self._validity = Validity(self.graph)
        self._integers_only = self.graph.integers_only
        self._watchers = [[] for _ in self.graph.locations]
        self.built = True
        for operator in self.operators:
            self._bind(operator)
        for location, watcher in self._early_watchers:
            self._watchers[self.graph.index(location)].append(watcher)
        for source, target in self.graph.edges:
            self._connect(source, target)
        begin(self)
        self.pump.broadcast(Hello(self.pump.index, self.number, self.name, self.graph.describe()))
        for operator in self.operators:
            if operator.watches_frontier:
                operator.activate()  # its first frontier is news
        if self.keeper is not None:
            self.keeper.begin()
        for follower in self.followers:  # after what was sent before a crash has been sent again
            follower.begin()
        self.started.set()

    def _bind(self, operator: Operator) -> None:
        for port in operator.inputs:
            port.index = self.graph.index(Target(operator.number, port.number))
            self._inputs[port.index] = port
            if operator.watches_frontier:
                self._watchers[port.index].append(operator.activate)
        for output in operator.outputs:
            output.bind(self.graph.index(Source(operator.number, output.number)))

    def _connect(self, source: Source, target: Target) -> None:
        port = self.operators[target.node].inputs[target.port]
        output = self.operators[source.node].outputs[source.port]
        alone = self.pump.peers == 1 and not port.pact.validates and not self.debug  # in debug mode bad keys show
        if isinstance(port.pact, Pipeline):
            output.connect(LocalChannel(self, port))
            return
        if not port.pact.addressed:
            self.exchanges.append((output, output.width, port))
        kind = AcknowledgedChannel if port.acknowledged else RoutedChannel
        output.connect(AloneChannel(self, port) if alone else kind(self, port, port.pact))

    def watch(self, location: Source | Target, watcher: Callable[[], None]) -> None:
        """Has `watcher` called whenever the frontier at `location` has changed."""
        if self.built:
            self._watchers[self.graph.index(location)].append(watcher)
        else:
            self._early_watchers.append((location, watcher))

    # Running

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
            if not self.stirred:
                self.stirred = True
                self.pump.stirred.append(self)
            self.pump.wake()

    @property
    def runnable(self) -> list[int]:
        """The operators that have something to do."""
        return sorted({*self._active, *self._next, *self._idle})

    def schedule_idle(self, number: int) -> None:
        """Has an operator run when there is nothing else to do."""
        self._idle[number] = None
        if not self.stirred:
            self.stir()

    def run(self, number: int, idle: bool = False) -> None:
        """Runs the step of one operator. What it raises gets a note that says where it was raised."""
        operator = self.operators[number]
        operator.active = False
        operator.is_idle = idle
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
        for port in operator.inputs:
            port.message.live = False  # the step is over, and with it the right that came with its last message
        if operator.owed and not operator.queued:
            self._acknowledge_taken(operator)

    def _acknowledge_taken(self, operator: Operator) -> None:
        """Acknowledges what the operator has taken, so that those who sent it may send more."""
        for sender, size in operator.owed:
            self.pump.took(sender, size)
        operator.owed.clear()
        for port in operator.inputs:
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
        if self._next:
            for number in self._next:
                heappush(self._active, number)
            self._next = []
        active, busy = self._active, self.busy_ns
        last = perf_counter_ns()
        try:
            while active:
                self._cursor = number = heappop(active)
                self.run(number)
                now = perf_counter_ns()  # one look at the clock for each step: its end is where the next begins
                busy[number] += now - last
                last = now
        finally:
            self._cursor = -1

    def flush(self) -> None:
        """Broadcasts every change since the last flush to all workers, this one included."""
        for follower in self.followers:
            follower.follow()  # in the same batch as whom it follows
        batch = self.outbox.flush()
        if batch is not None:
            self.hear(batch.changes)
            if self.pump.roster.others:
                self.pump.broadcast(Progress(self.pump.index, self.number, batch))

    def hear(self, changes: Iterable[Change]) -> None:
        """Keeps changes until `settle` applies them. A message that was sent and taken in the meantime cancels out."""
        heard = self._heard
        for pointstamp, diff in changes:
            heard[pointstamp] = heard.get(pointstamp, 0) + diff
        if not self.stirred:
            self.stir()

    def hear_words(self, sender: int, number: int, words: list[int], start: int, stop: int) -> None:
        """The same, from a board (`dataflow.comm.board`): four words for each change, which are checked here."""
        if self.dropped:
            return
        self.inbox.count(sender, number)
        heard, locations = self._heard, len(self._watchers)
        for at in range(start, stop, 4):
            location, time = words[at + 1], words[at + 2]
            if not 0 <= location < locations or time < 0 or not self._integers_only:
                self._validity.require(sender, [((location, time), 0)])
            pointstamp = (location, time)
            heard[pointstamp] = heard.get(pointstamp, 0) + words[at + 3]
        if not self.stirred:
            self.stir()

    def settle(self) -> None:
        """Applies the changes that have been received, and calls the watchers of every frontier that moved."""
        if not self._heard:
            return
        changes, self._heard = self._heard, {}
        for index in self.tracker.propagate(changes.items()):
            if self.debug:
                self._assert_monotone(index)
            for watcher in self._watchers[index]:
                watcher()

    @property
    def unsettled(self) -> bool:
        """Whether changes have been received and not applied."""
        return bool(self._heard)

    @property
    def busy(self) -> bool:
        """Whether there is something to do without hearing from anybody."""
        return bool(self._active or self._next or self._heard or self.outbox.pending.counts or self._idle)

    @property
    def complete(self) -> bool:
        """Whether nothing can happen here any more."""
        return self.dropped or (not self.busy and self.tracker.complete)

    def step(self, rounds: int = 16) -> None:
        """Runs operators and settles progress until there is nothing to do; at most `rounds` times, and not again once
        `SLICE` is over: other dataflows, main and the transport have their turn. If there is nothing to do to begin
        with, one of the operators that wait for that has its turn."""
        until = 0.0
        if self._idle and not (self._active or self._next or self._heard or self.outbox.pending.counts):
            self.run(next(iter(self._idle)), idle=True)
        for number in range(rounds):
            if self._active or self._next:
                self.sweep()
            self.flush()
            if not number:
                self.pump.flush_transport()  # what we find out now, others can find out at the same time
            self.settle()
            if not (self._active or self._next or self.outbox.pending.counts):
                return
            now = self.pump.clock.now()
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

    # Flow control

    async def room(self) -> None:
        """Waits while too much data is on its way between workers or in this dataflow's sinks. Always a checkpoint."""
        if writing.get() is self:
            raise Stuck(
                f"a sink of dataflow {self.name!r} waits for room in that dataflow, and there may be none before the "
                "sink has written what it has: send without waiting for room"
            )
        await self.pump.wait_until(lambda: self.dropped or self.pump.flow.open_to(self.number))

    def keep(self, size: int) -> None:
        """Counts data of that weight that a sink has taken to write; a negative weight when it has written it."""
        if not self.dropped:
            self.pump.kept(self.number, size)

    # Messages from and to other workers

    def send_data(self, worker: int, channel: int, time: Time, batch: Batch) -> int:
        """Hands a message, which the caller has counted, to the transport. Returns its weight."""
        size = weigh(batch)
        self.pump.send_data(worker, Data(self.pump.index, self.number, channel, time, batch, size))
        if not self.stirred:
            self.stir()
        return size

    def receive(self, message: Message) -> None:
        """Takes a message of another worker; holds it if that worker has not said Hello yet."""
        if self.dropped:
            if isinstance(message, Data):
                self.pump.took(message.sender, message.size)
            return
        if isinstance(message, Hello):
            self._greet(message)
        elif message.sender not in self.greeted:
            self._held.setdefault(message.sender, []).append(message)
        elif isinstance(message, Progress):
            self._validity.require(message.sender, message.batch.changes)
            self.hear(self.inbox.accept(message.batch))
        elif isinstance(message, Data):
            self._receive_data(message)
        elif isinstance(message, Taken):
            self._receive_acknowledgement(message)
        elif isinstance(message, Dropped):
            self.end(f"worker {message.sender} dropped dataflow {self.name!r}")

    def _greet(self, hello: Hello) -> None:
        mine, theirs = self.graph.describe(), hello.description
        if mine != theirs:
            raise GraphMismatch(first_difference(self, hello))
        self.greeted.add(hello.sender)
        for message in self._held.pop(hello.sender, ()):
            self.receive(message)

    def _receive_data(self, message: Data) -> None:
        port = self._inputs.get(message.channel)
        if port is None or isinstance(port.pact, Pipeline):
            raise ProtocolError(f"worker {message.sender} sent data for channel {message.channel}, which nobody reads")
        self._validity.require_time(message.sender, message.channel, message.time)
        port.queue.append((message.time, message.batch))
        port.note_remote(len(message.batch), message.size)
        port.operator.owed.append((message.sender, message.size))
        if port.acknowledged:
            port.owed[message.sender] = port.owed.get(message.sender, 0) + message.size
        port.operator.activate()

    def _receive_acknowledgement(self, message: Taken) -> None:
        """Another worker has taken data that this worker sent."""
        port = self._inputs.get(message.channel)
        if port is None or not 0 <= message.size <= port.on_its_way:
            raise ProtocolError(f"worker {message.sender} acknowledges what nobody sent it: {message!r}")
        port.on_its_way -= message.size
        if port.on_taken is not None:
            port.on_taken()

    # The end

    def abandon(self) -> None:
        """Construction failed: ends the dataflow, and wakes whoever waits for its start."""
        self.end("its construction failed")
        self.started.set()

    def drop(self) -> None:
        """Ends the dataflow on all workers, whatever it was doing."""
        if not self.built:
            raise ConstructionError(f"dataflow {self.name!r} is still being built: it can be dropped after its block")
        if not self.dropped and not self.complete:
            self.pump.broadcast(Dropped(self.pump.index, self.number))
        self.end(f"dataflow {self.name!r} was dropped")

    def end(self, why: str) -> None:
        """Discards all messages and all work of this dataflow, and wakes whoever waits for it."""
        self.dropped = True
        self._why_dropped = why
        self._active, self._next, self._heard = [], [], {}
        for operator in self.operators:
            for port in operator.inputs:
                port.queue.clear()
            for output in operator.outputs:
                output.disconnect()
            self._acknowledge_taken(operator)
        self.pump.flow.forget(self.number)
        self.pump.make_room()
        self.notify_end()
        self.stir()  # to be forgotten

    def notify_end(self) -> None:
        """Wakes whoever waits for this dataflow: nothing more will happen in it."""
        for probe in self.probes:
            probe.wake_all()
        waiting, self.on_end = self.on_end, []
        for wake in waiting:
            wake()

    def require_alive(self) -> None:
        """DataflowDropped if the dataflow is gone."""
        if self.dropped:
            raise DataflowDropped(f"{self._why_dropped}: nothing can be sent to it or awaited from it")

    _why_dropped = ""
