"""Running a query over a finite stream, as fast as it goes: what `run` and `verify` do, and tests."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dataflow
from dataflow.columns import Columns
from dataflow.harness.startline import agree_on_start
from nexmark.config import Config
from nexmark.generator import ENCODED, Generator
from nexmark.operators import Migratable, Native
from nexmark.queries import NEEDS, QUERIES, Options
from nexmark.vocabulary import dictionary

BATCH = 1 << 17  # events of an epoch, of all workers together
AHEAD = 4  # epochs that may be on their way


@dataclass(frozen=True)
class Plan:
    """What to run. `updates` are (time, update) pairs for the control stream, which worker 0 sends."""

    query: str
    config: Config = field(default_factory=Config)
    events: int = 1_000_000
    variant: str = "migratable"
    bins: int = 256
    batch: int = BATCH
    windows: Mapping[str, int] = field(default_factory=dict)  # of `Options`, those that are not the default
    updates: Sequence[tuple[int, Any]] = ()
    keep: bool = False  # whether rows are brought home

    @property
    def epoch(self) -> int:
        """Events of an epoch: whole groups of those that come out of order."""
        return -(-self.batch // self.config.group) * self.config.group

    @property
    def options(self) -> Options:
        """Lengths of windows, and the grid of the dataflow's times: one epoch's."""
        return Options(grid=max(1, int(self.epoch * self.config.delay)), **self.windows)


@dataclass(frozen=True)
class Result:
    """What one worker has to say."""

    events: int
    rows: int
    seconds: float  # first record in to last result out
    setup: float  # building, compiling and waiting for the others
    peak: int  # bytes of memory
    kept: list[Any]  # rows, if they were to be kept


class Job:
    """A query on one worker, with its inputs."""

    def __init__(self, worker: dataflow.Worker, plan: Plan, ops: Callable[[Any], Any] | None = None) -> None:
        self.worker = worker
        self.plan = plan
        self.rows = 0
        self.kept: list[Columns] = []
        needs = NEEDS[plan.query]
        with worker.dataflow(plan.query) as scope:
            self.control, configuration = scope.input("control")
            made = {kind: scope.input(kind) for kind in needs}
            self.inputs = {kind: handle for kind, (handle, _) in made.items()}
            self.operators = ops(configuration) if ops is not None else operators(plan, configuration)
            streams = {kind: stream for kind, (_, stream) in made.items()}
            results = QUERIES[plan.query](streams, self.operators, plan.options)
            self.results = results.inspect_batch(self._take)
            self.probe = self.results.probe()

    def _take(self, time: Any, batch: Any) -> None:
        self.rows += len(batch)
        if self.plan.keep:
            self.kept.append(batch)

    def send(self, events: Mapping[str, Any]) -> None:
        """Sends the columns of each kind that the query reads."""
        for kind, columns in events.items():
            length = len(next(iter(columns.values())))
            if length:
                self.inputs[kind].send(Columns.trusted(columns, length))

    def advance_to(self, to: int) -> None:
        """Promises that nothing will come before."""
        for handle in (*self.inputs.values(), self.control):
            handle.advance_to(to)

    def close(self) -> None:
        """No more events: everything that is pending fires."""
        for handle in (*self.inputs.values(), self.control):
            handle.close()


def operators(plan: Plan, configuration: Any) -> Any:
    """The set of operators that the plan asks for."""
    if plan.variant == "native":
        return Native()
    if plan.variant == "migratable":
        return Migratable(configuration, plan.bins)
    raise ValueError(f"the variants are native and migratable, not {plan.variant!r}")


async def main(worker: dataflow.Worker, plan: Plan) -> Result:
    """Runs a plan on one worker."""
    begun = time.perf_counter()
    source = source_of(plan)
    job = Job(worker, plan)
    if worker.index == 0:
        for at, update in plan.updates:
            job.control.send([update], at=at)
    await agree_on_start(worker)
    started = time.perf_counter()
    for number in range(source.epochs):
        job.advance_to(source.time(number))
        job.send(source.share(number, worker.index, worker.peers))
        await worker.room()
        if number >= AHEAD:
            await job.probe.wait_passed(source.time(number - AHEAD))
    job.close()
    await job.probe.wait_done()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    kept = [row for batch in job.kept for row in readable(batch).rows()]
    return Result(source.events, job.rows, seconds, started - begun, peak, kept)


class Generated:
    """Epochs of generated events."""

    def __init__(self, plan: Plan) -> None:
        self.events = plan.events
        self._size = plan.epoch
        self._config = plan.config
        self._grid = plan.options.grid
        self._generator = Generator(plan.config, columns=NEEDS[plan.query])
        self.epochs = -(-plan.events // self._size)

    def time(self, number: int) -> int:
        """The time at which an epoch is sent: not after any of its events."""
        first = self._config.base_time + int(number * self._size * self._config.delay)
        return first // self._grid * self._grid

    def share(self, number: int, index: int, peers: int) -> Mapping[str, Any]:
        """One worker's part of an epoch."""
        first = number * self._size
        last = min(first + self._size, self.events)
        cuts = np.linspace(first, last, peers + 1).astype(np.int64)
        return self._generator.events(range(int(cuts[index]), int(cuts[index + 1])))


def source_of(plan: Plan) -> Any:
    """Where events come from."""
    return Generated(plan)


def readable(batch: Columns) -> Columns:
    """Words in the place of their codes."""
    words = {name: [dictionary(name)[code] for code in batch[name].tolist()] for name in batch.names if name in ENCODED}
    return batch.with_columns(words) if words and len(batch) else batch
