"""Running a query over a finite stream, as fast as it goes: what `run` and `verify` do, and tests."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dataflow
from dataflow import InputHandle, Stream
from dataflow.columns import Columns
from dataflow.time.order import Time
from megaphone.control.updates import Update
from megaphone.harness.progress import ProgressBar
from megaphone.harness.startline import agree_on_start
from nexmark.events.config import Config
from nexmark.events.generator import ENCODED
from nexmark.events.rows import Cell
from nexmark.events.vocabulary import dictionary
from nexmark.queries.operators import MigratableOperators, NativeOperators, Operators
from nexmark.queries.options import QueryOptions
from nexmark.queries.queries import NEEDS, QUERIES
from nexmark.runs.sources import EventSource, Generated, Given, Share

BATCH = 1 << 18  # events of an epoch, of all workers together
FEW_READ = 4  # times as many where a query reads no bids, and so few of the events
AHEAD = 4  # epochs that may be on their way
VARIANTS = ("native", "migratable")


@dataclass(frozen=True)
class RunPlan:
    """What to run. `updates` are (time, update) pairs for the control stream, which worker 0 sends."""

    query: str
    config: Config = field(default_factory=Config)
    events: int = 1_000_000
    given: Share | None = None  # columns by kind, in the place of generated ones
    variant: str = "migratable"
    bins: int = 256
    batch: int | None = None  # events of an epoch; None: as many as suit the query
    windows: Mapping[str, int] = field(default_factory=dict)  # of `QueryOptions`, those that are not the default
    updates: Sequence[tuple[int, Update]] = ()
    keep: bool = False  # whether workers return their rows
    output: Path | None = None  # where each worker puts its rows: a part of the file of this name
    making: str = "read"  # which part of generating is part of the run: see `sources.Generated`

    @property
    def epoch_events(self) -> int:
        """Events of an epoch, of all workers together."""
        return self.batch or (BATCH if "bid" in NEEDS[self.query] else FEW_READ * BATCH)

    def oracle_options(self) -> dict[str, int | list[int]]:
        """What an oracle must know besides the events: windows, and for q12 when events come in."""
        told: dict[str, int | list[int]] = {name.partition("_")[2]: value for name, value in self.windows.items()}
        source = self.source()
        if self.query == "q12" and isinstance(source, Generated):
            told |= {"size": source.size, "times": [source.time(number) for number in range(source.epochs)]}
        return told

    def source(self) -> EventSource:
        """Where events come from."""
        needs = NEEDS[self.query]
        if self.given is not None:
            return Given(self.given, needs, self.epoch_events)
        return Generated(self.config, needs, self.events, self.epoch_events, self.making)


@dataclass(frozen=True)
class RunResult:
    """What one worker measured."""

    events: int  # of all workers
    rows: int
    seconds: float  # first record in to last result out
    setup: float  # building, compiling and waiting for the others
    cpu: float  # seconds of this process, of the run itself
    peak: int  # bytes of memory
    kept: list[tuple[Cell, ...]]  # rows, if the plan says `keep`
    last: int = -1  # the time at which the last epoch was sent; -1 if there was none


class Job:
    """A query on one worker, with its inputs. `ops(configuration)` makes the operators, for tests that want others."""

    def __init__(
        self,
        worker: dataflow.Worker,
        plan: RunPlan,
        grid: int,
        ops: Callable[[Stream[Update]], Operators] | None = None,
    ) -> None:
        self.worker = worker
        self.plan = plan
        self.rows = 0
        self.kept: list[Columns] = []
        self._keeps = plan.keep or plan.output is not None
        needs = NEEDS[plan.query]
        with worker.dataflow(plan.query) as scope:
            self._scope = scope
            self.control: InputHandle[Update]
            self.control, configuration = scope.input("control")
            made = {kind: scope.input(kind, of=Columns) for kind in needs}
            self.inputs = {kind: handle for kind, (handle, _) in made.items()}
            self.operators = ops(configuration) if ops is not None else operators(plan, configuration)
            streams = {kind: stream for kind, (_, stream) in made.items()}
            results = QUERIES[plan.query](streams, self.operators, QueryOptions(grid=grid, **plan.windows))
            self.results = results.inspect_batch(self._take)
            self.probe = self.results.probe()
        self._advanced: list[InputHandle[Columns] | InputHandle[Update]] = [*self.inputs.values(), self.control]

    def _take(self, time: Time, batch: Columns) -> None:
        self.rows += len(batch)
        if self._keeps:
            self.kept.append(batch)

    def send(self, events: Share) -> None:
        """Sends a share of an epoch, the columns of each kind that the query reads."""
        for kind, columns in events.items():
            length = len(next(iter(columns.values())))
            if length:
                self.inputs[kind].send(Columns.trusted(dict(columns), length))

    def configure(self, updates: Sequence[tuple[int, Update]]) -> None:
        """Sends all updates that there will be and closes the control input: records then never wait for it."""
        for at, update in updates:
            self.control.send([update], at=at)
        self.control.close()
        self._advanced = [*self.inputs.values()]

    def advance_to(self, to: int) -> None:
        """Promises that nothing will come before `to`."""
        for handle in self._advanced:
            handle.advance_to(to)

    def close(self) -> None:
        """No more events: everything that is pending fires."""
        for handle in self._advanced:
            handle.close()

    async def abandon(self) -> None:
        """Ends the query without waiting for post-dated records. Every worker must call this: it waits for all."""
        await agree_on_start(self.worker)
        if self.worker.index == 0:
            self.worker.drop_dataflow(self._scope)


def operators(plan: RunPlan, configuration: Stream[Update]) -> Operators:
    """The set of operators that the plan asks for."""
    if plan.variant == "native":
        return NativeOperators()
    if plan.variant == "migratable":
        return MigratableOperators(configuration, plan.bins)
    raise ValueError(f"the variants are {' and '.join(VARIANTS)}, not {plan.variant!r}")


async def main(
    worker: dataflow.Worker,
    plan: RunPlan,
    terminal: bool | None = None,
    ops: Callable[[Stream[Update]], Operators] | None = None,
    watch: Callable[[Job, int], object] | None = None,
) -> RunResult:
    """Runs a plan on one worker. `terminal`: whether stderr is one; None for no progress bar. `watch(job, number)` is
    called after each epoch."""
    begun = time.perf_counter()
    source = plan.source()
    job = Job(worker, plan, source.grid, ops)
    job.configure(plan.updates if worker.index == 0 else ())
    shown = terminal is not None and worker.index == 0
    progress = ProgressBar(f"running {plan.query}", source.epochs, sys.stderr, lines=True, terminal=terminal)
    source.prepare(worker.index, worker.peers)
    await agree_on_start(worker)
    started, cpu = time.perf_counter(), time.process_time()
    for number in range(source.epochs):
        job.advance_to(source.time(number))
        job.send(source.share(number, worker.index, worker.peers))
        await worker.room()
        if number >= AHEAD:
            await job.probe.wait_passed(source.time(number - AHEAD))
        if shown:
            progress.advance(1)
        if watch is not None:
            watch(job, number)
    job.close()
    await job.probe.wait_done()
    seconds, spent = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if plan.output is not None:
        write_part(part_of(plan.output, worker.index), job.kept)
    kept = [row for batch in job.kept for row in readable(batch).rows()] if plan.keep else []
    last = source.time(source.epochs - 1) if source.epochs else -1
    return RunResult(plan.events, job.rows, seconds, started - begun, spent, peak, kept, last)


def readable(batch: Columns) -> Columns:
    """Words in the place of their codes."""
    words = {name: [dictionary(name)[code] for code in batch[name].tolist()] for name in batch.names if name in ENCODED}
    return batch.with_columns(words) if words and len(batch) else batch


def part_of(path: Path, worker: int) -> Path:
    """The file that one worker writes; `answers.results` puts the parts together."""
    return path.with_name(f".{path.name}.part{worker}")


def write_part(path: Path, batches: Sequence[Columns]) -> None:
    """One worker's rows; an empty file if there are none."""
    import pyarrow.parquet as pq

    if not batches:
        path.write_bytes(b"")
        return
    pq.write_table(Columns.concat(batches).to_arrow(), path, compression="zstd")
