"""Hash count and key count, the micro-benchmarks of sections 5.2 and 5.3: what their experiments and figures share.

Records are (key, 1) with keys uniform over a domain; out come (key, running count). Every key is loaded before anything
is measured, so that growth of tables is not what is measured.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dataflow
import megaphone
from dataflow import Stream
from dataflow.columns import Columns
from dataflow.state import native as stateful
from dataflow.state.folds.fold import fold
from megaphone import harness
from megaphone.migration.strategies import Strategy
from planners import BinMap, Plan, Tasks, progressive, schedule, scheduled

Keys = NDArray[np.uint64]
Counts = NDArray[np.int64]
Apply = Callable[[Keys, Counts], object]  # counts a batch

LOADING = 1 << 18  # keys in a batch while loading
LEAD = 2  # epochs: a configuration is certain so long before its records come
SIZE = 1 << 19  # records in a batch, where a worker gets as many as it can take
GAP = 4  # epochs between steps: what has waited is let through
POOL = 4  # batches that are made beforehand, and sent over and over


@fold(state={"count": "i8"}, output={"key": "u8", "count": "i8"})
def count(key, value, state):  # type: ignore[no-untyped-def]
    state.count += value
    return key, state.count


@dataclass(frozen=True)
class Setup:
    """What is counted, and by what. `bins` 0: native, a plain exchange and a table."""

    domain: int
    bins: int
    dense: bool = False
    interval: float | None = 0.25
    drawn: int = 0  # so many keys have records once all are loaded; 0: all

    @property
    def name(self) -> str:
        """The name that tables and plots show."""
        return "native" if not self.bins else f"2^{self.bins.bit_length() - 1} bins"


def told_every(setup: Setup) -> float:
    """Seconds from one report of a worker's statistics to the next (see `megaphone.load.statistics`: rarer above 2^14
    bins); infinite if there are none."""
    return setup.interval * max(1, setup.bins >> 14) if setup.bins and setup.interval else math.inf


@dataclass
class Counter:
    """A count on one worker, ready to be fed."""

    keys: dataflow.InputHandle
    control: dataflow.InputHandle
    probe: dataflow.Probe
    controller: megaphone.Controller | None
    rng: np.random.Generator
    setup: Setup

    def advance_to(self, epoch: int) -> None:
        """Promises that nothing will come before that epoch."""
        self.keys.advance_to(epoch)
        if self.controller is not None:
            self.controller.advance_to(epoch)
        else:
            self.control.advance_to(epoch)

    def batch(self, size: int) -> Columns:
        """Random records."""
        keys = self.rng.integers(0, self.setup.drawn or self.setup.domain, size, dtype=np.uint64)
        return Columns({"key": keys, "diff": np.ones(size, np.int64)})


def build(worker: dataflow.Worker, setup: Setup) -> Counter:
    """The dataflow."""
    keys = megaphone.dense(setup.domain) if setup.dense else None
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        records, stream = scope.input("records")
        if setup.bins:
            counts: Stream[Columns] = megaphone.state_machine(
                configuration, stream, key="key", value="diff", fold=count, bins=setup.bins, keys=keys,
                interval=setup.interval,
            )  # fmt: skip
        else:
            counts = stateful.state_machine(stream, key="key", value="diff", fold=count, keys=keys)
        probe = counts.probe()
    controller = megaphone.Controller(control, counts, lead=LEAD) if setup.bins else None
    return Counter(records, control, probe, controller, np.random.default_rng(worker.index), setup)


async def load(worker: dataflow.Worker, counter: Counter) -> int:
    """Sends every key once; the first epoch after that."""
    domain, epoch = counter.setup.domain, 0
    mine = range(worker.index * LOADING, domain, worker.peers * LOADING)
    rounds = -(-domain // (worker.peers * LOADING))
    for number in range(rounds):
        if number < len(mine):
            keys = np.arange(mine[number], min(mine[number] + LOADING, domain), dtype=np.uint64)
            counter.keys.send({"key": keys, "diff": np.ones(len(keys), np.int64)})
        epoch += 1
        counter.advance_to(epoch)
        await counter.probe.wait_passed(epoch - 3)
    await counter.probe.wait_passed(epoch - 1)
    return epoch


async def closed_loop(worker: dataflow.Worker, setup: Setup, size: int, seconds: float) -> tuple[int, float]:
    """Feeds batches as fast as they are taken; records of this worker, and the seconds it took."""
    return await feed(worker, build(worker, setup), size, seconds)


async def feed(worker: dataflow.Worker, counter: Counter, size: int, seconds: float) -> tuple[int, float]:
    """The same, of a dataflow that has been built."""
    epoch = await load(worker, counter)
    pool = [counter.batch(size) for _ in range(POOL)]
    sent, start, first = 0, time.perf_counter(), epoch
    while True:
        counter.keys.send(pool[epoch % POOL])
        sent += size
        epoch += 1
        counter.advance_to(epoch)
        await counter.probe.wait_passed(epoch - 4)
        if epoch % 8 == first % 8 and time.perf_counter() - start > seconds:
            break
    await counter.probe.wait_passed(epoch - 4)
    return sent, time.perf_counter() - start


def throughput(
    setup: Setup, seconds: float, size: int = SIZE, workers: int = 2, recovery: dataflow.Recovery | None = None
) -> float:
    """Records a second of all workers together."""
    results = dataflow.execute(closed_loop, setup, size, seconds, workers=workers, recovery=recovery)
    return float(sum(sent / took for sent, took in results))


def plain_loop(dense: bool, domain: int, share: int, shares: int, seconds: float, size: int = SIZE) -> float:
    """What numpy and numba do on one core without any engine, for one share of the keys; records a second."""
    rng = np.random.default_rng(share)
    mine = np.arange(share, domain, shares, dtype=np.uint64)
    apply = plain_dense(len(mine)) if dense else _plain_hashed(mine)
    pool = [
        rng.choice(mine, size) if not dense else rng.integers(0, len(mine), size, dtype=np.uint64) for _ in range(POOL)
    ]
    ones = np.ones(size, np.int64)
    apply(pool[0], ones)
    sent, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        apply(pool[sent // size % POOL], ones)
        sent += size
    return sent / (time.perf_counter() - start)


def _plain_hashed(mine: Keys) -> Apply:
    """One table, without bins, rows fetched ahead of their use: the engine's own kernel, and nothing else."""
    from dataflow.state.folds.driver import FoldDriver
    from dataflow.state.tables.table import HashTable

    driver = FoldDriver(count, ("diff",), HashTable(2, count.state), True)
    driver.apply(0, mine, [np.ones(len(mine), np.int64)])
    return lambda keys, ones: driver.apply(0, keys, [ones])


def plain_dense(size: int) -> Apply:
    """A compiled loop over an array of counts, and nothing else."""
    from numba import njit

    counts = np.ones(size, np.int64)

    @njit
    def loop(counts, keys, diffs, out_keys, out_counts):  # type: ignore[no-untyped-def]
        for i in range(keys.size):
            total = counts[keys[i]] + diffs[i]
            counts[keys[i]] = total
            out_keys[i] = keys[i]
            out_counts[i] = total

    return lambda keys, ones: loop(counts, keys, ones, np.empty_like(keys), np.empty_like(ones))


def plain_throughput(dense: bool, domain: int, seconds: float, cores: int = 2) -> float:
    """The plain loop on several cores, each with its share of the keys."""

    async def main(worker: dataflow.Worker) -> float:
        return plain_loop(dense, domain, worker.index, worker.peers, seconds)

    return float(sum(dataflow.execute(main, workers=cores)))


# Open loop


@dataclass(frozen=True)
class CountLoad:
    """An open-loop run: so many records a second for so long; each strategy moves bins away, and the next one back."""

    rate: int
    seconds: float
    epoch: float = 0.001
    migrations: tuple[tuple[float, str], ...] = ()  # (when, which strategy)
    batch: int = 16
    swap: bool = False  # whether worker 1 sends as many bins as it receives
    block: int = 1  # so many neighbouring bins move together: what planners take for one
    outstanding: int = 1000


def strategy_of(name: str, batch: int) -> Strategy:
    """A strategy by its name."""
    made = {
        "all-at-once": megaphone.all_at_once(),
        "fluid": megaphone.fluid(),
        "first": megaphone.batched(batch),  # memory is touched for the first time in this one
        "batched": megaphone.batched(batch),
        "whole batches": megaphone.batched(batch, budget=1 << 40),  # never split, however large
        "matched": megaphone.matched(),
        "within 20 ms": megaphone.within(0.02),
        "fluid, gap": megaphone.fluid(gap=GAP),
        "batched, gap": megaphone.batched(batch, gap=GAP),
        "optimized": megaphone.matched(gap=GAP),
    }
    return made[name]


def linked(name: str, batch: int, here: NDArray[np.integer], there: NDArray[np.integer], block: int) -> Strategy:
    """Strategies that planners make, for blocks of bins of one size: mini-migrations, and schedules over the links."""
    if name == "progressive":
        return progressive(batch)
    first = slice(None, None, block)
    tasks = Tasks([1] * len(here[first]), [1] * len(here[first]))
    plan = Plan.between("", BinMap(here[first].tolist(), range(2)), BinMap(there[first].tolist(), range(2)), tasks)
    pieces = name == "scheduled in pieces"
    return scheduled(schedule(plan, pieces=pieces), counts=[block] * len(tasks))


LINKED = ("progressive", "scheduled", "scheduled in pieces")


def halved(bins: int, swap: bool = False, workers: int = 2) -> NDArray[np.int64]:
    """The homes of bins after half of worker 0's have moved to worker 1, half of worker 2's to worker 3, and so on: a
    quarter of the state; half of it, if as many go the other way."""
    homes = np.arange(bins) % workers
    first = np.arange(bins) // workers % 2 == 0  # of two bins of a worker
    even = homes % 2 == 0
    moved = np.where(first & even & (homes + 1 < workers), homes + 1, homes)
    return np.where(first & ~even, homes - 1, moved) if swap else moved


async def open_loop(worker: dataflow.Worker, setup: Setup, load_: CountLoad) -> harness.Recording:
    """One worker's recording of an open-loop run, migrations included."""
    counter = build(worker, setup)
    first = await load(worker, counter)
    # sent over and over, a slice at a time
    keys = counter.rng.integers(0, setup.drawn or setup.domain, 1 << 22, dtype=np.uint64)
    ones = np.ones(1 << 16, np.int64)
    schedule = harness.LoadSchedule(load_.rate, load_.seconds, load_.epoch, worker.peers, first=first)
    episodes = harness.Episodes()
    todo = [(round(when / load_.epoch), name) for when, name in load_.migrations]
    homes: Iterator[NDArray[np.int64]] = iter(())
    if setup.bins:
        blocks = setup.bins // load_.block
        ends = (halved(blocks, load_.swap, worker.peers), np.arange(blocks) % worker.peers)
        homes = itertools.cycle(np.repeat(end, load_.block) for end in ends)

    def send(epoch: int, low: int, high: int) -> None:
        size = high - low
        at = low % (len(keys) - len(ones))
        counter.keys.send(Columns.trusted({"key": keys[at : at + size], "diff": ones[:size]}, size))
        if worker.index == 0 and counter.controller is not None:
            if episodes.under_way is not None and not counter.controller.busy:
                episodes.end()
            if todo and epoch >= todo[0][0] and not counter.controller.busy:
                _, name = todo.pop(0)
                here, there = np.array(counter.controller.configuration), next(homes)
                made = linked(name, load_.batch, here, there, load_.block) if name in LINKED else None
                counter.controller.migrate(there, made or strategy_of(name, load_.batch))
                episodes.begin(name)

    inputs = [counter.keys, counter.controller or counter.control]
    return await harness.drive(
        worker, schedule, send, counter.probe, inputs=inputs, episodes=episodes, outstanding=load_.outstanding,
        memory_every=0.05, coalesce=True,  # like the original's driver: a late worker sends all that is due at once
    )  # fmt: skip


def measure(
    setup: Setup, load_: CountLoad, warmup: float = 1.0, recovery: dataflow.Recovery | None = None
) -> harness.Outcome:
    """The outcome of an open-loop run on two processes. Latency counts from the end of a record's epoch."""
    recordings = dataflow.execute(open_loop, setup, load_, workers=2, recovery=recovery)
    return harness.Outcome.of(recordings, warmup=warmup, since="epoch end")
