"""A skewed stream on two processes: counts by key, an artificial cost per record, with the loop or without.

The cost is a wait, not work: each worker is busy for `cost` seconds per record that it applies, as an instance with its
own core would be. So the imbalance of two workers shows on a machine that others use, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.columns.hashing import mix_all
from dataflow.columns.pacts import key_words
from planners.loop import Driver, Loop
from planners.observation import by_keys
from planners.rebalance import min_table, mixed, readj
from planners.workloads import intervals, sample, social, stock

BINS, SHIFT, WORKERS = 256, 56, 2
PLANNERS: dict[str, Callable[..., Any]] = {"Mixed": mixed, "MinTable": min_table, "Readj": readj}


@dataclass(frozen=True)
class Stream:
    """What flows, and under what. `mode`: a planner's name, "hashing", or "ideal" (keys are shuffled)."""

    mode: str
    data: str = "zipf"  # or "social", "stock"
    z: float = 1.0
    f: float = 0.5
    theta: float = 0.08
    keys: int = 10_000
    intervals: int = 3
    epochs: int = 150  # of an interval
    records: int = 2_000  # of an epoch, by all workers
    cost: float = 25e-6
    spare: int | None = None  # the epoch from which on worker 1, which starts empty, may be used
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What was measured: when each epoch was done, in seconds, and how long it took; what the loop decided."""

    done: list[float]
    latencies: list[float]
    decisions: list[str]
    acted: int

    def throughput(self, records: int, skip: int) -> float:
        """Records per second after so many epochs."""
        return (len(self.done) - 1 - skip) * records / (self.done[-1] - self.done[skip])


def homes(keys: int) -> Any:
    """Where hashing puts each key: the worker of its bin."""
    hashes = np.empty(keys, np.uint64)
    mix_all(np.arange(keys, dtype=np.uint64), hashes)
    return ((hashes >> np.uint64(SHIFT)) % np.uint64(WORKERS)).astype(np.int32)


def source(stream: Stream) -> Any:
    """By interval, the keys of all its records, the same on every worker."""
    each = stream.epochs * stream.records
    if stream.data == "social":
        yield from (part["word"] for part in social(each, words=stream.keys, intervals=stream.intervals))
        return
    if stream.data == "stock":
        yield from (part["stock"] for part in stock(each, intervals=stream.intervals))
        return
    rng = np.random.default_rng(stream.seed)
    made = intervals(
        stream.keys, stream.z, stream.f, assignment=homes(stream.keys), instances=WORKERS, records=each,
        seed=stream.seed,
    )  # fmt: skip
    for _ in range(stream.intervals):
        yield sample(next(made), each, rng)


def hashing_share(stream: Stream) -> float:
    """What share of the ideal hashing can reach: the mean load over that of the most loaded worker."""
    shares = []
    for keys in source(stream):
        loads = np.bincount(homes(int(keys.max()) + 1)[keys], minlength=WORKERS)
        shares.append(loads.max() / loads.mean())
    return float(1 / np.mean(shares))


def counting(cost: float) -> Any:
    """Counts by key, at a cost."""

    def fold(now: int, batch: Columns, state: Any, notificator: Any) -> None:
        np.add.at(state["count"], state.rows(key_words(batch["key"])), 1)
        time.sleep(cost * len(batch))

    return fold


async def main(worker: dataflow.Worker, stream: Stream) -> Outcome:
    """One worker's run, as fast as it goes, with a few epochs outstanding."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, records = scope.input("data")
        counts = megaphone.unary(
            configuration, records, key="key", fold=counting(stream.cost), state={"count": "i8"}, bins=BINS,
            interval=0.1,
        )  # fmt: skip
        probe = counts.probe()
    controller = megaphone.Controller(control, counts)
    driver = None
    if stream.mode in PLANNERS and worker.index == 0:
        planner = by_keys(PLANNERS[stream.mode], stream.theta)
        driver = Driver(controller, Loop(planner, patience=1, cool_down=2), strategy=megaphone.all_at_once())
    if stream.spare is not None and worker.index == 0:
        control.send([megaphone.Assign((0,) * BINS)], at=0)
    done: list[float] = []
    sent: list[float] = []
    rng = np.random.default_rng(worker.index)
    epoch, ahead = 0, 2
    for keys in source(stream):
        for part in np.split(keys, stream.epochs):
            mine = part[worker.index :: worker.peers]
            if stream.mode == "ideal":
                mine = rng.integers(0, stream.keys, len(mine))
            sent.append(time.perf_counter())
            data.send({"key": mine.astype(np.int64)})
            if driver is not None and (stream.spare is None or epoch >= stream.spare):
                driver.step()
            epoch += 1
            controller.advance_to(epoch)
            data.advance_to(epoch)
            if epoch > ahead:
                await probe.wait_passed(epoch - 1 - ahead)
                done.append(time.perf_counter())
    latencies = [end - begin for begin, end in zip(sent, done, strict=False)]
    decisions = [] if driver is None else driver.decisions
    start = done[0]
    return Outcome([at - start for at in done], latencies, [str(d) for d in decisions], sum(d.acts for d in decisions))


def measure(stream: Stream) -> Outcome:
    """Runs it on two processes; what worker 0 saw."""
    result: Outcome = dataflow.execute(main, stream, workers=WORKERS)[0]
    return result
