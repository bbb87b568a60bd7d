"""The pump: the machinery of one worker. It owns the worker's dataflows, mailbox, transport and flow control.

A pump steps its dataflows when something has happened (an input, a message, an activation) and sleeps otherwise.
Whatever happens ends in `wake`; `run`, a task of its own, does the rest. All of a worker runs in one thread, and only
operators' steps and main touch it, so nothing here needs a lock. Programs see a `Worker` instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from math import inf
from time import perf_counter_ns
from typing import TYPE_CHECKING

import trio

from dataflow.build.scope import Scope
from dataflow.comm.flow import DEFAULT_LIMIT
from dataflow.comm.messages import AnyMessage, Finished
from dataflow.errors import ConstructionError
from dataflow.members.changing import Changing
from dataflow.members.preparing import Preparation
from dataflow.members.roster import Roster
from dataflow.run.alarm import alarm_of_this_loop
from dataflow.run.attending import Attending
from dataflow.run.clock import Clock
from dataflow.run.collecting import collecting_seldom
from dataflow.run.dataflow import Dataflow
from dataflow.run.defaults import WARN_AFTER
from dataflow.run.explain import warn_if_stuck
from dataflow.run.interest import EVERYTHING
from dataflow.run.mains import run_main
from dataflow.run.meters import Meter
from dataflow.run.signal import Waiters
from dataflow.run.stepping import Stepping
from dataflow.run.watch import Watch
from dataflow.run.worker import A, R, Worker
from dataflow.time.timestamp import Checked, TimeType, domain_of

if TYPE_CHECKING:
    from dataflow.members.changing import Meeting
    from dataflow.members.decisions import Welcome
    from dataflow.members.invited import Inviter
    from dataflow.members.scaling import Launcher
    from dataflow.recovery.resume import Resume


class Pump(Attending):
    """The machinery of worker `index`, one of `peers` workers that together run the same dataflows."""

    def __init__(
        self,
        index: int,
        peers: int,
        debug: bool = False,
        limit: int = DEFAULT_LIMIT,
        warn_after: float | None = WARN_AFTER,
        recovery: Resume | None = None,
        joins: bool = False,
    ) -> None:
        """`joins`: it joins workers that have begun, and waits to be told where."""
        super().__init__(index, peers, limit)
        self.recovery = recovery  # where snapshots are kept and what to go on from, if anything is
        self.peers = peers
        self.warn_after = warn_after
        self.debug = debug
        self.clock = Clock()
        self.interest = 0  # what this worker is woken for
        self.moved = 0  # frontiers that have moved here, and others have not been told
        self.stirred: list[Stepping] = []  # invariant: holds every dataflow that has something to do, each once
        self.roster = Roster(index, range(peers) if not joins else (index,))
        self.beginnings: dict[int, Welcome] = {}  # by number, dataflows that this worker joins
        self.changes = Changing(self, joins)
        self.launcher: Launcher | None = None  # who can start more workers
        self.inviter: Inviter | None = None  # who can have more workers come from elsewhere
        self.meeting: Meeting | None = None  # how workers of other hosts that join are reached
        self.preparation = Preparation()  # what a joiner gets ready before it joins
        self._building: Dataflow | None = None
        self._nursery: trio.Nursery | None = None
        self.awake = False  # whether it has been woken, or is at work
        self.grant: Callable[[], Awaitable[None]] | None = None  # how a simulation lets main take a step
        self._due = False  # whether that is to be done when the current task's step is over
        self._idle_waiters = Waiters()
        self.meter = Meter(self)  # for those who look
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
        domain = Checked(domain_of(time)) if self.debug else domain_of(time)
        dataflow = Dataflow(self, number, name if name is not None else f"dataflow {number}", self.debug, domain)
        scope = Scope(dataflow, (domain,))
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
        if number == 0 and self.recovery is not None and self.recovery.title:
            self.meter.mark("recovery", f"from {self.recovery.title}", self.recovery.since)
        self._dataflows[number] = dataflow
        for message in self._unbuilt.release(number):
            dataflow.receive(message)
        self._check_counts()
        dataflow.stir()

    async def step(self) -> bool:
        """Does what there is to do now; whether there is more. A checkpoint."""
        if self.grant is not None:
            self.step_now()
            await self.grant()  # a simulation: others have their turn
        else:
            self.turn_for_main()
            await trio.lowlevel.checkpoint()
        return self.busy

    # For operators, inputs and transports

    def wake(self) -> None:
        """Wakes the pump: there is something to do."""
        if not self.awake:
            self.awake = True
            if self._alarm is None:
                self.signal.set()
            else:
                self._due = True
                self._alarm.due.append(self)

    def alarmed(self) -> None:
        """The step of the task that woke the pump is over: its own task is woken, unless all has been done."""
        attends, self._attends = self._attends, False
        if self._due or (attends and not self.may_sleep()):
            self._due, self.awake = False, True
            self.signal.set()

    @property
    def scheduled(self) -> bool:
        """Whether the pump's own task will run soon."""
        return self.awake and not self._due

    def rest(self) -> None:
        """Puts the pump to sleep: everything has been done, and the next `wake` sets the signal."""
        for dataflow in self.stirred:  # by a simulation, which does everything one by one
            dataflow.stirred = False
        self.stirred.clear()
        self.awake = False

    def send(self, to: int, message: AnyMessage) -> None:
        """Sends a message to another worker."""
        assert self.transport is not None
        self.transport.send(to, message)

    def broadcast(self, message: AnyMessage) -> None:
        """Sends a message to every other worker."""
        others = self.roster.others
        if others:
            assert self.transport is not None
            self.transport.broadcast(others, message)

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
    def running_dataflows(self) -> Mapping[int, Dataflow]:
        """The same, by number; not a copy."""
        return self._dataflows

    @property
    def busy(self) -> bool:
        """Whether there is something to do without hearing from anybody."""
        return bool(self._mailbox or (self.stirred and not self.changes.stopped))

    @property
    def complete(self) -> bool:
        """Whether main has returned and every dataflow is complete, or this worker has left."""
        if self.changes.leaving.gone:
            return True
        over = self._main_returned or self.changes.left
        return over and not self.changes.stopped and not self._dataflows and not self._mailbox

    @property
    def runs(self) -> bool:
        """Whether tasks can be started: not before the worker runs, nor while its tasks are being ended."""
        return self._nursery is not None and not self._nursery.cancel_scope.cancel_called

    @property
    def building(self) -> bool:
        """Whether main is building a dataflow."""
        return self._building is not None

    def step_now(self) -> None:
        """Takes the mail and steps every dataflow that has something to do. The others are not even looked at."""
        if self._stepping:
            raise ConstructionError("a worker cannot be stepped from inside an operator")
        if self._failed:
            return  # the exception is on its way out; another step would only raise again
        self._stepping = True
        try:
            changes = self.changes
            for _ in range(2):  # a dataflow's step looks what others have sent: mostly the answer, which is taken here
                if self._mailbox:
                    self.take_mail()
                if changes.stopped:
                    return
                if self.stirred:
                    self._step_dataflows()
                if not self._mailbox:
                    break
            if changes.left:
                changes.leaving.look()
            if self._idle_waiters.waiting:
                self._wake_idle()
        except BaseException:
            self._failed = True
            raise
        finally:
            self._stepping = False

    def _step_dataflows(self) -> None:
        stirred, self.stirred = self.stirred, []
        self.meter.stepped = [*self.meter.stepped, *stirred] if self.meter.stepped else stirred
        for dataflow in stirred:
            if not dataflow.dropped:  # what has ended says nothing more
                dataflow.step()
            dataflow.stirred = False
            if dataflow.dropped or (not dataflow.tracker.outstanding and dataflow.complete):
                self._forget(dataflow)
            elif dataflow.busy:
                dataflow.stir()

    def act(self, action: Callable[[], None]) -> None:
        """Does one thing of many, for a scheduler that chooses them one by one."""
        self._stepping = True
        try:
            action()
        finally:
            self._stepping = False
        self.retire()

    def turn(self, collected: bool = False) -> None:
        """Does what there is to do now and flushes the transport; `run` goes on with what is left.

        Called by `run`, and by a transport that has just received something (`collected`): waking `run` for that would
        cost a switch between tasks.
        """
        began = perf_counter_ns()
        transport = self.transport
        assert transport is not None
        awake, self.awake = self.awake, True  # whatever wakes us during the turn is part of it
        try:
            if not collected:
                transport.collect()
            self.step_now()
        finally:
            self.awake = awake
        transport.flush()
        if self.moved:
            self.tell_moved()
        if self._mailbox or (self.stirred and not self.changes.stopped):
            self.wake()
        else:
            transport.concluded()
            if self._due:  # all has been done that the pump was woken for
                self._due = self.awake = False
        self.meter.turned(began, perf_counter_ns())

    def exchange(self) -> None:
        """Flushes the transport before the turn is over, so that others can start on what was sent, and looks what they
        have sent: of two that tell each other of progress at the same time, one at least has heard all of it. Who has
        nothing to say need not look again."""
        assert self.transport is not None
        if self.transport.flush():
            self.transport.collect()

    def tell_moved(self) -> None:
        """Wakes those who watch a frontier that has moved."""
        moved, self.moved = self.moved, 0
        assert self.transport is not None
        self.transport.flush()  # or they would find nothing new
        self.transport.wake_watchers(moved)

    def may_sleep(self) -> bool:
        """Others are to wake this worker; False if there is something to do, or something has arrived already."""
        assert self.transport is not None
        return not self.busy and self.transport.may_sleep(EVERYTHING if self.changes.left else self.interest)

    def retire(self) -> None:
        """Forgets dataflows that are complete, and wakes whoever waits for that."""
        if self.changes.left:
            self.changes.leaving.look()
        for dataflow in tuple(self._dataflows.values()):
            if dataflow.complete:
                self._forget(dataflow)
        self._wake_idle()

    def _forget(self, dataflow: Stepping) -> None:
        if self._dataflows.pop(dataflow.number, None) is not None:
            self._ended.add(dataflow.number)
            dataflow.notify_end()

    def _wake_idle(self) -> None:
        if self._idle_waiters and self.complete:
            self._idle_waiters.wake()

    def finish(self) -> None:
        """Main has returned: closes its inputs and tells the others."""
        for dataflow in self._dataflows.values():
            for close in dataflow.close_inputs:
                close()
        self._main_returned = True
        self.broadcast(Finished(self.index, self.built))
        self._check_counts()
        self.wake()

    def tell_joiner(self, joiner: int) -> None:
        """Tells a worker that joins what it has missed: that main has returned here."""
        if self._main_returned:
            self.send(joiner, Finished(self.index, self.built))

    async def wait_complete(self) -> None:
        """Waits until there is nothing left to do, ever."""
        self.retire()
        if self.complete:
            return
        with trio.move_on_after(inf if self.warn_after is None else self.warn_after):
            return await self._idle_waiters.wait()
        if self._pumped:
            warn_if_stuck(self)
        await self._idle_waiters.wait()

    async def run(self) -> None:
        """Steps the worker whenever it is awake; sleeps in between. Runs until cancelled."""
        self._pumped = True
        self._alarm = alarm_of_this_loop()
        if self.warn_after is not None:
            self.spawn(Watch(self, self.warn_after).run, f"watch of worker {self.index}")
        while True:
            await self.signal.wait()
            if self._failure is not None:
                raise self._failure
            self.awake = True
            assert self.transport is not None
            self.transport.stay_awake()
            self.turn()  # which flushes the transport in any case
            while not self.may_sleep():
                await trio.lowlevel.checkpoint()  # main and the transports get their turn
                self.turn()
            self.rest()  # nothing can have happened since the last look: this is one thread

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        """A nursery for the worker's tasks. When the block ends they are cancelled."""
        with collecting_seldom(), closing(self.clock):
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                yield nursery
                nursery.cancel_scope.cancel()
        self._nursery = None

    async def run_main(self, main: Callable[[Worker, *A], Awaitable[R]], *args: *A) -> R:
        """Runs main, and then until every dataflow is complete, or this worker has left. Returns what main returned."""
        return await run_main(self, main, args)
