"""Runs a program on two processes, as fast as it goes: with the loop on, under hashing, or ideally; and measures it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dataflow
import megaphone
from bench.experiments.skew.programs import BINS, PROGRAMS, WORKERS, Shape, Steered, homes
from megaphone.migration.strategies import Strategy
from planners.loop import Driver, Loop
from planners.loop.planning import TABLE, Rebalancer, by_keys
from planners.rebalance import min_table, mixed, readj

PLANNERS: dict[str, Rebalancer] = {"Mixed": mixed, "MinTable": min_table, "Readj": readj}
MERGES = 10  # PKG merges its partial counts once in so many epochs


@dataclass(frozen=True)
class SkewStream:
    """Which data flow, and what balances them.

    `mode`: a planner's name, "hashing", "ideal" (keys are shuffled) or "PKG".
    """

    mode: str
    data: str = "zipf"
    theta: float = 0.08
    table: int = TABLE  # N_A
    cost: float = 25e-6
    spare: int | None = None  # the epoch from which on worker 1, which starts empty, may be used
    joins: int | None = None  # the epoch at which one more worker is asked for
    shape: Shape = field(default_factory=Shape)

    def but(self, **changes: Any) -> SkewStream:
        """With other fields, of its own or of its shape."""
        own = {name: changes.pop(name) for name in list(changes) if name not in Shape.__dataclass_fields__}
        return replace(self, shape=replace(self.shape, **changes), **own)

    def made(self) -> SkewStream:
        """The stream to run: some modes have a program or a shape of their own."""
        if self.mode == "ideal":
            return self.but(shuffled=True)
        if self.mode == "PKG":
            longer = {"epochs": self.shape.epochs // MERGES, "records": self.shape.records * MERGES}
            spare = None if self.spare is None else self.spare // MERGES
            return self.but(data=f"{self.data}, split", spare=spare, **longer)
        return self

    @property
    def settled(self) -> float:
        """The share of the stream that is not counted: half of its first interval, in which the loop mends what
        hashing did."""
        return 0.5 / self.shape.intervals


@dataclass(frozen=True)
class SkewOutcome:
    """What was measured: by epoch, when it was done and how long it took, in seconds, and its records; and what the
    loops decided."""

    done: list[float]
    latencies: list[float]
    records: list[int]
    decisions: list[str]
    acted: int

    def throughput(self, start: float = 0.0, end: float = 1.0) -> float:
        """Records per second from one share of the stream to another."""
        first, last = (round(share * (len(self.done) - 1)) for share in (start, end))
        return sum(self.records[first + 1 : last + 1]) / (self.done[last] - self.done[first])

    def latency(self, start: float) -> float:
        """The median, in milliseconds, from a share of the stream on."""
        return 1e3 * float(np.median(self.latencies[round(start * len(self.latencies)) :]))

    def timeline(self, points: int) -> list[tuple[float, float, float]]:
        """So many stretches of the stream, or as many as there are epochs: the share up to which each goes, its end in
        seconds, and its throughput."""
        shares = np.linspace(0, 1, min(points, len(self.done) - 1) + 1)
        return [
            (float(end), self.done[round(end * (len(self.done) - 1))], self.throughput(start, end))
            for start, end in pairwise(shares)
        ]


def hashing_share(stream: SkewStream) -> float:
    """What share of the ideal hashing can reach with counts of words: the mean load over that of the most loaded."""
    shape = stream.shape
    words = [tables["words"]["word"] for tables in PROGRAMS[stream.data].epochs(shape)]
    shares = [_greatest(np.concatenate(words[i : i + shape.epochs])) for i in range(0, len(words), shape.epochs)]
    return float(1 / np.mean(shares))


def _greatest(keys: NDArray[np.int64]) -> float:
    loads = np.bincount(homes(int(keys.max()) + 1)[keys], minlength=WORKERS)
    return float(loads.max() / loads.mean())


async def main(worker: dataflow.Worker, stream: SkewStream) -> SkewOutcome:
    """One worker's run, with a few epochs outstanding. A worker that joins sends nothing: it takes over bins."""
    program = PROGRAMS[stream.data]
    epochs = [*program.epochs(stream.shape)] if worker.index < WORKERS else []
    with worker.dataflow() as scope:
        made = {name: scope.input(name) for name in program.inputs}
        keep = Steered(scope, stream.cost, stream.shape.window)
        probe = program.build({name: records for name, (_, records) in made.items()}, keep).probe()
    controllers = [megaphone.Controller(control, operator) for control, operator in keep.made]
    drivers = [_driver(controller, stream) for controller in controllers] if worker.index == 0 else []
    now = 0
    keep.alone = lambda: stream.spare is not None and now < stream.spare
    if stream.spare is not None and worker.index == 0:
        for control, _ in keep.made:
            control.send([megaphone.Assign((0,) * BINS)], at=0)
    done, sent, ahead = [], [], 2
    for epoch in range(worker.resume_at, stream.shape.intervals * stream.shape.epochs):
        now = epoch
        sent.append(time.perf_counter())
        for name, columns in epochs[epoch].items() if epochs else ():
            made[name][0].send({of: column[worker.index :: WORKERS] for of, column in columns.items()})
        if worker.index == 0 and epoch == stream.joins:
            worker.scale(WORKERS + 1)
        for driver in drivers:
            if driver is not None and (stream.spare is None or epoch >= stream.spare):
                driver.step()
        for controller in controllers:
            controller.advance_to(epoch + 1)
        for handle, _ in made.values():
            handle.advance_to(epoch + 1)
        if epoch >= ahead:
            await probe.wait_passed(epoch - ahead)
            done.append(time.perf_counter())
    latencies = [end - begin for begin, end in zip(sent, done, strict=False)]
    records = [sum(len(next(iter(columns.values()))) for columns in tables.values()) for tables in epochs[: len(done)]]
    decisions = [decision for driver in drivers if driver is not None for decision in driver.decisions]
    told, acted = [str(decision) for decision in decisions], sum(decision.acts for decision in decisions)
    return SkewOutcome([at - done[0] for at in done], latencies, records, told, acted)


def _driver(controller: megaphone.Controller, stream: SkewStream) -> Driver[Strategy] | None:
    if stream.mode not in PLANNERS:
        return None
    planner = by_keys(PLANNERS[stream.mode], stream.theta, stream.table)
    loop = Loop(planner)
    return Driver(controller, loop, strategy=megaphone.all_at_once())


def measure(stream: SkewStream) -> SkewOutcome:
    """Runs it on two processes; what worker 0 saw."""
    return dataflow.execute(main, stream.made(), workers=WORKERS)[0]
