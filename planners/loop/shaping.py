"""Which bins there should be: what is large or hot is split, what is small and cold is merged. Pure.

A migration moves bins whole, and a planner weighs them one by one. So a bin should be small enough to move within a
step, and cold enough to be a small part of a worker's load; and there should not be more bins than that takes. Loads
are known by finest bin, so the right cut is found at once, from the top of the prefix tree down: a node is cut if it is
too large or too hot, and a node that is cut stays so until it is far below that (hysteresis). Bins of different workers
are never merged here, so reshaping moves no state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planners.loop.observation import Floats, Ints, Observation

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BinShape:
    """The bins that there should be, and how one gets there."""

    counts: Ints  # by bin, how many finest ones it has
    splits: list[str]  # prefixes of bins that are cut in two, outer ones first
    merges: list[str]  # prefixes that become bins

    def __bool__(self) -> bool:
        return bool(self.splits or self.merges)

    def __str__(self) -> str:
        return f"{len(self.counts)} bins: {len(self.splits)} split, {len(self.merges)} merged"


@dataclass(frozen=True)
class Shaping:
    """When bins are split and merged."""

    largest: int = 2 << 20  # bytes: larger bins are split
    hottest: float = 0.05  # of what a worker has on average: hotter bins are split
    low: float = 0.25  # of both: a split is taken back when the whole is smaller and colder than that
    each: int = 16  # bins of a worker on average: fewer are not left by merging

    def __post_init__(self) -> None:
        if self.largest < 1 or not self.hottest > 0 or not 0 <= self.low < 1 or self.each < 1:
            raise ValueError(
                "bins have a largest size and load above 0, are merged below a share of it from 0 to 1, and a worker "
                f"has 1 or more: not largest {self.largest}, hottest {self.hottest}, low {self.low}, each {self.each}"
            )

    def decide(self, seen: Observation, counts: Ints) -> BinShape:
        """The shape for what was seen, by finest bin, where there are bins of so many finest ones each. O(finest bins x
        their logarithm)."""
        finest = len(seen.places)
        depth = finest.bit_length() - 1
        if finest != 1 << depth:
            raise ValueError(f"there are {finest} finest bins, which is no power of two")
        levels = np.repeat(depth - np.log2(counts).astype(np.int64), counts)
        least = min(depth, (self.each * seen.workers - 1).bit_length())
        hot = max(self.hottest * float(seen.cost.sum()) / seen.workers, 1e-300)
        weights = np.maximum(seen.bytes / self.largest, 0.0), seen.cost / hot
        new, splits, merges = np.zeros(finest, np.int64), [], []
        reached = np.ones(1, bool)
        for level in range(depth + 1):
            was_cut = levels.reshape(1 << level, -1).max(axis=1) > level
            cut = reached & (level < depth) & self._cut(level, least, was_cut, seen.places, weights)
            splits += _names(np.flatnonzero(cut & ~was_cut), level)
            merges += _names(np.flatnonzero(reached & ~cut & was_cut), level)
            new.reshape(1 << level, -1)[reached & ~cut] = level
            reached = np.repeat(cut, 2)
        firsts = np.flatnonzero(np.arange(finest) % (finest >> new) == 0)
        return BinShape((finest >> new)[firsts], splits, merges)

    def _cut(self, level: int, least: int, was_cut: Flags, places: Ints, weights: tuple[Floats, Floats]) -> Flags:
        """By node of a level, whether it should be cut."""
        by_node = places.reshape(1 << level, -1)
        divided: Flags = (by_node != by_node[:, :1]).any(axis=1)
        size, heat = (weight.reshape(1 << level, -1).sum(axis=1) for weight in weights)
        weight = np.maximum(size, heat)
        kept: Flags = was_cut & ((weight > self.low) | (level < least))
        return np.asarray(divided | (weight > 1.0) | kept)


def _names(nodes: NDArray[np.integer], level: int) -> list[str]:
    return [f"{node:0{level}b}*" if level else "*" for node in nodes.tolist()]


def coarsened(seen: Observation, counts: Ints) -> Observation:
    """What was seen by finest bin, by bins of so many finest ones each. Bins are at one worker."""
    if len(counts) == len(seen.places):
        return seen
    firsts = np.cumsum(counts) - counts
    return Observation(
        seen.workers,
        seen.places[firsts],
        np.add.reduceat(seen.cost, firsts),
        np.add.reduceat(seen.bytes, firsts),
        seen.keys,
        seen.key_cost,
        np.searchsorted(firsts, seen.key_bins, side="right") - 1,
        seen.pinned,
    )
