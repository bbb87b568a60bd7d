"""A user's own timestamp, partially ordered: two counters, compared one by one; and what advances it."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.time.order import Timestamp


@dataclass(frozen=True)
class Pair(Timestamp):
    """Two counters. `<` compares the sums first: any linear extension will do, and this is not the tuple's."""

    x: int
    y: int

    @classmethod
    def minimum(cls) -> Pair:
        return cls(0, 0)

    def less_equal(self, other: Pair) -> bool:
        return self.x <= other.x and self.y <= other.y

    def __lt__(self, other: Pair) -> bool:
        return (self.x + self.y, self.x) < (other.x + other.y, other.x)


@dataclass(frozen=True)
class Shift:
    """Adds to both counters. With a `limit`, nothing comes out whose first counter would be past it."""

    dx: int
    dy: int
    limit: int | None = None

    def results_in(self, time: Pair) -> Pair | None:
        if self.limit is not None and time.x + self.dx > self.limit:
            return None
        return Pair(time.x + self.dx, time.y + self.dy)

    def followed_by(self, other: Shift) -> Shift | None:
        # The sum may be at most `limit` here, and at most the other's limit after both: all in terms of the final sum.
        bounds = [] if self.limit is None else [self.limit + other.dx]
        bounds += [] if other.limit is None else [other.limit]
        limit = min(bounds, default=None)
        if limit is not None and limit < self.dx + other.dx:
            return None
        return Shift(self.dx + other.dx, self.dy + other.dy, limit)

    def less_equal(self, other: Shift) -> bool:
        if self.dx > other.dx or self.dy > other.dy:
            return False
        # Where the other lets a time pass, this must as well: x <= limit - dx.
        return self.limit is None or (other.limit is not None and other.limit - other.dx <= self.limit - self.dx)
