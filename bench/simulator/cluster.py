"""Machines that are not here: how many workers on how many cores, what joins them, and who is slow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.simulator.costs import Floats

GIGABIT = 1e9 / 8  # bytes a second


@dataclass(frozen=True)
class SimulatedCluster:
    """`workers` at most, so many on each machine. Links are between machines: workers of one share memory."""

    workers: int
    per_machine: int = 4
    cores: int = 4  # of a machine, for workers: with fewer than these, they take turns
    bandwidth: float = 10 * GIGABIT  # of a machine, each way
    delay: float = 50e-6  # seconds from one machine to another
    slow: Mapping[int, float] = field(default_factory=dict)  # by worker, how many times as long its work takes
    speed: float = 1.0  # of a core, where one of the machine on which costs were measured has 1

    @property
    def machines(self) -> int:
        """How many there are."""
        return -(-self.workers // self.per_machine)

    @property
    def shares_cores(self) -> bool:
        """Whether workers have to take turns."""
        return min(self.workers, self.per_machine) > self.cores

    @property
    def machine_of(self) -> NDArray[np.int64]:
        """By worker, its machine."""
        return np.arange(self.workers) // self.per_machine

    @property
    def slowness(self) -> Floats:
        """By worker, how many times as long work takes as where costs were measured."""
        factors = np.full(self.workers, 1 / self.speed)
        for worker, factor in self.slow.items():
            factors[worker] *= factor
        return factors


def this_machine(workers: int, cores: int = 2) -> SimulatedCluster:
    """All workers on one machine, as where costs are measured."""
    return SimulatedCluster(workers, workers, cores)
