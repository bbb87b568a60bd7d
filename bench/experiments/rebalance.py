"""What a rebalancing plan costs, by number of keys, on keys and in compact form; and the heavy-key sketch."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from bench.registry import benchmark
from bench.run import Run
from bench.skew import fluctuate, frequencies, hashed, sample, zipf
from bench.timing import best_of
from planners.rebalance import RebalancePlan, llfd, min_mig, min_table, mixed, pkg
from planners.rebalance.sketch import SpaceSaving

INSTANCES = 40
PLANNERS: dict[str, Callable[..., RebalancePlan]] = {
    "mixed, on keys": mixed,
    "mixed, compact R = 8": partial(mixed, r=3),
    "min_mig, on keys": min_mig,
    "min_table, on keys": min_table,
    "llfd, on keys": llfd,
}


@benchmark("rebalance", "plans on 40 instances, 5,000 to 5,000,000 keys (aims at a million: 200 ms, compact 50 ms)")
def rebalance(run: Run) -> None:
    repeats = 3 if run.quick else 7
    for keys in run.each("keys", [5_000, 50_000, 500_000, 1_000_000] + [5_000_000] * (not run.quick)):
        case = _case(keys)
        costs = case["cost"]
        sort = best_of(repeats, partial(np.argsort, costs)) * 1e3
        for name, planner in PLANNERS.items():
            planner(**case)  # compiles
            best = best_of(repeats, partial(planner, **case))
            run.report(f"{name}: {keys:,} keys, against sorting them once", best * 1e3, "ms", baseline=sort)
            run.report(f"{name}: {keys:,} keys, CPU alone", _cpu(repeats, partial(planner, **case)) * 1e3, "ms")


def _cpu(repeats: int, body: Callable[[], object]) -> float:
    """The least seconds of CPU: planners have one thread, and what others do on the machine is not theirs."""
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        body()
        seconds.append(time.thread_time() - start)
    return min(seconds)


class Case(TypedDict):
    """What a planner is asked."""

    cost: NDArray[np.float64]
    state: NDArray[np.float64]
    home: NDArray[np.int32]
    current: NDArray[np.int32]
    instances: int
    theta: float
    table: int


def _case(keys: int) -> Case:
    """An interval after a change, on a table that an earlier plan has filled."""
    rng = np.random.default_rng(1)
    home = hashed(keys, INSTANCES)
    before = frequencies(keys, 0.85, 10.0 * keys, rng)
    case = Case(cost=before, state=before, home=home, current=home, instances=INSTANCES, theta=0.08, table=3_000)
    current = mixed(**case).assignment
    cost = np.ceil(fluctuate(before, current, INSTANCES, 1.0, rng))
    return {**case, "cost": cost, "state": cost + np.ceil(before), "current": current}


@benchmark("sketch", "the heavy-key sketch and PKG's router, per record, against counting dense keys with numpy")
def sketch(run: Run) -> None:
    records = 1_000_000 if run.quick else 10_000_000
    rng = np.random.default_rng(2)
    for z in run.each("skew", [0.0, 0.85, 1.2]):
        keys = sample(zipf(1_000_000, z), records, rng)
        dense = best_of(3, partial(np.bincount, keys)) / records * 1e9
        for capacity in (256, 4096):
            counting = SpaceSaving(capacity)
            counting.update(keys[:1000])
            best = best_of(3, partial(counting.update, keys)) / records * 1e9
            run.report(f"{capacity} keys, z = {z}: a record", best, "ns", baseline=dense)
        router = pkg(INSTANCES)
        router.route(keys[:1000])
        best = best_of(3, partial(router.route, keys)) / records * 1e9
        run.report(f"PKG, z = {z}: a record", best, "ns", baseline=dense)
