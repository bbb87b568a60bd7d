"""What the loop sees of an operator in one interval, and what a planner proposes to do about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planners.loop.steering import Key, as_objects

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Observation:
    """Loads of an interval. Bins' loads are without those of keys that live apart from them."""

    workers: int
    places: Ints  # by bin, its worker
    cost: Floats  # by bin
    bytes: Floats  # by bin
    keys: NDArray[np.generic] = field(default_factory=lambda: np.empty(0, np.int64))  # heavy, each once
    key_cost: Floats = field(default_factory=lambda: np.empty(0))
    key_bins: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    pinned: Mapping[Key, int] = field(default_factory=dict)  # by key that lives apart, its worker

    @property
    def key_places(self) -> Ints:
        """Where the heavy keys are."""
        home = self.places[self.key_bins] if len(self.keys) else self.keys
        pins = [self.pinned.get(key, -1) for key in self.keys.tolist()]
        return np.where(np.array(pins, np.int64) >= 0, pins, home).astype(np.int64)

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which heavy keys live apart."""
        return np.array([key in self.pinned for key in self.keys.tolist()], bool)

    def loads(self, places: Ints, key_places: Ints | None = None) -> Floats:
        """By worker, its load with bins at `places`, and the keys that live apart at `key_places` (where they are)."""
        there = self.key_places if key_places is None else key_places
        apart = self.apart
        bins = np.bincount(places, self.cost, self.workers)
        return np.asarray(bins + np.bincount(there[apart], self.key_cost[apart], self.workers), float)


def combine(seen: Sequence[Observation]) -> Observation:
    """Several intervals, between which nothing moved, as one: loads are means."""
    last, count = seen[-1], len(seen)
    if count == 1:
        return last
    costs: dict[Key, float] = {}
    bins: dict[Key, int] = {}
    for one in seen:
        for key, cost, bin in zip(one.keys.tolist(), one.key_cost.tolist(), one.key_bins.tolist(), strict=True):
            costs[key] = costs.get(key, 0.0) + cost / count
            bins[key] = bin
    mean: Floats = np.sum([one.cost for one in seen], axis=0) / count
    keys, key_cost, key_bins = as_objects(costs), np.array([*costs.values()]), np.array([*bins.values()], np.int64)
    return replace(last, cost=mean, keys=keys, key_cost=key_cost, key_bins=key_bins)


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where everything should be, and the loads that follow."""

    to: Ints  # by bin, its worker
    pins: dict[Key, int | None]  # by key whose place changes, its worker, or None: in its bin
    loads: Floats  # by worker, afterwards
    moved: float  # bytes that change their worker; what single keys have of them is estimated
    note: str = ""
    by: str = ""  # who made it and why, if that was not the planner that was asked first


def spread(loads: Floats, workers: int | None = None) -> float:
    """How far the greatest load is above the mean of so many workers (all, unless given); 0 without load."""
    total = float(loads.sum())
    return float(loads.max()) * (workers or len(loads)) / total - 1.0 if total else 0.0
