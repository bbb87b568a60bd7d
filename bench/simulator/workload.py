"""What a simulated run has to do: records over time, which bins they are for, and how much state bins have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.simulator.costs import Floats

Rate = float | Callable[[float], float]  # records a second of all workers together; or that, by second


@dataclass(frozen=True)
class SimulatedLoad:
    """`seconds` of records in epochs. `bins` are finest ones, with `state` bytes together."""

    rate: Rate
    seconds: float
    bins: int
    state: float
    epoch: float = 0.001
    record: int = 16  # bytes of one on its way
    report: float = 0.25  # seconds from one report of statistics to the next
    outstanding: int = 1000  # epochs that are sent and not complete
    lead: int = 2  # epochs by which the control stream is ahead
    closed: bool = False  # an epoch is sent when there is room, and not when it is due
    snapshots: float | None = None  # seconds from one to the next
    disk: float = 200e6  # bytes a second that a worker can write

    @property
    def epochs(self) -> int:
        """How many there are."""
        return round(self.seconds / self.epoch)

    def records(self, epoch: int) -> float:
        """Of an epoch, all workers together."""
        rate = self.rate if isinstance(self.rate, int | float) else self.rate(epoch * self.epoch)
        return rate * self.epoch

    @property
    def even(self) -> Floats:
        """By bin, its share of the records, or of the state, where all have as many."""
        return np.full(self.bins, 1 / self.bins)


def zipf_shares(bins: int, exponent: float, keys: int, seed: int = 1) -> Floats:
    """By bin, its share of the records, where keys are Zipf-distributed and lie in bins by chance."""
    weights = np.arange(1, keys + 1, dtype=float) ** -exponent
    homes = np.random.default_rng(seed).integers(0, bins, keys)
    return np.asarray(np.bincount(homes, weights, bins) / weights.sum())
