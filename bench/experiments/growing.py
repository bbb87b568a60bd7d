"""One operator that was built without a number of bins, from a thousand keys to as many as there is memory for: its
bins, its throughput, and what moving a quarter of it does to the latency."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import dataflow
import megaphone
from bench.counting import LEAD, LOADING, count
from bench.registry import benchmark
from bench.run import Run
from dataflow.columns import Columns
from megaphone import harness
from megaphone.control.tree import BinTree
from planners.loop import Driver, Loop, Shaping, by_bins

MILLION = 1_000_000
RATE = MILLION  # records/s of all workers, while bins move
EPOCH = 0.001  # seconds
BOUND = 0.02  # seconds


@dataclass(frozen=True)
class Grown:
    """What one worker saw at some number of keys."""

    bins: int
    largest: int  # bytes of the largest bin
    throughput: float  # records/s of this worker
    recording: harness.Recording


class Growing:
    """A count on one worker, whose bins a loop splits and merges."""

    def __init__(self, worker: dataflow.Worker) -> None:
        self.worker = worker
        with worker.dataflow() as scope:
            self.control, configuration = scope.input("control")
            self.keys, stream = scope.input("records")
            counts = megaphone.state_machine(configuration, stream, key="key", value="diff", fold=count)
            self.probe = counts.probe()
        self.counts = counts
        self.controller = megaphone.Controller(self.control, counts, lead=LEAD)
        self.driver = Driver(self.controller, Loop(by_bins(theta=0.2)), shaping=Shaping()) if not worker.index else None
        self.epoch = 0
        self.rng = np.random.default_rng(worker.index)

    def advance(self) -> None:
        """Ends an epoch."""
        self.epoch += 1
        self.keys.advance_to(self.epoch)
        self.controller.advance_to(self.epoch)

    async def grow(self, since: int, domain: int) -> None:
        """Brings the keys up to a number; the loop may shape bins meanwhile."""
        size, index, peers = LOADING, self.worker.index, self.worker.peers
        for start in range(since, domain, size * peers):
            first = min(domain, start + index * size)
            keys = np.arange(first, min(domain, first + size), dtype=np.uint64)
            self.keys.send({"key": keys, "diff": np.ones(len(keys), np.int64)})
            if self.driver is not None:
                self.driver.step()
            self.advance()
            await self.probe.wait_passed(self.epoch - 3)
        await self._rest(domain)

    async def _rest(self, domain: int) -> None:
        """Records on all keys until sizes are known and bins are as they should be: 1.5 s of intervals."""
        end = time.perf_counter() + 1.5
        while time.perf_counter() < end or self.controller.busy:
            self.send(domain, 20_000)
            if self.driver is not None and time.perf_counter() < end - 0.5:
                self.driver.step()
            self.advance()
            await self.probe.wait_passed(self.epoch - 2)

    def send(self, domain: int, size: int) -> None:
        """Random records."""
        keys = self.rng.integers(0, domain, size, dtype=np.uint64)
        self.keys.send(Columns({"key": keys, "diff": np.ones(size, np.int64)}))

    async def migrate(self, domain: int, seconds: float) -> harness.Recording:
        """An open-loop run in which a quarter of the state moves within the bound, and back."""
        schedule = harness.LoadSchedule(RATE, seconds, EPOCH, self.worker.peers, first=self.epoch + 1)
        episodes, home = harness.Episodes(), self.controller.configuration
        todo = [(seconds / 4, half_moved(home, self.controller.tree)), (seconds * 2 / 3, list(home))]

        def send(epoch: int, low: int, high: int) -> None:
            self.send(domain, high - low)
            if self.worker.index == 0:
                if todo and epoch * EPOCH >= todo[0][0] and not self.controller.busy:
                    self.controller.migrate(todo.pop(0)[1], megaphone.within(BOUND))
                episodes.follow("within" if self.controller.busy else None)

        recording = await harness.drive(
            self.worker, schedule, send, self.probe, inputs=[self.keys, self.controller], episodes=episodes,
            coalesce=True,
        )  # fmt: skip
        self.epoch = schedule.time(schedule.epochs)
        return recording

    async def throughput(self, domain: int, seconds: float) -> float:
        """Records/s of this worker, as fast as they are taken."""
        size = 1 << 18
        pool = [self.rng.integers(0, domain, size, dtype=np.uint64) for _ in range(4)]
        ones = np.ones(size, np.int64)
        start, sent = time.perf_counter(), 0
        for number in range(int(60 * seconds)):
            self.keys.send(Columns({"key": pool[number % 4], "diff": ones}))
            sent += size
            self.advance()
            await self.probe.wait_passed(self.epoch - 4)
        await self.probe.wait_passed(self.epoch - 1)
        return sent / (time.perf_counter() - start)


def half_moved(home: Sequence[int], tree: BinTree) -> list[int]:
    """Every second bin of worker 0 goes to worker 1."""
    there = np.array(home)
    for bin in [run for run in tree.runs if home[run.first] == 0][1::2]:
        there[bin.slice] = 1
    return [int(worker) for worker in there]


async def grow(worker: dataflow.Worker, domains: Sequence[int], seconds: float) -> list[Grown]:
    """What this worker saw at each number of keys, one after the other, in one dataflow."""
    growing, before, seen = Growing(worker), 0, []
    for domain in domains:
        await growing.grow(before, domain)
        before = domain
        tree = growing.controller.tree
        sizes = tree.total(growing.controller.statistics.bytes)
        rate = await growing.throughput(domain, seconds / 3)
        recording = await growing.migrate(domain, seconds)
        seen.append(Grown(len(tree), int(sizes.max()), rate, recording))
    return seen


@benchmark("count-growing", "one operator without a number of bins, from a thousand keys on: bins, speed, moves")
def growing(run: Run) -> None:
    domains = [1_000, 100_000, 2 * MILLION] if run.quick else [1_000, 100_000, MILLION, 10 * MILLION, 100 * MILLION]
    seconds = 3.0 if run.quick else 6.0
    workers = dataflow.execute(grow, domains, seconds, workers=2)
    for place, domain in enumerate(domains):
        mine = [seen[place] for seen in workers]
        outcome = harness.Outcome.of([each.recording for each in mine], warmup=seconds / 8, since="epoch end")
        run.report(f"{domain:,} keys: bins", mine[0].bins, "bins")
        run.report(f"{domain:,} keys: largest bin", mine[0].largest / 1024, "KiB")
        run.report(f"{domain:,} keys: throughput", sum(each.throughput for each in mine) / MILLION, "M records/s")
        for way, migration in zip(("there", "back"), outcome.migrations, strict=False):
            if migration.episode.seconds is None:
                run.report(f"{domain:,} keys, {way}: not complete", 0.0, "")
                continue
            run.report(f"{domain:,} keys, {way}: maximum before", migration.before.greatest / 1e6, "ms")
            run.report(f"{domain:,} keys, {way}: maximum latency", migration.during.greatest / 1e6, "ms")
            run.report(f"{domain:,} keys, {way}: duration", migration.episode.seconds * 1000, "ms")
