"""What is kept for curves: by second, latencies and what may explain them. Pure, and bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from dataflow.run.readings import WorkerReading

Point: TypeAlias = list[float | None]
LONGEST = 3600  # points of each dataflow
FIELDS = ("when", "median", "high", "most", "rate", "behind", "pressed", "busy")


class Curves:
    """By dataflow, points of `FIELDS`, one for each look. Latencies are of the samples since the last one."""

    def __init__(self) -> None:
        self._points: dict[str, deque[Point]] = {}
        self._seen: dict[tuple[str, int], float] = {}  # by dataflow and process, the last sample that was used

    def add(self, workers: Sequence[WorkerReading], rates: dict[str, float], busy: float) -> dict[str, Point]:
        """One more look: by dataflow, its new point."""
        new: dict[str, Point] = {}
        when = max((worker.when for worker in workers), default=0.0)
        pressed = float(sum(bool(worker.pressing) for worker in workers))
        for name in dict.fromkeys(part.name for worker in workers for part in worker.dataflows):
            samples = sorted(self._samples(name, workers))
            behind = max(part.lag_seconds for worker in workers for part in worker.dataflows if part.name == name)
            middle, high, most = quantiles(samples)
            new[name] = [when, middle, high, most, rates.get(name, 0.0), behind, pressed, busy]
            self._points.setdefault(name, deque(maxlen=LONGEST)).append(new[name])
        for gone in self._points.keys() - new.keys():
            del self._points[gone]
        return new

    def all(self) -> dict[str, list[Point]]:
        """Everything that is kept."""
        return {name: list(points) for name, points in self._points.items()}

    def _samples(self, name: str, workers: Sequence[WorkerReading]) -> list[float]:
        found: list[float] = []
        for worker in workers:
            for part in worker.dataflows:
                if part.name == name and part.latencies:
                    last = self._seen.get((name, worker.pid), 0.0)
                    found += (seconds for when, seconds in part.latencies if when > last)
                    self._seen[name, worker.pid] = part.latencies[-1][0]
        return found


def quantiles(samples: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The median, the .99 and the greatest of sorted samples; None if there are none.

    >>> quantiles([1.0, 2.0, 3.0])
    (2.0, 3.0, 3.0)
    """
    if not samples:
        return None, None, None
    return samples[len(samples) // 2], samples[min(len(samples) - 1, int(0.99 * len(samples)))], samples[-1]
