"""What systems do that cannot migrate while they run, in our own engine: pause and resume, and replication.

- *Pause and resume* (Flink, Dhalion, SEEP): nothing is let into the operator any more; when what was in it is complete,
  all state moves at once; then what has waited is let in.
- *Replication* (ChronoStream, Gloss): what is to move runs at its new place, too, from the beginning. A migration is a
  switch between two results, and moves nothing; until then records of these keys are processed twice, and their state
  is there twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dataflow
import megaphone
from bench.counting import LEAD, Counter, CountLoad, Setup, build, count, feed, halved, load
from dataflow.columns import Columns
from dataflow.time.order import Time
from megaphone import harness

SOON = 4  # epochs from when a pause is announced until it begins


class Valve:
    """The input of an operator, and what waits before it while it is closed."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._waiting: list[Columns] = []
        self._until: Time = 0
        self.closes_at: Time | None = None

    @property
    def closed(self) -> bool:
        """Whether records wait outside."""
        return self.closes_at is not None and self._counter.keys.time >= self.closes_at

    def send(self, columns: Columns) -> None:
        """Lets records in, or has them wait."""
        if self.closed:
            self._waiting.append(columns)
        else:
            self._counter.keys.send(columns)

    def advance_to(self, time: Time) -> None:
        """Promises that nothing will come before a time; up to where it closes."""
        self._until = time
        self._counter.keys.advance_to(time if self.closes_at is None else min(time, self.closes_at))

    def open(self) -> None:
        """Lets everything in, at the time at which it was closed."""
        self.closes_at = None
        for columns in self._waiting:
            self._counter.keys.send(columns)
        self._waiting.clear()
        self._counter.keys.advance_to(self._until)


async def pausing(worker: dataflow.Worker, setup: Setup, load_: CountLoad) -> harness.Recording:
    """An open-loop run in which each migration pauses the operator. Every worker knows when they are."""
    counter = build(worker, setup)
    controller = counter.controller
    assert controller is not None
    first = await load(worker, counter)
    valve = Valve(counter)
    keys = counter.rng.integers(0, setup.domain, 1 << 22, dtype=np.uint64)
    ones = np.ones(1 << 16, np.int64)
    episodes = harness.Episodes()
    todo = [round(when / load_.epoch) for when, _ in load_.migrations]
    homes: Iterator[NDArray[np.int64]] = itertools.cycle((halved(setup.bins), np.arange(setup.bins) % 2))

    schedule = harness.LoadSchedule(load_.rate, load_.seconds, load_.epoch, worker.peers, first=first)

    def send(epoch: int, low: int, high: int) -> None:
        size, at = high - low, low % (len(keys) - len(ones))
        valve.send(Columns.trusted({"key": keys[at : at + size], "diff": ones[:size]}, size))
        if todo and epoch >= todo[0] and valve.closes_at is None:
            moves_at = schedule.time(todo.pop(0) + SOON)  # the same on all workers
            valve.closes_at, home = moves_at + 1, next(homes)
            if worker.index == 0:
                moved = np.flatnonzero(np.array(controller.configuration) != home)
                counter.control.send([megaphone.Moves(moved, home[moved])], at=moves_at)
                episodes.begin("pause and resume")
        elif valve.closed and valve.closes_at is not None and controller.passed(valve.closes_at - 1):
            valve.open()
            if worker.index == 0:
                episodes.end()

    return await harness.drive(
        worker, schedule, send, counter.probe, inputs=[valve, controller], episodes=episodes,
        outstanding=load_.outstanding, memory_every=0.05,
    )  # fmt: skip


def build_replicated(worker: dataflow.Worker, setup: Setup) -> Counter:
    """A count of dense keys, and a second one of those that are to move, at the worker that they are to move to. Of
    these keys the results of the second are taken."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        others, elsewhere = scope.input("control of the replica")
        records, stream = scope.input("records")
        moving = stream.columns.filter(lambda batch: batch["key"] & np.uint64(3) == 0)
        counts, replica = (
            megaphone.state_machine(
                where, of, key="key", value="diff", fold=count, bins=setup.bins, interval=setup.interval, name=name,
                keys=megaphone.dense(setup.domain),
            )
            for where, of, name in ((configuration, stream, "counts"), (elsewhere, moving, "replica"))
        )  # fmt: skip
        kept = counts.columns.filter(lambda batch: batch["key"] & np.uint64(3) != 0)
        probe = kept.concat(replica).probe()
    if worker.index == 0:
        others.send([megaphone.Assign(np.ones(setup.bins, np.int64))])
    controller = megaphone.Controller(control, counts, lead=LEAD)
    return Replicated(records, control, probe, controller, np.random.default_rng(worker.index), setup, others)


@dataclass
class Replicated(Counter):
    """A count with a replica, whose control input is advanced with the others."""

    others: dataflow.InputHandle

    def advance_to(self, epoch: int) -> None:
        """Promises that nothing will come before that epoch."""
        super().advance_to(epoch)
        self.others.advance_to(epoch + LEAD)


class _Advancing:
    """Both control inputs, for the driver."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def advance_to(self, time: Time) -> None:
        """Advances what is counted and what says where."""
        self._counter.advance_to(time)


async def replicating(worker: dataflow.Worker, setup: Setup, load_: CountLoad) -> harness.Recording:
    """An open-loop run with a replica of what is to move: a migration would be a switch, and cost nothing more."""
    counter = build_replicated(worker, setup)
    first = await load(worker, counter)
    keys = counter.rng.integers(0, setup.domain, 1 << 22, dtype=np.uint64)
    ones = np.ones(1 << 16, np.int64)

    def send(epoch: int, low: int, high: int) -> None:
        size, at = high - low, low % (len(keys) - len(ones))
        counter.keys.send(Columns.trusted({"key": keys[at : at + size], "diff": ones[:size]}, size))

    schedule = harness.LoadSchedule(load_.rate, load_.seconds, load_.epoch, worker.peers, first=first)
    return await harness.drive(
        worker, schedule, send, counter.probe, inputs=[_Advancing(counter)], outstanding=load_.outstanding,
        memory_every=0.05, coalesce=True,
    )  # fmt: skip


def throughput(setup: Setup, seconds: float, size: int) -> float:
    """Records a second with a replica of a quarter of the state, as many as are taken."""
    results = dataflow.execute(_as_fast_as_it_goes, setup, size, seconds, workers=2)
    return float(sum(sent / took for sent, took in results))


async def _as_fast_as_it_goes(worker: dataflow.Worker, setup: Setup, size: int, seconds: float) -> tuple[int, float]:
    return await feed(worker, build_replicated(worker, setup), size, seconds)
