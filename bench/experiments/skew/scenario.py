"""The synthetic workload of section V, planned interval after interval: what figures average over."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.skew import consistent, fluctuate, frequencies, hashed
from planners.loop.planning import Rebalancer
from planners.rebalance import RebalancePlan, min_mig, min_table, mixed

PLANNERS: dict[str, Rebalancer] = {"Mixed": mixed, "MinTable": min_table, "MinMig": min_mig}
SIGNS = {
    "keys": "K",
    "z": "z",
    "f": "f",
    "theta": "θ",
    "beta": "β",
    "window": "w",
    "instances": "N_D",
    "table": "N_A",
}


@dataclass(frozen=True)
class Scenario:
    """Parameters as in Table II; the defaults are those that a figure does not vary."""

    keys: int = 100_000
    z: float = 0.85
    f: float = 1.0
    theta: float = 0.08
    beta: float = 1.5
    window: int = 5
    instances: int = 15
    table: int | None = 3_000
    records: float = 10_000_000
    intervals: int = 10
    seed: int = 1
    ring: bool = False  # whether h is consistent hashing

    @property
    def home(self) -> NDArray[np.int32]:
        """Where h puts each key."""
        return (consistent if self.ring else hashed)(self.keys, self.instances, self.seed)

    def but(self, **changes: Any) -> Scenario:
        return replace(self, **changes)

    def label(self, *varied: str) -> str:
        """What is held fixed, for the picture's caption."""
        fixed = [f"{sign} = {getattr(self, name):,}" for name, sign in SIGNS.items() if name not in varied]
        mean = "" if "intervals" in varied else f", mean of {self.intervals} intervals"
        return ", ".join(fixed) + f"; {self.records / 1e6:g} M records an interval{mean}"


@dataclass(frozen=True)
class Adjustment:
    """One plan, and how long it took."""

    plan: RebalancePlan
    seconds: float  # of CPU: planners have one thread, and the machine is shared


def adjustments(scenario: Scenario, planner: Rebalancer, **more: object) -> list[Adjustment]:
    """A plan at the end of every interval after the window has filled; the next interval runs on it."""
    rng = np.random.default_rng(scenario.seed)
    home = scenario.home
    current = home
    frequency = frequencies(scenario.keys, scenario.z, scenario.records, rng)
    history: deque[NDArray[np.float64]] = deque(maxlen=scenario.window)
    beta = {} if planner is min_table else {"beta": scenario.beta}
    found = []
    for interval in range(scenario.window - 1 + scenario.intervals + 1):
        history.append(frequency)
        if interval >= scenario.window - 1:
            start = time.thread_time()
            plan = planner(
                frequency,
                sum(history),
                home=home,
                current=current,
                instances=scenario.instances,
                theta=scenario.theta,
                table=scenario.table,
                **beta,
                **more,
            )
            found.append(Adjustment(plan, time.thread_time() - start))
            current = plan.assignment
        frequency = fluctuate(frequency, current, scenario.instances, scenario.f, rng)
    return found[1:]  # the first repairs what hashing did, and may compile


def mean_cost(found: list[Adjustment]) -> float:
    """Migration cost in percent of all state."""
    return 100 * float(np.mean([adjustment.plan.moved_share for adjustment in found]))


def mean_skewness(found: list[Adjustment]) -> float:
    """The greatest load over the mean that plans leave."""
    return float(np.mean([adjustment.plan.skewness for adjustment in found]))


def median_ms(found: list[Adjustment]) -> float:
    """Generation time, the median in milliseconds of CPU."""
    return 1e3 * float(np.median([adjustment.seconds for adjustment in found]))
