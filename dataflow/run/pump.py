"""The pump: the machinery of one worker. It owns the worker's dataflows, mailbox, transport and flow control.

A pump steps its dataflows when something has happened (an input, a message, an activation) and sleeps otherwise.
Whatever happens ends in `wake`; `run`, a task of its own, does the rest. All of a worker runs in one thread, and only
operators' steps and main touch it, so nothing here needs a lock. Programs see a `Worker` instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import TYPE_CHECKING

import trio

from dataflow.build.scope import Scope
from dataflow.comm.backlog import Backlog
from dataflow.comm.conversation import Conversation
from dataflow.comm.flow import DEFAULT_LIMIT, ON_ITS_WAY, Flow
from dataflow.comm.messages import (
    AnyMessage,
    BlocksReturned,
    Consumed,
    Data,
    Finished,
    Goodbye,
    Message,
    Pressure,
    Progress,
)
from dataflow.comm.transport import Transport
from dataflow.errors import ConstructionError, ProtocolError
from dataflow.run.advice import explain_failure
from dataflow.run.agreement import check_finished, check_unbuilt
from dataflow.run.clock import Clock
from dataflow.run.dataflow import Dataflow
from dataflow.run.explain import warn_if_stuck
from dataflow.run.signal import Signal
from dataflow.run.watch import Watch
from dataflow.run.worker import A, R, Worker
from dataflow.time.timestamp import Checked, TimeType, domain_of

if TYPE_CHECKING:
    from dataflow.recovery.resume import Resume

WARN_AFTER = 10.0  # seconds in which nothing moves, before somebody looks why


class Pump:
    """The machinery of worker `index`, one of `peers` workers that together run the same dataflows."""

    def __init__(
        self,
        index: int,
        peers: int,
        debug: bool = False,
        limit: int = DEFAULT_LIMIT,
        warn_after: float | None = WARN_AFTER,
        recovery: Resume | None = None,
    ) -> None:
        self.index = index
        self.recovery = recovery  # where snapshots are kept and what to go on from, if anything is
        self.peers = peers
        self.warn_after = warn_after
        self.debug = debug
        self.transport: Transport | None = None
        self.signal = Signal()  # set when there is something to do
        self.clock = Clock()
        self.flow = Flow(peers, limit)
        self._mailbox: deque[AnyMessage] = deque()
        self._dataflows: dict[int, Dataflow] = {}
        self.built = 0  # how many dataflows main has built
        self._ended: set[int] = set()  # numbers of dataflows that are complete or dropped
        self._unbuilt = Backlog(limit)  # messages for dataflows that main has not built yet
        self._conversations = [Conversation(peer) for peer in range(peers)]  # with those at the ends of links
        self._finished: dict[int, int] = {}  # by peer whose main has returned, how many dataflows it built
        self._main_returned = False
        self._building: Dataflow | None = None
        self._nursery: trio.Nursery | None = None
        self.awake = False  # whether it has been woken, or is at work
        self.grant: Callable[[], Awaitable[None]] | None = None  # how a simulation lets main take a step
        self._stepping = False
        self._failed = False
        self._failure: Exception | None = None  # raised by an operator in main's task; `run` raises it
        self._pumped = False
        self._idle_waiters: list[Signal] = []
        self.room_waiters: list[Signal] = []
        self.worker = Worker(self)  # what main is given

    def __repr__(self) -> str:
        return f"<pump of worker {self.index} of {self.peers}>"

    # For main, through its Worker

    @contextmanager
    def build(self, name: str | None, time: TimeType) -> Iterator[Scope]:
        """Builds a dataflow, which starts when the block ends."""
        if self._building is not None:
            raise ConstructionError(f"dataflow {self._building.name!r} is still being built: end its block first")
        if self._stepping:
            raise ConstructionError("a dataflow cannot be built from inside an operator: build it in main")
        number = self.built
        dataflow = Dataflow(self, number, name if name is not None else f"dataflow {number}", self.debug)
        domain = domain_of(time)
        scope = Scope(dataflow, (Checked(domain) if self.debug else domain,))
        self._building = dataflow
        dataflow.recover(scope)
        try:
            yield scope
            dataflow.complete_construction()
        except BaseException:
            dataflow.abandon()
            raise
        finally:
            self._building = None
            scope.close()
        self.built += 1
        self._dataflows[number] = dataflow
        for message in self._unbuilt.release(number):
            dataflow.receive(message)
        self._check_counts()
        self.wake()

    async def step(self) -> bool:
        """Does what there is to do now; whether there is more. A checkpoint."""
        if self.grant is not None:
            self.step_now()
            await self.grant()  # a simulation: others have their turn
        else:
            self.turn_for_main()
            await trio.lowlevel.checkpoint()
        return self.busy

    async def room(self) -> None:
        """Waits while too much data is on its way between workers. Always a checkpoint."""
        await self.wait_until(lambda: self.flow.open)

    async def wait_until(self, open: Callable[[], bool]) -> None:
        """Waits until `open()`, which can only become true when pressure ends. Always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while not open():
            waiter = Signal()
            self.room_waiters.append(waiter)
            await waiter.wait()

    # For operators, inputs and transports

    def wake(self) -> None:
        """Wakes the pump: there is something to do."""
        if not self.awake:
            self.awake = True
            self.signal.set()

    def rest(self) -> None:
        """Puts the pump to sleep: everything has been done, and the next `wake` sets the signal."""
        self.awake = False

    def post(self, message: AnyMessage) -> None:
        """Leaves a message for this worker, and wakes it."""
        self._mailbox.append(message)
        self.wake()

    def receive(self, message: AnyMessage) -> None:
        """Accepts a message from a link, which keeps the order of messages. The caller calls `turn` afterwards."""
        self._conversations[message.sender].hear(message)
        self._mailbox.append(message)

    def said_goodbye(self, message: Goodbye) -> None:
        """Accepts a peer's last message."""
        self._conversations[message.sender].hear(message)

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to another worker."""
        assert self.transport is not None
        self.transport.send(to, message)

    def broadcast(self, message: AnyMessage) -> None:
        """Sends a message to every other worker."""
        for to in range(self.peers):
            if to != self.index:
                self.send(to, message)

    def spawn(self, task: Callable[[], Awaitable[None]], name: str) -> None:
        """Starts a task that lives no longer than the worker: a source, an asynchronous sink."""
        if self._nursery is None:
            raise ConstructionError(f"{name} needs a running worker: build it in main, under dataflow.execute")
        self._nursery.start_soon(task, name=name)

    # Running

    @property
    def dataflows(self) -> tuple[Dataflow, ...]:
        """Those that are not complete."""
        return tuple(self._dataflows.values())

    @property
    def busy(self) -> bool:
        """Whether there is something to do without hearing from anybody."""
        if self._mailbox:
            return True
        for dataflow in self._dataflows.values():  # noqa: SIM110  # asked several times per epoch: any() costs more
            if dataflow.busy:
                return True
        return False

    @property
    def complete(self) -> bool:
        """Whether main has returned and every dataflow is complete."""
        return self._main_returned and not self._dataflows and not self._mailbox

    @property
    def unbuilt(self) -> dict[int, list[int]]:
        """Dataflows that others have built and this worker has not: number, and by whom."""
        return self._unbuilt.senders

    def step_now(self) -> None:
        """Takes the mail and steps every dataflow that has something to do."""
        if self._stepping:
            raise ConstructionError("a worker cannot be stepped from inside an operator")
        if self._failed:
            return  # the exception is on its way out; another step would only raise again
        self._stepping = True
        try:
            self.take_mail()
            for dataflow in tuple(self._dataflows.values()):
                if dataflow.busy:
                    dataflow.step()
                if dataflow.dropped or dataflow.tracker.complete:
                    self.retire()
            if not self._dataflows:
                self.retire()
        except BaseException:
            self._failed = True
            raise
        finally:
            self._stepping = False

    def act(self, action: Callable[[], None]) -> None:
        """Does one thing of many, for a scheduler that chooses them one by one."""
        self._stepping = True
        try:
            action()
        finally:
            self._stepping = False
        self.retire()

    def turn(self) -> None:
        """Does what there is to do now and flushes the transport; `run` goes on with what is left.

        Called by `run`, and by a transport that has just received something: waking `run` for that would cost a
        switch between tasks.
        """
        awake, self.awake = self.awake, True  # whatever wakes us during the turn is part of it
        try:
            self.step_now()
        finally:
            self.awake = awake
        assert self.transport is not None
        self.transport.flush()
        if self.busy:
            self.wake()

    def turn_if_busy(self) -> None:
        """Takes a turn if there is something to do, and flushes the transport in any case."""
        if self.busy:
            self.turn()
        elif self.transport is not None:
            self.transport.flush()

    def turn_before_waiting(self) -> None:
        """Takes a turn for a main that is about to wait, which saves a switch of tasks. Not while simulated."""
        if self._pumped and not self._stepping:
            self.turn_for_main()

    def turn_for_main(self) -> None:
        """Takes a turn in main's task. What an operator raises is not for main to catch: `run` raises it."""
        try:
            self.turn()
            if self.transport is not None and not self._failed:
                self.transport.poll()
        except Exception as error:
            self._fail_in_run(error)

    def linger(self) -> bool:
        """For a main that is about to wait: looks for messages for a moment; whether some came. Not while simulated."""
        if not self._pumped or self._stepping or self._failed or self.transport is None or self.busy:
            return False
        try:
            return self.transport.linger()
        except Exception as error:
            self._fail_in_run(error)
            return False

    def _fail_in_run(self, error: Exception) -> None:
        self._failure = error
        self.signal.set()

    def flush_transport(self) -> None:
        """Flushes the transport before the turn is over, so that others can start on what was sent."""
        assert self.transport is not None
        self.transport.flush()

    def take_mail(self) -> None:
        """Delivers every message in the mailbox."""
        mailbox = self._mailbox
        while mailbox:
            self.deliver(mailbox.popleft())

    def deliver(self, message: AnyMessage) -> None:
        """Delivers one message to its dataflow; holds it if main has not built that yet."""
        if type(message) is Progress or type(message) is Data:  # nearly all are
            self._deliver_to_dataflow(message)
        elif isinstance(message, Finished):
            self._finished[message.sender] = message.dataflows
            self._check_counts()
        elif isinstance(message, Consumed):
            self._flow_changed(self.flow.acknowledged(self.index, message.size, message.sender))
        elif isinstance(message, Pressure):
            if message.dataflow not in self._ended:
                self.flow.pressed(message.sender, message.on, message.dataflow)
            if not message.on:
                self.make_room()
        elif isinstance(message, Goodbye | BlocksReturned):
            raise ProtocolError(f"worker {message.sender} sent {message!r}, which concerns its link alone")
        else:
            self._deliver_to_dataflow(message)

    def _deliver_to_dataflow(self, message: Message) -> None:
        dataflow = self._dataflows.get(message.dataflow)
        if dataflow is not None:
            dataflow.receive(message)
        elif message.dataflow not in self._ended:
            self._unbuilt.hold(message, self.index)
            self._check_counts()
        elif isinstance(message, Data):
            self.took(message.sender, message.size)

    def send_data(self, to: int, data: Data) -> None:
        """Sends data to another worker, and counts its weight as on its way."""
        assert self.transport is not None
        self.transport.send(to, data)
        pressure = self.flow.sent(self.index, data.size, to)
        if pressure is not None:
            self._flow_changed(pressure)
        self.wake()  # only a turn flushes the transport, and main may have sent this

    def took(self, sender: int, size: int) -> None:
        """Operators here have taken data of another worker: acknowledges it, when enough has come together."""
        acknowledge = self.flow.taken(sender, size)
        if acknowledge:
            self.send(sender, Consumed(self.index, acknowledge))

    def kept(self, dataflow: int, size: int) -> None:
        """Counts data that a sink of a dataflow has taken to write; a negative size when it has written it."""
        self._flow_changed(self.flow.kept(self.index, dataflow, size), dataflow)

    def _flow_changed(self, pressure: bool | None, why: int = ON_ITS_WAY) -> None:
        """Broadcasts that this worker is under pressure, or no longer is; then whoever waits for room looks again."""
        if pressure is not None:
            self.broadcast(Pressure(self.index, pressure, why))
            self.wake()  # only a turn flushes the transport
            if not pressure:
                self.make_room()

    def make_room(self) -> None:
        """Wakes whoever waits for room: some pressure has ended."""
        waiters, self.room_waiters = self.room_waiters, []
        for waiter in waiters:
            waiter.set()

    def retire(self) -> None:
        """Forgets dataflows that are complete, and wakes whoever waits for that."""
        for number, dataflow in tuple(self._dataflows.items()):
            if dataflow.complete:
                del self._dataflows[number]
                self._ended.add(number)
                dataflow.notify_end()
        if self.complete:
            waiters, self._idle_waiters = self._idle_waiters, []
            for waiter in waiters:
                waiter.set()

    def _check_counts(self) -> None:
        """GraphMismatch if another worker's main has returned without building what this one has, or the reverse."""
        check_finished(self.index, self.built, self.dataflows, self._finished)
        check_unbuilt(self.index, self.built, self.unbuilt if self._main_returned else {})

    def finish(self) -> None:
        """Main has returned: closes its inputs and tells the others."""
        for dataflow in self._dataflows.values():
            for close in dataflow.close_inputs:
                close()
        self._main_returned = True
        self.broadcast(Finished(self.index, self.built))
        self._check_counts()
        self.wake()

    async def wait_complete(self) -> None:
        """Waits until there is nothing left to do, ever."""
        self.retire()
        if self.complete:
            return
        waiter = Signal()
        self._idle_waiters.append(waiter)
        with trio.move_on_after(inf if self.warn_after is None else self.warn_after):
            return await waiter.wait()
        if self._pumped:
            warn_if_stuck(self)
        await waiter.wait()

    async def run(self) -> None:
        """Steps the worker whenever it is awake; sleeps in between. Runs until cancelled."""
        self._pumped = True
        if self.warn_after is not None:
            self.spawn(Watch(self, self.warn_after).run, f"watch of worker {self.index}")
        while True:
            await self.signal.wait()
            if self._failure is not None:
                raise self._failure
            self.awake = True
            self.turn_if_busy()
            while self.busy:
                await trio.lowlevel.checkpoint()  # main and the transports get their turn
                self.turn()
            self.rest()  # nothing can have happened since the last look: this is one thread

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        """A nursery for the worker's tasks. When the block ends they are cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            yield nursery
            nursery.cancel_scope.cancel()
        self._nursery = None

    async def run_main(self, main: Callable[[Worker, *A], Awaitable[R]], *args: *A) -> R:
        """Runs main, and then until every dataflow is complete. Returns what main returned."""
        try:
            result = await main(self.worker, *args)
        except trio.Cancelled:
            raise
        except BaseException as error:
            explain_failure(error, f"in main on worker {self.index} of {self.peers}")
            raise
        self.finish()
        await self.wait_complete()
        return result
