"""Real runs on this machine: what costs are taken from, and what simulated runs are compared with.

All are keyed counts of `bench.counting` (dense keys, eight bytes of state each), because its epochs, records, bytes and
migrations can be varied one by one.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from statistics import median

import numpy as np

import dataflow
from bench.counting import POOL, Counter, CountLoad, Setup, build, load, open_loop, plain_dense
from bench.timing import best_of
from dataflow.columns import Columns
from dataflow.columns.hashing import Owners, route_hashed
from dataflow.columns.scatter import split
from megaphone import harness

ROW = 8  # bytes of state of a key
RECORD_BYTES = 16  # of a record: a key and a number
PIPELINED = 4  # epochs under way in a closed loop


@dataclass(frozen=True)
class ClosedProbe:
    """A closed loop: so many records an epoch of each worker, `outstanding` epochs at a time."""

    workers: int
    records: int
    domain: int = 1 << 23
    bins: int = 256
    outstanding: int = PIPELINED
    seconds: float = 1.0
    snapshots: float | None = None  # seconds from one to the next


@dataclass(frozen=True)
class OpenProbe:
    """An open loop, in which strategies take turns to move a quarter of the state away, and back."""

    workers: int
    rate: int
    epoch: float
    domain: int
    bins: int
    strategies: tuple[str, ...] = ()
    batch: int = 16
    calm: float = 1.0  # seconds for each migration
    first: float = 1.5

    @property
    def seconds(self) -> float:
        """Of the whole."""
        return self.first + self.calm * max(1, len(self.strategies))

    @property
    def setup(self) -> Setup:
        """What is counted."""
        return Setup(self.domain, self.bins, dense=True)

    @property
    def migrations(self) -> tuple[tuple[float, str], ...]:
        """When which strategy begins."""
        return tuple((self.first + self.calm * place, name) for place, name in enumerate(self.strategies))


async def _closed(worker: dataflow.Worker, probe: ClosedProbe) -> tuple[int, float]:
    counter = build(worker, Setup(probe.domain, probe.bins, dense=True))
    epoch = await load(worker, counter)
    pool = [counter.batch(probe.records) for _ in range(POOL)]
    for warm in range(16):  # what is done for the first time is not measured
        await _one(counter, pool, epoch + warm, probe)
    epoch += 16
    first, start = epoch, time.perf_counter()
    while epoch % 8 != first % 8 or time.perf_counter() - start < probe.seconds:
        await _one(counter, pool, epoch, probe)
        epoch += 1
    return epoch - first, time.perf_counter() - start


async def _one(counter: Counter, pool: list[Columns], epoch: int, probe: ClosedProbe) -> None:
    if probe.records:
        counter.keys.send(pool[epoch % POOL])
    counter.advance_to(epoch + 1)
    await counter.probe.wait_passed(epoch + 1 - probe.outstanding)


def closed_epoch(probe: ClosedProbe) -> float:
    """Seconds by the clock that an epoch takes."""
    with tempfile.TemporaryDirectory() as folder:
        every = probe.snapshots
        recovery = None if every is None else dataflow.Recovery(folder, every=every)
        results = dataflow.execute(_closed, probe, workers=probe.workers, recovery=recovery)
    return float(np.mean([took / epochs for epochs, took in results]))


def open_outcome(probe: OpenProbe) -> harness.Outcome:
    """The outcome of an open loop. Latency counts from the end of a record's epoch."""
    plan = CountLoad(probe.rate, probe.seconds, probe.epoch, probe.migrations, probe.batch)
    recordings = dataflow.execute(open_loop, probe.setup, plan, workers=probe.workers)
    return harness.Outcome.of(recordings, warmup=min(1.0, probe.first / 2), since="epoch end")


class Observations:
    """What real runs showed: each is made when it is first asked for, and kept."""

    def __init__(self) -> None:
        self.epochs: dict[ClosedProbe, list[float]] = {}
        self.outcomes: dict[OpenProbe, list[harness.Outcome]] = {}

    def epoch(self, probe: ClosedProbe, rounds: int = 1) -> float:
        """Seconds that an epoch of a closed loop takes: the median of so many runs."""
        seen = self.epochs.setdefault(probe, [])
        seen += (closed_epoch(probe) for _ in range(rounds - len(seen)))
        return median(seen)

    def opened(self, probe: OpenProbe, rounds: int = 1) -> list[harness.Outcome]:
        """The outcomes of so many open loops."""
        seen = self.outcomes.setdefault(probe, [])
        seen += (open_outcome(probe) for _ in range(rounds - len(seen)))
        return seen


def route_seconds(records: int = 1 << 14, batches: int = 16) -> float:
    """What routing a record of two columns costs: finding its owner and copying it to a batch of that one."""
    owners = Owners((np.arange(4096) % 2).astype(np.uint16), 2)
    rng, to = np.random.default_rng(0), np.empty(records, np.uint16)
    made = [Columns({"key": rng.integers(0, 1 << 30, records), "diff": np.ones(records, int)}) for _ in range(batches)]

    def route() -> None:
        for batch in made:
            route_hashed(batch["key"].view(np.uint64), 52, owners.words, owners.width, to)
            split(batch, to, 2)

    route()
    return best_of(5, route) / (records * batches)


def apply_by_state(sizes: tuple[int, ...], records: int = 1 << 19) -> list[tuple[float, float]]:
    """What a record costs in a plain compiled loop over so many bytes of counts. How it grows with them is what
    matters: the engine's own loop does more, but waits for the same memory."""
    return [(float(size), records_at(size, records)) for size in sizes]


def records_at(size: int, records: int) -> float:
    """The same for one size."""
    rng, ones = np.random.default_rng(0), np.ones(records, np.int64)
    keys = [rng.integers(0, size // ROW, records, dtype=np.uint64) for _ in range(POOL)]
    apply = plain_dense(size // ROW)
    apply(keys[0], ones)

    def all_of_them() -> None:
        for each in keys:
            apply(each, ones)

    return best_of(3, all_of_them) / (records * POOL)
