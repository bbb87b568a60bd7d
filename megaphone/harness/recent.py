"""The last second of a run, from the log of completions: what a live view shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from megaphone.harness.histogram import Histogram
from megaphone.harness.lateness import charge
from megaphone.harness.schedule import SECOND, LoadSchedule

QUANTILES = (0.5, 0.99, 1)


class Recent:
    """Looks at the end of a log that grows: (epochs complete, since when)."""

    def __init__(self, schedule: LoadSchedule, worker: int, through: Sequence[int], at: Sequence[int]) -> None:
        self._schedule = schedule
        self._worker = worker
        self._through = through
        self._at = at

    def look(self, now: int, span: int = SECOND) -> tuple[float, list[int]]:
        """(records of all workers completed per second, latencies of this worker's own) in the last `span` ns.

        The latencies are those of `QUANTILES`; none if nothing was complete.
        """
        span = max(1, min(span, now))
        begin = bisect_left(self._at, now - span)
        if begin == len(self._at):
            return 0.0, []
        before = self._through[begin - 1] if begin else 0
        epochs = np.diff(np.array(self._through[begin:]), prepend=before)
        histogram = Histogram()
        charge(histogram, self._schedule, self._worker, before, np.repeat(np.array(self._at[begin:]), epochs))
        schedule = self._schedule
        records = schedule.first_record(self._through[-1]) - schedule.first_record(before)
        return records * SECOND / span, histogram.quantiles(QUANTILES)
