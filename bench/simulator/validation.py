"""The same runs, real and simulated, side by side: throughput, latency and migrations on 2 to 16 workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from bench.counting import halved, strategy_of
from bench.simulator.clockwork import Hook, SimulatedRun
from bench.simulator.cluster import this_machine
from bench.simulator.costs import MeasuredCosts
from bench.simulator.probing import RECORD_BYTES, ROW, ClosedProbe, Observations, OpenProbe
from bench.simulator.workload import SimulatedLoad
from megaphone.harness import Outcome

CORES = 2  # of the machine where real runs are
BOUND = 0.2  # errors that are allowed
EPOCHS = 200  # of a simulated closed loop

MOVES = ("batched", "batched", "all-at-once", "all-at-once", "within 20 ms", "within 20 ms", "fluid", "fluid")
CLOSED = [
    ClosedProbe(workers, records, domain)
    for workers, records in ((2, 1024), (2, 32768), (4, 1024), (4, 16384), (8, 8192), (16, 512), (16, 4096))
    for domain in (1 << 23,)
]
OPEN = [
    OpenProbe(2, 2_000_000, 0.001, 1 << 25, 1 << 10, MOVES, calm=1.0),
    OpenProbe(4, 1_000_000, 0.005, 1 << 25, 1 << 9, MOVES, calm=1.6),
    OpenProbe(8, 1_000_000, 0.010, 1 << 25, 1 << 8, MOVES, calm=2.0),
    OpenProbe(16, 1_000_000, 0.025, 1 << 25, 1 << 8, MOVES[:6], calm=2.0),
]


@dataclass(frozen=True)
class Prediction:
    """One number: as it was, and as it was predicted."""

    name: str
    unit: str
    real: float
    simulated: float

    @property
    def error(self) -> float:
        """By which share the prediction is too high, or, if negative, too low."""
        return self.simulated / self.real - 1

    @property
    def holds(self) -> bool:
        """Whether it is within the bound."""
        return abs(self.error) <= BOUND


def simulated_closed(probe: ClosedProbe, costs: MeasuredCosts) -> float:
    """Seconds that an epoch of a closed loop takes."""
    load = SimulatedLoad(
        probe.records * probe.workers, EPOCHS, probe.bins, probe.domain * ROW,
        epoch=1.0, record=RECORD_BYTES, outstanding=probe.outstanding, closed=True, report=1e9,
    )  # fmt: skip
    run = SimulatedRun(this_machine(probe.workers, CORES), costs, load).run()
    half = EPOCHS // 2  # what is counted are whole rounds of what is outstanding
    return (run.done[-1] - run.done[half - 1]) / half


def simulated_open(probe: OpenProbe, costs: MeasuredCosts) -> Outcome:
    """The outcome of an open loop."""
    load = SimulatedLoad(
        float(probe.rate), probe.seconds, probe.bins, probe.domain * ROW, probe.epoch, record=RECORD_BYTES
    )
    run = SimulatedRun(this_machine(probe.workers, CORES), costs, load, [migrating(probe)])
    return run.run().outcome(min(1.0, probe.first / 2))


def migrating(probe: OpenProbe) -> Hook:
    """Begins the migrations of a probe when they are due: away, back, away, ..."""
    todo, away = list(probe.migrations), False

    def hook(run: SimulatedRun) -> None:
        nonlocal away
        if not todo or run.now < todo[0][0] or run.controller.busy:
            return
        _, name = todo.pop(0)
        away = not away
        homes = np.arange(probe.bins) % probe.workers
        run.controller.migrate(
            halved(probe.bins, workers=probe.workers) if away else homes, strategy_of(name, probe.batch)
        )
        run.episodes.begin(name)

    return hook


def compare_closed(seen: Observations, probe: ClosedProbe, costs: MeasuredCosts, rounds: int) -> Prediction:
    """Throughput of a closed loop, the median of some runs."""
    real = seen.epoch(probe, rounds)
    records = probe.records * probe.workers / 1e6
    name = f"{probe.workers} workers, {probe.records:,} records an epoch each"
    return Prediction(name, "M records/s", records / real, records / simulated_closed(probe, costs))


def compare_open(seen: Observations, probe: OpenProbe, costs: MeasuredCosts, rounds: int) -> Iterator[Prediction]:
    """Latency while nothing moves; and by strategy how long a migration takes, and the maximum latency meanwhile."""
    real, predicted = seen.opened(probe, rounds), simulated_open(probe, costs)
    name = f"{probe.workers} workers, {probe.rate / 1e6:g} M/s, {probe.epoch * 1000:g} ms epochs, {probe.bins} bins"
    steady = [outcome.migrations[0].before.quantile(0.5) / 1e6 for outcome in (*real, predicted)]
    yield Prediction(f"{name}: median latency", "ms", median(steady[:-1]), steady[-1])
    for strategy in dict.fromkeys(probe.strategies):
        for what, look in (("takes", _seconds), ("maximum latency", _greatest)):
            was = [value for outcome in real for value in look(outcome, strategy)]
            said = list(look(predicted, strategy))
            if was and said:
                yield Prediction(f"{name}: {strategy} {what}", "ms", median(was), median(said))


def _seconds(outcome: Outcome, strategy: str) -> list[float]:
    found = [each.episode.seconds for each in outcome.migrations if each.episode.name == strategy]
    return [1000 * seconds for seconds in found if seconds is not None]


def _greatest(outcome: Outcome, strategy: str) -> list[float]:
    mine = [each for each in outcome.migrations if each.episode.name == strategy and len(each.during)]
    return [each.during.greatest / 1e6 for each in mine]
