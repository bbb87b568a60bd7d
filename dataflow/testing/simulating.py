"""N workers in one process under a seeded scheduler and a virtual clock: every interleaving is a seed.

`simulate(main, workers=3, seed=7)` does what `dataflow.execute` does, but one small thing at a time, in an order that
the seed chooses: the step of one operator on one worker, one worker's flush of its progress, one worker's look at
what it has heard, the delivery of one message. Progress of one worker reaches another in order; everything else may
overtake. The same seed gives the same run, turn by turn; a failure says its seed.

All that could happen next is equally likely, so that nothing waits for long. `scheduler=Starving()` lets one worker,
one operator or one kind of message wait as long as anything else can happen, and then another.

With `recovery` a life begins with the last snapshot in the storage, and `crash_after` ends it in the middle. The next
call goes on, with as many workers as it likes.

Programs may wait for the engine, for memory and for trio's clock, which jumps ahead when nothing else can happen.
Waiting for real I/O is not for simulations: it is reported as `Stuck`.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Protocol

import trio
import trio.testing

from dataflow.comm.messages import AnyMessage, Membership
from dataflow.comm.simulated import SimulatedNetwork, Turn
from dataflow.errors import Stuck
from dataflow.execute import check_main
from dataflow.recovery.beginning import Beginnings
from dataflow.recovery.manifest import SnapshotDamaged
from dataflow.recovery.opening import open_storage
from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import Resume
from dataflow.recovery.storage import Blob
from dataflow.run.clock import Clock
from dataflow.run.exceptions import unwrap
from dataflow.run.explain import explain
from dataflow.run.pump import Pump
from dataflow.run.signal import Signal
from dataflow.run.worker import A, R, Worker

Scheduler = Callable[[random.Random, Sequence[Turn]], int]
"""Of all turns that could be taken next, the place of the one that is."""
Watcher = Callable[[Mapping[int, Pump], Sequence[AnyMessage]], None]
"""Looks at all workers and all messages on their way."""


def simulate(
    main: Callable[[Worker, *A], Awaitable[R]],
    *args: *A,
    workers: int = 2,
    seed: int = 0,
    debug: bool = False,
    trace: list[Turn] | None = None,
    turns: int = 1_000_000,
    scheduler: Scheduler | None = None,
    recovery: str | Recovery | None = None,
    crash_after: int | Callable[[], bool] | None = None,
    watch: Watcher | None = None,
) -> list[R]:
    """Runs a program under the seeded scheduler; returns what each main returned.

    `trace` collects every turn. More than `turns` turns are taken for a computation that does not end. `scheduler`
    chooses turns, any with equal chance unless you say. `recovery`: where snapshots are kept, in this process
    (`memory://NAME`, or a storage of your own). `crash_after`: after so many turns, or when a function says so (it is
    asked before each turn), everything but the storage is lost, and `Crashed` is raised, unless the computation has
    ended before. A snapshot that turns out to be damaged while it
    is restored is passed over, as `execute` does: everything begins again from the one before. `watch` is called before
    each turn, with the machinery of all workers and every message on its way. Workers may ask for others
    (`worker.scale`): what is returned has then what all of them returned, in the order of their numbers.
    """
    check_main(main, workers)
    if type(seed) is not int:
        raise TypeError(f"a seed is an integer, so that it can be written down and used again, not {seed!r}")
    if recovery is not None:
        recovery = recovery if isinstance(recovery, Recovery) else Recovery(recovery)
    mortal = None if recovery is None else Mortal(recovery, workers)
    while True:
        simulation = Simulation(workers, seed, debug, trace, turns, scheduler or _fair, mortal, crash_after, watch)
        try:
            return _run_seeded(simulation, main, args, seed)
        except SnapshotDamaged:
            if mortal is None or not simulation.began:  # nothing that could be chosen is whole
                raise
            mortal.older = True
        except BaseException as error:
            error.add_note(f"simulated with workers={workers}, seed={seed}: failed after turn {simulation.turn}")
            raise


def _run_seeded(
    simulation: Simulation, main: Callable[[Worker, *A], Awaitable[R]], args: tuple[*A], seed: int
) -> list[R]:
    # Between tasks that can run, trio chooses at random: the only chance left that is not ours. Hypothesis needs the
    # same and does it the same way: this flag (tasks in the order of their creation, then shuffled), and a seed.
    scheduling: _TrioScheduling = trio._core._run
    chance, flag = scheduling._r, scheduling._ALLOW_DETERMINISTIC_SCHEDULING
    state = chance.getstate()
    chance.seed(seed)
    scheduling._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        return trio.run(simulation.run, main, args, clock=trio.testing.MockClock(autojump_threshold=0))
    except BaseExceptionGroup as group:
        error = unwrap(group)
        raise error from error.__cause__
    finally:
        chance.setstate(state)
        scheduling._ALLOW_DETERMINISTIC_SCHEDULING = flag


def _tell_nobody(line: str) -> None:
    """Snapshots that cannot be used: tests look at what becomes of it."""


class _TrioScheduling(Protocol):
    """What decides which of the tasks that can run trio runs first (no part of its interface)."""

    _r: random.Random
    _ALLOW_DETERMINISTIC_SCHEDULING: bool


def _fair(chance: random.Random, turns: Sequence[Turn]) -> int:
    return chance.randrange(len(turns))


class Starving:
    """A scheduler under which somebody always starves: turns in which one word occurs (the name of an operator, of a
    worker, of a kind of turn) are not taken while there are others. After at most `longest` turns it is another word.

    >>> starving, turns = Starving(), [("run", "worker 0", "map"), ("run", "worker 1", "map"), ("flush", "worker 1")]
    >>> chance = random.Random(3)
    >>> [turns[starving(chance, turns)] for _ in range(2)], starving.victim
    ([('flush', 'worker 1'), ('flush', 'worker 1')], 'map')
    """

    def __init__(self, longest: int = 400) -> None:
        self.victim = ""
        self._longest = longest
        self._left = 0

    def __call__(self, chance: random.Random, turns: Sequence[Turn]) -> int:
        if self._left == 0:
            self.victim = chance.choice(chance.choice(turns))
            self._left = chance.randint(1, self._longest)
        self._left -= 1
        # "worker 1" starves of "from worker 1" and "to worker 1" as well
        fed = [place for place, turn in enumerate(turns) if not any(word.endswith(self.victim) for word in turn)]
        return chance.choice(fed) if fed else chance.randrange(len(turns))


class Crashed(Exception):
    """A simulation was ended by `crash_after`; simulate the program again, and it goes on from the last snapshot."""


class Mortal:
    """A storage as one life sees it. When the life has ended by a crash, nothing that it still does has any effect.

    (Its tasks are cancelled, and their `finally` clauses run, which they would not if a process had been killed.)
    """

    def __init__(self, recovery: Recovery, workers: int) -> None:
        self._storage = open_storage(recovery.where)
        self.title = self._storage.title
        self.older = False  # whether the snapshot that was chosen last is damaged
        self._dead = False
        self._beginnings = Beginnings(replace(recovery, where=self), workers, _tell_nobody, trio.current_time)

    async def begin(self) -> Resume:
        """Chooses where a life goes on."""
        return (await self._beginnings.choose(self.older)).resume

    def die(self) -> None:
        """The life ends. A storage that has a method `crash`, for what was under way, is told."""
        self._dead = True
        crash = getattr(self._storage, "crash", None)
        if crash is not None:
            crash()

    async def _alive(self) -> None:
        if self._dead:
            await trio.sleep_forever()

    async def put(self, name: str, data: Blob, *, if_absent: bool = False) -> None:
        """Stores a blob."""
        await self._alive()
        await self._storage.put(name, data, if_absent=if_absent)

    async def get(self, name: str) -> bytes:
        """A blob."""
        await self._alive()
        return await self._storage.get(name)

    async def names(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`."""
        await self._alive()
        return await self._storage.names(prefix)

    async def delete(self, name: str) -> None:
        """Deletes a blob."""
        await self._alive()
        await self._storage.delete(name)


class Simulation:
    """The scheduler: knows every worker and every message on its way, and does one thing at a time."""

    def __init__(
        self,
        workers: int,
        seed: int,
        debug: bool,
        trace: list[Turn] | None,
        turns: int,
        scheduler: Scheduler,
        mortal: Mortal | None = None,
        crash_after: int | Callable[[], bool] | None = None,
        watch: Watcher | None = None,
    ) -> None:
        self._watch = watch
        self._scheduler = scheduler
        self._random = random.Random(seed)
        self._network = SimulatedNetwork()
        self._signal = Signal()
        self._pumps: dict[int, Pump] = {}
        self._joiners: list[tuple[int, int]] = []  # workers that shall be started: number, and how many there will be
        self._workers = workers
        self._debug = debug
        self._trace = trace
        self._limit = turns
        self._mortal = mortal
        self._crash_after = crash_after
        self._running = workers
        self._pollers: list[Signal] = []  # mains that wait for a step of theirs
        self._fruitless = 0  # how often in a row that made nothing happen
        self.turn = 0
        self.began = False
        self._start_worker: Callable[[Pump], None] = lambda pump: None
        self._clock = _UniqueClock()
        self._resume: Resume | None = None

    async def _begin(self) -> None:
        """Makes the workers, which go on from the last snapshot, if there is one."""
        resume = self._resume = None if self._mortal is None else await self._mortal.begin()
        self.began = True
        for index in range(self._workers):
            self._add(Pump(index, self._workers, self._debug, recovery=resume))

    def _add(self, pump: Pump) -> None:
        pump.transport, pump.signal, pump.clock = self._network, self._signal, self._clock
        pump.grant, pump.launcher = self._wait_for_grant, self
        self._pumps[pump.index] = pump

    # As the launcher of workers that join

    def start(self, numbers: Sequence[int], peers: int) -> None:
        """Starts workers, each at a turn of its own."""
        self._joiners += [(number, peers) for number in numbers]

    def joined(self, numbers: Sequence[int]) -> None:
        """They are members."""

    def left(self, numbers: Sequence[int]) -> None:
        """They are none any more."""

    def dismiss(self, numbers: Sequence[int]) -> None:
        """Ends workers that have not joined."""
        self._joiners = [joiner for joiner in self._joiners if joiner[0] not in numbers]
        for number in numbers:
            if number in self._pumps:
                self._network.send(number, Membership(0, "dismissed"))

    def _start(self, joiner: tuple[int, int]) -> None:
        number, peers = joiner
        self._joiners.remove(joiner)
        resume = None if self._resume is None else self._resume.for_joiner()
        pump = Pump(number, peers, self._debug, recovery=resume, joins=True)
        self._add(pump)
        self._running += 1
        self._network.send(0, Membership(number, "ready"))
        self._start_worker(pump)

    async def run(self, main: Callable[[Worker, *A], Awaitable[R]], args: tuple[*A]) -> list[R]:
        """Runs every worker's main, and the scheduler beside them."""
        await self._begin()
        results: dict[int, R] = {}

        async def run_worker(pump: Pump) -> None:
            for _ in range(self._random.randrange(8)):
                await trio.lowlevel.checkpoint()  # workers do not all start at once
            async with pump.running():
                results[pump.index] = await pump.run_main(main, *args)
            self._running -= 1
            self._signal.set()

        async with trio.open_nursery() as nursery:
            self._start_worker = lambda pump: nursery.start_soon(run_worker, pump)
            for pump in tuple(self._pumps.values()):
                self._start_worker(pump)
            await self._schedule()
        return [results[index] for index in sorted(results)]

    async def _schedule(self) -> None:
        while True:
            choices = self._choices()
            if self._watch is not None:
                self._watch(self._pumps, self._network.messages)
            if not choices:
                if not await self._idle():
                    return
            else:
                label, action = choices[self._scheduler(self._random, [label for label, _ in choices])]
                self._count(label)
                action()
                self._fruitless = 0
                if self._random.random() < 0.25:
                    self._grant_all()
                    await trio.lowlevel.checkpoint()  # the mains get a turn

    async def _wait_for_grant(self) -> None:
        """`await worker.step()` in a simulation: something happens, or nothing can."""
        waiting = Signal()
        self._pollers.append(waiting)
        self._signal.set()
        await waiting.wait()

    def _grant_all(self) -> bool:
        pollers, self._pollers = self._pollers, []
        for waiting in pollers:
            waiting.set()
        return bool(pollers)

    def _count(self, label: Turn) -> None:
        if self._crashes():
            if self._mortal is not None:
                self._mortal.die()
            raise Crashed(f"crashed after {self.turn} turns, as asked")
        self.turn += 1
        if self._trace is not None:
            self._trace.append(label)
        if self.turn > self._limit:
            raise Stuck(f"still running after {self._limit} turns\n" + self._explain())

    def _crashes(self) -> bool:
        if self._crash_after is None:
            return False
        return self._crash_after() if callable(self._crash_after) else self.turn >= self._crash_after

    def _choices(self) -> list[tuple[Turn, Callable[[], None]]]:
        """Everything that could happen next."""
        choices: list[tuple[Turn, Callable[[], None]]] = []
        for pump in self._pumps.values():
            choices += _worker_choices(pump)
        for joiner in self._joiners:
            choices.append((("start", f"worker {joiner[0]}"), partial(self._start, joiner)))
        choices += [(label, self._delivery(label)) for label in self._network.waiting()]
        return choices

    def _delivery(self, label: Turn) -> Callable[[], None]:
        def deliver() -> None:
            to, message = self._network.take(label, self._random)
            self._pumps[to].act(lambda: self._pumps[to].deliver(message))

        return deliver

    async def _idle(self) -> bool:
        """Nothing can happen until some main or timer goes on. False when all mains have returned."""
        for pump in self._pumps.values():
            pump.retire()
            pump.rest()
        await trio.testing.wait_all_tasks_blocked()
        if self._running == 0:
            return False
        if self._choices():
            return True
        patience = trio.lowlevel.current_statistics().seconds_to_next_deadline
        if self._grant_all():
            self._fruitless += 1
            if patience < inf and self._fruitless > 10:
                await trio.sleep(patience)
            if self._fruitless < 1000:
                return True
        if patience == inf:
            raise Stuck("nothing can happen any more, and not every worker is done\n" + self._explain())
        with trio.move_on_after(patience):
            await self._signal.wait()
        return True

    def _explain(self) -> str:
        return "\n".join(explain(pump) for pump in self._pumps.values())


def _worker_choices(pump: Pump) -> list[tuple[Turn, Callable[[], None]]]:
    def by_worker(action: Callable[[], None]) -> Callable[[], None]:
        return lambda: pump.act(action)

    choices: list[tuple[Turn, Callable[[], None]]] = []
    if pump.changes.stopped or not pump.runs:  # one that fails: its tasks have ended, and an operator may want new ones
        return choices
    for dataflow in pump.dataflows:
        where = (f"worker {pump.index}", dataflow.name)
        for number in dataflow.runnable:
            run = by_worker(lambda d=dataflow, n=number: d.run_only(n))  # type: ignore[misc]
            choices.append((("run", *where, dataflow.operators[number].label), run))
        if dataflow.outbox.pending:
            choices.append((("flush", *where), by_worker(dataflow.flush)))
        if dataflow.unsettled:
            choices.append((("settle", *where), by_worker(dataflow.settle)))
    return choices


class _UniqueClock(Clock):
    """No two sleepers wake at the same instant, so that trio has no choice in whom to wake first."""

    def __init__(self) -> None:
        self._sleepers = 0

    async def sleep_until(self, deadline: float) -> None:
        self._sleepers += 1
        await trio.sleep_until(deadline + self._sleepers * 1e-9)
