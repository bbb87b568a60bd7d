"""From real runs to costs: each number is taken from runs that differ in what it is about.

Only runs of one, two and eight workers are used, so that those of four and sixteen can say whether the model is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench.simulator.costs import MeasuredCosts
from bench.simulator.probing import RECORD_BYTES, ROW, ClosedProbe, Observations, OpenProbe
from bench.simulator.validation import CORES, simulated_open
from megaphone.harness import Outcome

STATES = tuple(1 << power for power in (20, 23, 26, 29, 31))
EPOCHS = tuple((workers, records) for workers in (1, 2, 8) for records in (0, 256, 4096, 65536 // workers))
STEADY = OpenProbe(2, 1_000_000, 0.001, 1 << 23, 1 << 10)
MOVED = (
    OpenProbe(2, 1_000_000, 0.001, 1 << 26, 1 << 8, ("all-at-once",) * 4),
    OpenProbe(2, 1_000_000, 0.001, 1 << 24, 1 << 8, ("all-at-once",) * 4),
    OpenProbe(2, 1_000_000, 0.001, 1 << 24, 1 << 14, ("all-at-once",) * 4),
)
STEPS = OpenProbe(2, 1_000_000, 0.001, 1 << 23, 1 << 10, ("fluid",) * 2, calm=2.0)
SNAPSHOTS = 0.5  # seconds from one to the next
START = 1.0  # seconds from asking for workers until they take part: bench run growing


@dataclass(frozen=True)
class KernelCosts:
    """What was measured without any engine: see `probing`."""

    route: float
    apply: list[tuple[float, float]]


def fit(seen: Observations, kernels: KernelCosts) -> MeasuredCosts:
    """All costs, from runs that are made unless they have been."""
    found = {probe: seen.epoch(ClosedProbe(*probe)) for probe in EPOCHS}
    epoch, peer, message, record, byte, crowd = _epochs(found)
    sizes, plain = zip(*kernels.apply, strict=True)
    here = float(np.interp(np.log2((1 << 23) * ROW), np.log2(sizes), plain))
    least = 0.1 * record
    apply = tuple((size, max(least, record - kernels.route + seconds - here)) for size, seconds in kernels.apply)
    turn = [seen.epoch(ClosedProbe(workers, 256, outstanding=1)) for workers in (1, 2)]
    wait = max(0.0, turn[0] - found[1, 256])
    hop = max(0.0, turn[1] - found[2, 256] - wait) / 2
    costs = MeasuredCosts(
        epoch, peer, message, kernels.route, apply, byte, hop, wait, step=0.0, bin=0.0, take=0.0, install=0.0,
        snapshot=_snapshot(seen, found[2, 4096]), start=START, crowd=crowd,
    )  # fmt: skip
    return _migrations(costs, seen)


CROWDS = np.arange(1.0, 6.0, 0.1)  # how much longer things may take where workers take turns


def _epochs(found: dict[tuple[int, int], float]) -> tuple[float, float, float, float, float, float]:
    """Least squares of relative errors: an epoch, each other worker, a message, a record, a byte that is sent; and how
    many times as long all of it takes on more workers than cores, the best of many."""
    solved = [(*_solve(found, float(crowd)), float(crowd)) for crowd in CROWDS]
    _, costs, crowd = min(solved, key=lambda each: each[0])
    epoch, _, peer, message, record, byte = (max(0.0, float(value)) for value in costs)
    return epoch, peer, message, record, byte, crowd


def _solve(found: dict[tuple[int, int], float], crowd: float) -> tuple[float, NDArray[np.float64]]:
    """The sum of squared errors, and the costs: an epoch with records and one without come first."""
    rows = []
    for (workers, records), seconds in found.items():
        others, some = workers - 1, records > 0
        sent = RECORD_BYTES * records * others / workers
        row = [float(some), float(not some), others, others * some, records, sent]
        share = workers / CORES * crowd if workers > CORES else 1.0  # what a worker does takes so long by the clock
        rows.append([value * share / seconds for value in row])
    matrix = np.array(rows)
    solved, *_ = np.linalg.lstsq(matrix, np.ones(len(rows)), rcond=None)
    kept = np.maximum(solved, 0.0)
    return float(((matrix @ kept - 1) ** 2).sum()), kept


def _snapshot(seen: Observations, without: float) -> float:
    """Seconds of a worker for each byte of a snapshot."""
    probe = ClosedProbe(2, 4096, seconds=4.0, snapshots=SNAPSHOTS)
    more = seen.epoch(probe) / without - 1
    return max(0.0, more) * SNAPSHOTS / (probe.domain * ROW / probe.workers)


def durations(outcome: Outcome) -> list[float]:
    """Of all migrations but the first, which touches memory that later ones find ready."""
    ended = [migration.episode.seconds for migration in outcome.migrations]
    return [seconds for seconds in ended[1:] if seconds is not None]


def _migrations(costs: MeasuredCosts, seen: Observations) -> MeasuredCosts:
    steady, large, small, many, steps = ((probe, seen.opened(probe)[0]) for probe in (STEADY, *MOVED, STEPS))
    bare = simulated_open(steady[0], replace(costs, wait=0.0))
    wait = (steady[1].total.quantile(0.5) - bare.total.quantile(0.5)) / 1e9
    costs = replace(costs, wait=max(0.0, wait))
    took = [median(durations(outcome)) for _, outcome in (large, small, many)]
    moved = [probe.domain * ROW / 4 for probe, _ in (large, small)]
    byte = max(0.0, (took[0] - took[1]) / (moved[0] - moved[1]))
    bins = max(0.0, took[2] - took[1]) / ((many[0].bins - small[0].bins) / 4)
    costs = replace(costs, take=byte, install=byte, bin=bins / 2)
    return replace(costs, step=_step(costs, steps[0], median(durations(steps[1]) or [0.0])))


def _step(costs: MeasuredCosts, probe: OpenProbe, wanted: float) -> float:
    """What a step costs a worker, so that a migration in many steps takes as long as it did. By bisection."""
    low, high = 0.0, 0.004
    for _ in range(8):
        middle = (low + high) / 2
        took = durations(simulated_open(probe, replace(costs, step=middle)))
        low, high = (middle, high) if took and median(took) < wanted else (low, middle)
    return low
