"""What every store of bins in columns can tell of itself, and whoever does not know how it lies in memory can ask."""

from __future__ import annotations

import numpy as np

from dataflow.columns.batch import Array
from dataflow.columns.segments import Part
from dataflow.columns.table import Table


class Store:
    """State by key on one worker: a table, and whatever else belongs to bins."""

    table: Table

    @property
    def movable(self) -> list[Part]:
        """What belongs to a bin, the table first."""
        return [self.table]

    @property
    def key_count(self) -> int:
        """How many keys have state here. O(bins)."""
        return self.table.key_count

    @property
    def byte_count(self) -> int:
        """How many bytes would travel if all bins left. O(bins)."""
        return int(self.sizes_of(0, self.table.bins).sum())

    @property
    def records(self) -> Array:
        """By bin, how many records were applied here so far, in 32 bits, which come round."""
        return self.table.records

    def has(self, bins: Array) -> Array:
        """Whether there is anything of each of these bins: else it can leave without a word."""
        found: Array = np.logical_or.reduce([part.has(bins) for part in self.movable])
        return found

    def sizes_of(self, first: int, end: int) -> Array:
        """How many bytes of each bin, from one number up to another, would travel."""
        return sum((part.sizes_of(first, end) for part in self.movable[1:]), self.table.sizes_of(first, end))

    def stay_ahead(self) -> None:
        """Has memory touched before it is needed, once there is much of it. For hosts to call now and then."""
        for part in self.movable:
            part.segments.stay_ahead()

    def make_ready(self, size: int) -> None:
        """Touches so many bytes of memory for each part before they are needed: for a run that is measured, or one
        whose state will grow to a known size."""
        for part in self.movable:
            part.make_ready(size)
