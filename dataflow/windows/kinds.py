"""The kinds of windows, as users name them: `tumbling("1m")`, `sliding("10m", every="1m")`, `session("30s")`,
`count(100)`.

Windows of time begin at multiples of their slide since 1970, UTC (or since 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dataflow.errors import ConstructionError
from dataflow.events.moments import ticks
from dataflow.time.durations import Duration

Length: TypeAlias = "int | Duration"
"""A duration ("10s", a timedelta), or a number of the dataflow's own times."""


@dataclass(frozen=True)
class Sliding:
    """Windows of one size, one every `every`. A tumbling window is one that slides by its size."""

    size: Length
    every: Length

    def in_ticks(self, name: str, unit: str) -> tuple[int, int]:
        """(size, slide) in the dataflow's times."""
        size = ticks(self.size, unit, f"{name}: the size of a window", least=1)
        slide = ticks(self.every, unit, f"{name}: the slide of a window", least=1)
        if size % slide:
            raise ConstructionError(
                f"{name}: the size of a window must be a multiple of its slide: {self.size} and {self.every}"
            )
        return size, slide


@dataclass(frozen=True)
class Session:
    """Windows that end when a key has had no record for a while."""

    gap: Length

    def in_ticks(self, name: str, unit: str) -> int:
        """The gap in the dataflow's times."""
        return ticks(self.gap, unit, f"{name}: the gap of a session", least=1)


@dataclass(frozen=True)
class Count:
    """Windows of so many records of a key, in the order of their times."""

    size: int


WindowKind: TypeAlias = Sliding | Session | Count


def tumbling(size: Length) -> Sliding:
    """Windows of one size, one after the other."""
    return Sliding(size, size)


def sliding(size: Length, every: Length) -> Sliding:
    """Windows of one size, one every `every`: a record is in several."""
    return Sliding(size, every)


def session(gap: Length) -> Session:
    """Windows of records of a key that are less than `gap` apart."""
    return Session(gap)


def count(size: int) -> Count:
    """Windows of `size` records of a key, in the order of their times. One that is not full at the end does not come
    out."""
    if type(size) is not int or size < 1:
        raise ConstructionError(f"a window of records has at least one, not {size!r}")
    return Count(size)
