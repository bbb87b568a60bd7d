"""Windowed joins in columns: what their benchmark and their figure share.

Throughput: two streams, keys uniform over a domain, as fast as they are taken. Latency: four streams under open-loop
load, whose plan changes. As in the HybMig paper a rare stream makes the difference: the first one before the plan
changes, the last one after.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dataflow
import megaphone
import megaphone.plans
from bench.stalls import HostLog, held_up
from dataflow.columns import Columns
from dataflow.columns.hashing import mix
from megaphone import harness
from megaphone.harness.openloop import Input
from megaphone.harness.recording import Recording, completions
from megaphone.harness.schedule import SECOND
from megaphone.migration.strategies import Strategy

POOL = 40  # batches that are made beforehand, and sent over and over
OLD, NEW = "((a b) c) d", "a (b (c d))"
RARE = 20  # as many times as many keys has the rare stream


@dataclass(frozen=True)
class Pairing:
    """A join of two streams: so many records of each at a time, so many times, so many keys."""

    size: int
    window: int
    domain: int

    def batches(self, seed: int) -> list[Columns]:
        """Records of one stream."""
        rng = np.random.default_rng(seed)
        return [
            Columns({"key": rng.integers(0, self.domain, self.size), "value": np.arange(self.size)})
            for _ in range(POOL)
        ]


async def closed_loop(worker: dataflow.Worker, pairing: Pairing, seconds: float) -> tuple[int, int, float]:
    """Feeds batches as fast as they are taken, once the window is full: records, results and seconds."""
    query = megaphone.plans.Query(("a", "b"), pairing.window, on="key")
    results = 0

    def note(_: int, batch: Columns) -> None:
        nonlocal results
        results += len(batch)

    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs, streams = zip(*(scope.input(name) for name in "ab"), strict=True)
        joined = megaphone.window_join(configuration, dict(zip("ab", streams, strict=True)), query, plan="a b")
        probe = joined.inspect_batch(note).probe()
    pairing = replace(pairing, size=pairing.size // worker.peers)  # as many in all, on any number of workers
    pools = [pairing.batches(2 * worker.index + side) for side in range(2)]
    sent, start, epoch, filled = 0, 0.0, 0, 2 * pairing.window
    while epoch <= filled or time.perf_counter() - start < seconds:
        if epoch == filled:
            await probe.wait_passed(epoch - 1)
            sent, results, start = 0, 0, time.perf_counter()
        for handle, pool in zip(inputs, pools, strict=True):
            handle.send(pool[epoch % POOL])
            handle.advance_to(epoch + 1)
        control.advance_to(epoch + 1)
        sent += 2 * pairing.size
        epoch += 1
        await probe.wait_passed(epoch - 4)
    await probe.wait_passed(epoch - 1)
    return sent, results, time.perf_counter() - start


def _plain() -> tuple[Callable[..., None], Callable[..., int]]:
    """The compiled loops: a table of all keys; and what a batch of one stream does."""
    from numba import njit

    @njit
    def make(domain, table):  # type: ignore[no-untyped-def]
        for key in range(domain):
            at = np.int64(mix(np.uint64(key))) & (table.size - 1)
            while table[at] >= 0:
                at = (at + 1) & (table.size - 1)
            table[at] = key

    @njit
    def join(keys, values, low, end, table, mine, theirs, rows, others, out):  # type: ignore[no-untyped-def]
        """Rows are numbered, as many at each time: those from `low` on are in the window."""
        found, most, room = 0, table.size - 1, rows.shape[0] - 1
        for i in range(keys.size):
            at = np.int64(mix(np.uint64(keys[i]))) & most
            while table[at] != keys[i]:
                at = (at + 1) & most
            row = (end + i) & room
            rows[row, 0], rows[row, 1], rows[row, 2] = mine[at], keys[i], values[i]
            mine[at] = end + i
            number = theirs[at]
            while number >= low:
                other = number & room
                out[0, found], out[1, found] = keys[i], values[i]
                out[2, found], out[3, found] = others[other, 1], others[other, 2]
                found += 1
                number = others[other, 0]
        return found

    return make, join


def plain_loop(pairing: Pairing, seconds: float) -> tuple[int, int, float]:
    """The same without an engine: one table of all keys, made beforehand, and chains of rows in two rings."""
    make, join = _plain()
    room = 1 << (pairing.size * (pairing.window + 2)).bit_length()
    table = np.full(1 << (2 * pairing.domain).bit_length(), -1, np.int64)
    make(pairing.domain, table)
    heads = [np.full(len(table), -1, np.int64) for _ in range(2)]
    rings = [np.zeros((room, 3), np.int64) for _ in range(2)]
    pools = [pairing.batches(seed) for seed in range(2)]
    out = np.zeros((4, 8 * pairing.size), np.int64)
    sent, found, start, epoch, filled = 0, 0, 0.0, 0, 2 * pairing.window
    while epoch <= filled or time.perf_counter() - start < seconds:
        if epoch == filled:
            sent, found, start = 0, 0, time.perf_counter()
        for side in range(2):
            batch, low = pools[side][epoch % POOL], max(0, epoch - pairing.window) * pairing.size
            found += join(
                batch["key"], batch["value"], low, epoch * pairing.size, table, heads[side], heads[1 - side],
                rings[side], rings[1 - side], out,
            )  # fmt: skip
        sent += 2 * pairing.size
        epoch += 1
    return sent, found, time.perf_counter() - start


def polars_join(pairing: Pairing, repeats: int) -> tuple[int, float]:
    """One window of both streams, joined at once by polars, on all its threads: records, and the least seconds."""
    frames: list[Any] = [
        Columns.concat(pairing.batches(seed)[: pairing.window]).to_polars() for seed in range(2)
    ]
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        frames[0].join(frames[1], on="key")
        best = min(best, time.perf_counter() - start)
    return 2 * pairing.size * pairing.window, best


# Latency


@dataclass(frozen=True)
class PlanLoad:
    """Four streams at so many records a second together, each over so many keys, joined within so many epochs."""

    rate: int
    keys: int
    window: int
    epoch: float = 0.02
    bins: int = 64
    budget: int = 1 << 11

    @property
    def change(self) -> int:
        """The epoch at which the plan changes: the window has been full for a while."""
        return round(2.2 * self.window)

    @property
    def seconds(self) -> float:
        """How long a run takes."""
        return (self.change + 1.4 * self.window) * self.epoch


def strategies() -> dict[str, Strategy]:
    """Those that are compared, by name."""
    return {"all at once": megaphone.all_at_once(), "bin by bin": megaphone.fluid()}


async def open_loop(
    worker: dataflow.Worker, load: PlanLoad, method: str, strategy: str
) -> tuple[Recording, list[int], list[int]]:
    """One worker's recording of a run in which the plan changes once, and what the host withheld, by time."""
    query = megaphone.plans.Query(tuple("abcd"), load.window, on="key")
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        made = {name: scope.input(name) for name in query.streams}
        joined = megaphone.window_join(
            configuration, {name: stream for name, (_, stream) in made.items()}, query, plan=OLD, bins=load.bins,
            budget=load.budget,
        )  # fmt: skip
        probe = joined.probe()
    controller = megaphone.Controller(control, joined, lead=1)
    rng = np.random.default_rng(worker.index)
    usual, rare = (rng.integers(0, keys, 1 << 20) for keys in (load.keys, RARE * load.keys))
    schedule = harness.LoadSchedule(load.rate, load.seconds, load.epoch, worker.peers)
    episodes = harness.Episodes()
    asked = [False]
    log = HostLog()

    def send(epoch: int, low: int, high: int) -> None:
        log.look(loop.elapsed())
        size = (high - low) // 4
        scarce = "a" if epoch < load.change else "d"
        for place, (name, (handle, _)) in enumerate(made.items()):
            at = (low // 4 + place * 7919) % (len(usual) - size)
            keys = (rare if name == scarce else usual)[at : at + size]
            handle.send(Columns.trusted({"key": keys, "value": keys}, size))
        if worker.index == 0 and epoch >= load.change and not asked[0]:
            asked[0] = True
            controller.replan(megaphone.Replan(NEW, method=method), strategies()[strategy])
            episodes.begin(f"{method}, {strategy}")
        if episodes.under_way is not None and epoch >= load.change + 1.2 * load.window:
            episodes.end()

    inputs: list[Input] = [*(handle for handle, _ in made.values()), controller]
    loop = harness.OpenLoop(
        worker, schedule, send, probe, inputs=inputs, episodes=episodes, outstanding=1000, coalesce=True
    )
    recording = await loop.run()
    log.look(loop.elapsed())
    return recording, log.at, log.withheld


@dataclass(frozen=True)
class PlanOutcome:
    """A run in which the plan changed. `calm`: the greatest latencies before and during that, in ms, without those of
    epochs that the host held up: a share of all."""

    outcome: harness.Outcome
    calm: tuple[float, float]
    held_up: float


def measure(load: PlanLoad, method: str, strategy: str, workers: int = 1) -> PlanOutcome:
    """The outcome of such a run. Latency counts from the end of a record's epoch."""
    runs = dataflow.execute(open_loop, load, method, strategy, workers=workers)
    warmup = 1.2 * load.window * load.epoch
    outcome = harness.Outcome.of([run for run, _, _ in runs], warmup=warmup, window=0.1, since="epoch end")
    begin, end = outcome.migrations[0].episode.begin, outcome.migrations[0].episode.end
    begins = np.arange(outcome.schedule.epochs) * outcome.schedule.epoch_ns
    most, held = [0.0, 0.0], []
    for recording, at, withheld in runs:
        done, _ = completions(recording)
        held.append(held_up(begins, done, HostLog(at, withheld)))
        before = (begins >= warmup * SECOND) & (done <= begin)
        during = (done > begin) & (begins < (outcome.schedule.length_ns if end is None else end))
        for phase, which in enumerate((before, during)):
            late = (done - begins - outcome.schedule.epoch_ns)[which & ~held[-1]]
            most[phase] = max(most[phase], float(late.max(initial=0)) / 1e6)
    return PlanOutcome(outcome, (most[0], most[1]), float(np.mean(held)))
