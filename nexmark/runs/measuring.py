"""A query under open-loop load, and migrations while it runs: what `latency`, the demo and the figures do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import dataflow
from megaphone import Controller, Group, all_at_once, batched, fluid, harness, matched, within
from megaphone.assembly import Migratable
from megaphone.harness.joining import attend, has_joined
from megaphone.harness.recording import Recording
from megaphone.harness.scaling import Scaled, Scaler
from megaphone.migration.strategies import Strategy
from nexmark.events.config import SECOND, Config
from nexmark.events.generator import Events, Generator, Table
from nexmark.events.rows import Cell
from nexmark.queries.operators import MigratableOperators
from nexmark.queries.queries import NEEDS
from nexmark.runs.running import BATCH, Job, RunPlan, readable

LEAD = 2  # epochs by which configurations are certain before their records come
STRATEGIES = ("all-at-once", "fluid", "batched", "matched", "within")


@dataclass(frozen=True)
class LoadPlan:
    """A query, a rate, and what happens meanwhile. The rate of `plan.config` is not used: see `config`.

    The first `preload` events are processed before the clock starts, as fast as it goes. `migrations` are (seconds,
    strategy) pairs: the first moves half of worker 0's bins to worker 1, the next one moves them back, and so on.
    """

    plan: RunPlan
    rate: float  # events per second
    duration: float  # seconds
    epoch: float = 0.001  # seconds
    dilation: int = 1  # seconds of event time in a second
    preload: int = 0
    migrations: Sequence[tuple[float, str]] = ()
    batch_bins: int = 16  # bins of a batch, for the strategy of that name
    terminal: bool | None = None  # a live view: whether stderr is a terminal; None for no live view
    ready: int = 0  # bytes of memory that every table takes from the system before the clock starts
    bound: float = 0.02  # seconds that records may wait, for `within`
    scalings: Sequence[tuple[float, int]] = ()  # (seconds, workers): so many from then on
    scale_by: str | None = None  # the strategy by which state moves then; None: that of `worker.scale`

    @property
    def ticks(self) -> int:
        """Nanoseconds of event time in an epoch: the grid of the dataflow's times."""
        return round(self.epoch * SECOND) * self.dilation

    @property
    def first(self) -> int:
        """The dataflow's time at which the schedule begins: after what is loaded before."""
        return -(-(int(self.preload * self.config.delay) + 1) // self.ticks) * self.ticks if self.preload else 0

    @property
    def config(self) -> Config:
        """The options of the events: at a rate of event time that dilation makes the real one."""
        return replace(self.plan.config, rate=self.rate / self.dilation)

    def generator(self) -> Generator:
        """Of events of which number `preload` happens when the schedule begins."""
        config = self.config
        # A nanosecond late, so that no rounded date is before the epoch in which it is due.
        base = self.first + 1 - int(self.preload * config.delay)
        return Generator(replace(config, base_time=base), columns=NEEDS[self.plan.query])

    def schedule(self, workers: int) -> harness.LoadSchedule:
        """When events are due."""
        return harness.LoadSchedule(self.rate, self.duration, self.epoch, workers, self.first, self.ticks)

    def outcome(self, seen: Sequence[Seen], warmup: float) -> harness.Outcome:
        """What the workers saw that fed the load; a point of the timeline is about a quarter of a second."""
        window = max(1, round(0.25 / self.epoch)) * round(self.epoch * SECOND) / SECOND
        recordings = [each.recording for each in seen if each.recording is not None]
        return harness.Outcome.of(recordings, warmup=warmup, window=window)

    def strategy(self, name: str) -> Strategy:
        """The strategy of that name."""
        if name == "batched":
            return batched(self.batch_bins)
        if name == "within":
            return within(self.bound)
        return {"all-at-once": all_at_once, "fluid": fluid, "matched": matched}[name]()


@dataclass
class Seen:
    """What one worker saw."""

    recording: Recording | None  # None: it joined, and fed nothing
    keys: int  # that had state when the clock started
    state_bytes: int
    final_keys: int
    results: int  # rows that came out during the run
    kept: list[tuple[Cell, ...]]  # all rows, if the plan says so
    scaled: list[Scaled] = field(default_factory=list)  # on the worker that asked


def who_stayed(seen: Sequence[Seen | None]) -> list[Seen]:
    """What those saw who did not leave: the others return nothing."""
    return [each for each in seen if each is not None]


async def main(worker: dataflow.Worker, load: LoadPlan) -> Seen:
    """Runs a load on one worker."""
    job = Job(worker, load.plan, load.ticks)
    made = job.operators.made if isinstance(job.operators, MigratableOperators) else []
    if has_joined(worker):
        job.close()
        await attend(worker, in_step=True)
        after = _state_of(made)
        return Seen(None, 0, 0, after[0], job.rows, await _end(job, load))
    generator = load.generator()
    await _preload(job, load, generator)
    for operator in made if load.ready else ():
        operator.handle.store.prefault(load.ready)
    before = _state_of(made)
    episodes = harness.Episodes()
    mover = Mover(job, load, episodes, made) if made else None
    gc.collect()
    gc.freeze()  # what exists now will stay: later collections need not look at it

    feed = EpochFeed(job)
    first, ticks, skipped = load.first, load.ticks, load.preload

    def send(epoch: int, low: int, high: int) -> None:
        if mover is not None and worker.index == 0:
            mover.look(epoch * load.epoch, first + epoch * ticks)
        feed.add(generator.events(range(skipped + low, skipped + high)))

    control = job.control if mover is None else mover.controller
    live = None
    if load.terminal is not None and worker.index == 0:
        live = harness.Live(sys.stderr, None if mover is None else mover.bins, terminal=load.terminal)
    recording = await harness.drive(
        worker, load.schedule(worker.peers), send, job.probe,
        inputs=[feed, control], episodes=episodes, watch=live,
        in_step=True,  # else a bid from a slow worker could come at an earlier time than its auction, and be lost
    )  # fmt: skip
    gc.unfreeze()
    after, results = _state_of(made), job.rows
    scaled = [] if mover is None else mover.scaled
    return Seen(recording, *before, after[0], results, await _end(job, load), scaled)


async def _end(job: Job, load: LoadPlan) -> list[tuple[Cell, ...]]:
    """Ends a query; its rows, if they are kept."""
    if load.plan.keep:
        job.close()
        await job.probe.wait_done()
        return [row for batch in job.kept for row in readable(batch).rows()]
    await job.abandon()  # nobody needs the post-dated records, of which there may be a million
    return []


def _state_of(operators: Sequence[Migratable]) -> tuple[int, int]:
    """Keys that have state on this worker, and the bytes that all would travel as, post-dated records included."""
    stores = [operator.handle.store for operator in operators]
    return sum(store.key_count for store in stores), sum(store.byte_count for store in stores)


async def _preload(job: Job, load: LoadPlan, generator: Generator) -> None:
    """Processes what comes before the clock starts, all workers together, some epochs ahead."""
    base = generator.config.base_time
    times = []
    for start in range(0, load.preload, BATCH):
        stop = min(start + BATCH, load.preload)
        times.append((base + int(start * generator.config.delay)) // load.ticks * load.ticks)
        job.advance_to(times[-1])
        index, peers = job.worker.index, job.worker.peers
        job.send(generator.events(range(*(start + (stop - start) * i // peers for i in (index, index + 1)))))
        await job.worker.room()
        if len(times) > 4:
            await job.probe.wait_passed(times[-5])
    if times:
        job.advance_to(load.first)
        await job.probe.wait_passed(load.first - 1)


class EpochFeed:
    """The inputs of a query as one. When the run is late, several epochs are added before the inputs advance: all are
    sent at the time of the first."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._added: list[Events] = []

    def add(self, events: Events) -> None:
        """The events of an epoch, in columns by kind."""
        self._added.append(events)

    def advance_to(self, to: int) -> None:
        """Sends, and promises that nothing will come before `to`."""
        added, self._added = self._added, []
        if len(added) == 1:
            self._job.send(added[0])
        elif added:
            self._job.send({kind: _joined([events[kind] for events in added]) for kind in added[0]})
        for handle in self._job.inputs.values():
            handle.advance_to(to)


def _joined(tables: Sequence[Table]) -> Table:
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


class Mover:
    """Begins migrations when it is time, and follows them: those of a plan, or the updates of a file. So it does with
    requests for other numbers of workers."""

    def __init__(self, job: Job, load: LoadPlan, episodes: harness.Episodes, made: Sequence[Migratable]) -> None:
        self._scaler = Scaler(job.worker, load.scalings, load.strategy(load.scale_by) if load.scale_by else None)
        self.scaled = self._scaler.scaled
        self.controller = Controller(job.control, Group(made), lead=LEAD * load.ticks)
        self._load = load
        self._episodes = episodes
        self._home = self.controller.configuration
        self._waiting = sorted(load.migrations)
        self._begun = 0
        self._name = ""
        self._updates = sorted({time for time, _ in load.plan.updates})
        if job.worker.index == 0:
            for at, update in load.plan.updates:
                job.control.send([update], at=at)

    def look(self, seconds: float, now: int) -> None:
        """Called at each epoch, on one worker."""
        if not self.controller.busy and self._scaler.look(seconds) is not None:
            self._episodes.follow(self._scaler.under_way)
            return
        if self._waiting and seconds >= self._waiting[0][0] and not self.controller.busy:
            _, self._name = self._waiting.pop(0)
            target = half_moved(self._home) if self._begun % 2 == 0 else self._home
            self.controller.migrate(target, self._load.strategy(self._name))
            self._begun += 1
        while self._updates and self.controller.passed(self._updates[0]):
            self._updates.pop(0)
        by_file = bool(self._updates) and self._updates[0] <= now
        self._episodes.follow(self._name if self.controller.busy else "by the file" if by_file else None)

    def bins(self) -> list[int]:
        """How many bins each worker has."""
        least = max(self._scaler.members, default=0) + 1
        counts: list[int] = np.bincount(self.controller.configuration, minlength=least).tolist()
        return counts


def half_moved(home: Sequence[int]) -> list[int]:
    """Every second bin of worker 0 goes to worker 1.

    >>> half_moved([0, 1, 0, 1, 0, 1, 0, 1])
    [0, 1, 1, 1, 0, 1, 1, 1]
    """
    target = list(home)
    for bin in [bin for bin, worker in enumerate(home) if worker == 0][1::2]:
        target[bin] = 1
    return target
