"""From real runs to costs: each number is taken from runs that differ in what it is about.

Runs of one to eight workers are used. Those of sixteen, and other rates and sizes, say whether the model is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from bench.simulator.costs import MeasuredCosts
from bench.simulator.probing import RECORD_BYTES, ROW, ClosedProbe, Observations, OpenProbe
from bench.simulator.validation import CORES, simulated_open
from megaphone.harness import Outcome

STATES = tuple(1 << power for power in (20, 23, 26, 29, 31))
EPOCHS = tuple((workers, records) for workers in (1, 2, 4, 8) for records in (0, 256, 4096, 65536 // workers))
STEADY = OpenProbe(2, 1_000_000, 0.001, 1 << 23, 1 << 10)
TURNS = OpenProbe(8, 500_000, 0.010, 1 << 23, 1 << 8, ("all-at-once",) * 4)  # workers that take turns on cores
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
    epoch, wake, switch, peer, message, record, byte, crowd = _epochs(found)
    sizes, plain = zip(*kernels.apply, strict=True)
    here = float(np.interp(np.log2((1 << 23) * ROW), np.log2(sizes), plain))
    least = 0.1 * record
    apply = tuple((size, max(least, record - kernels.route + seconds - here)) for size, seconds in kernels.apply)
    turn = [seen.epoch(ClosedProbe(workers, 256, outstanding=1)) for workers in (1, 2)]
    wait = max(0.0, turn[0] - found[1, 256])
    hop = max(0.0, turn[1] - found[2, 256] - wait) / 2
    costs = MeasuredCosts(
        epoch, peer, message, kernels.route, apply, byte, hop, wait, step=0.0, bin=0.0, take=0.0, install=0.0,
        snapshot=_snapshot(seen, found[2, 4096]), start=START, wake=wake, switch=switch, crowd=crowd,
    )  # fmt: skip
    return _migrations(costs, seen)


CROWDS = np.arange(0.0, 1.5, 0.05)  # to which power records cost more where workers take turns


def _epochs(found: dict[tuple[int, int], float]) -> tuple[float, ...]:
    """Least squares of relative errors: an epoch, being woken, taking turns, each other worker, a message, a record, a
    byte that is sent; and how records grow dearer with workers that take turns, the best of many."""
    solved = [(*_solve(found, float(crowd)), float(crowd)) for crowd in CROWDS]
    _, costs, crowd = min(solved, key=lambda each: each[0])
    epoch, _, wake, switch, peer, message, record, byte = costs.tolist()
    return epoch, wake, switch, peer, message, record, byte, crowd


def _solve(found: dict[tuple[int, int], float], crowd: float) -> tuple[float, NDArray[np.float64]]:
    """The sum of squared errors, and the costs, none below zero: an epoch with records and one without come first."""
    rows = []
    for (workers, records), seconds in found.items():
        others, some = workers - 1, records > 0
        turns = max(1.0, workers / CORES)  # what a worker does takes so long by the clock
        dearer = turns**crowd
        sent = RECORD_BYTES * records * others / workers
        fixed = [float(some), float(not some), float(some and others > 0), float(some and turns > 1)]
        row = [*fixed, others, others * some, records * dearer, sent * dearer]
        rows.append([value * turns / seconds for value in row])
    matrix = np.array(rows)
    kept, rest = nnls(matrix, np.ones(len(rows)))
    return float(rest**2), kept


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
    costs = _turns(replace(costs, wait=max(0.0, wait)), seen)
    took = [median(durations(outcome)) for _, outcome in (large, small, many)]
    moved = [probe.domain * ROW / 4 for probe, _ in (large, small)]
    byte = max(0.0, (took[0] - took[1]) / (moved[0] - moved[1]))
    bins = max(0.0, took[2] - took[1]) / ((many[0].bins - small[0].bins) / 4)
    costs = replace(costs, take=byte, install=byte, bin=bins)
    costs = replace(costs, step=_step(costs, steps[0], median(durations(steps[1]) or [0.0])))
    said = median(durations(simulated_open(small[0], costs)))
    costs = replace(costs, pieces=max(0.0, took[1] - said))
    late = [_greatest_before(outcome) - outcome.total.quantile(0.5) / 1e9 for _, outcome in (small, many, steps)]
    return replace(costs, stall=max(0.0, median(late)))


def _turns(costs: MeasuredCosts, seen: Observations) -> MeasuredCosts:
    """How long workers wait for a core that others have, and how much longer now and then."""
    outcome = seen.opened(TURNS)[0]
    seconds = outcome.total.quantile(0.5) / 1e9
    bare = simulated_open(TURNS, costs).total.quantile(0.5) / 1e9
    swing = _greatest_before(outcome) / seconds - 1
    return replace(costs, slice=max(0.0, seconds - bare) / (1 - CORES / TURNS.workers), swing=max(0.0, swing))


def _greatest_before(outcome: Outcome) -> float:
    """The latency of the slowest epochs before a migration, in seconds: the median of several."""
    return median(migration.before.quantile(0.99) for migration in outcome.migrations) / 1e9


def _step(costs: MeasuredCosts, probe: OpenProbe, wanted: float) -> float:
    """What a step costs a worker, so that a migration in many steps takes as long as it did. By bisection."""
    low, high = 0.0, 0.004
    for _ in range(8):
        middle = (low + high) / 2
        took = durations(simulated_open(probe, replace(costs, step=middle)))
        low, high = (middle, high) if took and median(took) < wanted else (low, middle)
    return low
