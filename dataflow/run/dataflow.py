"""One dataflow on one worker: its operators, its tracker, and what goes round between them.

The life of a change: an operator's step takes and gives messages and handles capabilities, all of which is gathered
in the outbox; `flush` broadcasts it to every worker, this one included; `settle` applies what has been received to the
tracker and activates whoever watches a frontier that moved. `step` does all of this until nothing is left to do.
The seeded scheduler of `dataflow.testing` calls the same pieces in any other order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
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
from dataflow.progress.broadcast import Inbox
from dataflow.progress.graph import Graph, Source, Target
from dataflow.progress.tracker import make_tracker
from dataflow.progress.validity import USUAL, Validity
from dataflow.run.agreement import first_difference
from dataflow.run.completion import StreamEnds
from dataflow.run.interest import EVERYTHING, bit
from dataflow.run.snapshots import TakesSnapshots
from dataflow.run.stepping import Stepping
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.members.decisions import Welcome
    from dataflow.operators.following import ControlStream
    from dataflow.operators.probe import Probe
    from dataflow.recovery.keeper import Keeper
    from dataflow.run.pump import Pump
    from dataflow.time.timestamp import Domain
    from dataflow.values import Record

writing: ContextVar[Dataflow | None] = ContextVar("writing", default=None)
"""The dataflow whose sink the current task writes for, if any. Such a task must not wait for room in that dataflow."""


class Dataflow(Stepping, TakesSnapshots, Joinable):
    """The part of a dataflow that lives on one worker."""

    def __init__(self, pump: Pump, number: int, name: str, debug: bool, domain: Domain) -> None:
        super().__init__(pump, number, name, debug)
        self.root_domain = domain  # of its times
        self.recovers = pump.recovery is not None  # whether it takes snapshots, and goes on from them
        self.graph = Graph()
        self.hooks = HookRegistry()  # through which others reach its state
        self.history = History(pump.roster.members)  # who takes part, as a function of time
        self.beginning: Welcome | None = pump.beginnings.pop(number, None)  # if this worker joins it
        self.exchanges: list[tuple[OutputPort, int, InputPort]] = []  # with the place of the channel
        self.entries: list[OutputPort] = []  # on which records enter: inputs and sources
        self.fed: list[OutputPort] = []  # those that main feeds
        self.controls: dict[str, ControlStream[Record]] = {}  # by name, streams that are advanced by the run
        self.lines: list[int] = []  # operators behind which a time line begins (event time)
        self.keeper: Keeper | None = None  # of snapshots, with recovery
        self.program_nodes: int | None = None  # how many the program added, if the keeper has some besides
        self.resume_at: Time | None = None  # where a recovered dataflow goes on
        self.started = trio.Event()  # set when construction is complete, or abandoned
        self.close_inputs: list[Callable[[], None]] = []  # called when main has returned
        self.on_end: list[Callable[[], None]] = []  # called when the dataflow ends: each wakes somebody who waits
        self.probes: list[Probe] = []  # for explanations
        self.unconnected: dict[int, str] = {}  # feedback operators whose loop is still open
        self.inbox = Inbox()
        self.greeted: set[int] = set()
        self._held: dict[int, list[Message]] = {}  # by sender, messages that arrived before its Hello
        self._inputs: dict[int, InputPort] = {}  # by index of location
        self._remote: dict[int, InputPort] = {}  # those of them to which others send
        self._early_watchers: list[tuple[Source | Target, Callable[[], None]]] = []

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
        self.busy_seconds = [0.0] * len(self.operators)
        self._validity = Validity(self.graph)
        self._integers_only = self.graph.integers_only
        self._watchers = [[] for _ in self.graph.locations]
        self._bits = [bit(self.number, index) for index in range(len(self.graph.locations))]
        self.built = True
        for operator in self.operators:
            self._bind(operator)
        for location, watcher in self._early_watchers:
            self._watchers[self.graph.index(location)].append(watcher)
        self._tell_interest()
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
            if not isinstance(port.pact, Pipeline):
                self._remote[port.index] = port
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

    def _tell_interest(self) -> None:
        """Has this worker woken when a frontier moves that somebody here watches, and when a time is complete."""
        if self.followers:  # which look at frontiers whenever there is a step
            self.pump.interest = EVERYTHING
            return
        ends = {self.graph.index(location) for location in StreamEnds(self).locations}
        for index, watchers in enumerate(self._watchers):
            if watchers or index in ends:
                self.pump.interest |= self._bits[index]

    def watch(self, location: Source | Target, watcher: Callable[[], None]) -> None:
        """Has `watcher` called whenever the frontier at `location` has changed."""
        if self.built:
            self._watchers[self.graph.index(location)].append(watcher)
            self._tell_interest()
        else:
            self._early_watchers.append((location, watcher))

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
        if type(message) is Data and message.sender in self.greeted:  # most are
            self._receive_data(message)
        elif isinstance(message, Hello):
            self._greet(message)
        elif message.sender not in self.greeted:
            self._held.setdefault(message.sender, []).append(message)
        elif isinstance(message, Progress):
            self._validity.require(message.sender, message.batch.changes)
            self.hear(self.inbox.accept(message.batch))
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
        port, time, size = self._remote.get(message.channel), message.time, message.size
        if port is None:
            raise ProtocolError(f"worker {message.sender} sent data for channel {message.channel}, which nobody reads")
        if not (self._integers_only and type(time) is int and 0 <= time < USUAL):  # a call costs as much again
            self._validity.require_time(message.sender, message.channel, time)
        port.queue.append((time, message.batch))
        port.messages += 1
        port.remote_records += len(message.batch)
        port.remote_bytes += size
        operator = port.operator
        operator.owed.append((message.sender, size))
        if port.acknowledged:
            port.owed[message.sender] = port.owed.get(message.sender, 0) + size
        elif self.beginning is not None and not port.pact.audience:
            self.pump.changes.fed()
        if not operator.active:
            operator.activate()

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
        self._active.clear()
        self._next, self._heard = [], {}
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
