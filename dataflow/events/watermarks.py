"""Watermarks: what can still come, by partition. Pure.

The rule, which depends on nothing but the records of a partition in their order: a record is late if its time is more
than `delay` before the greatest time that came before it in its partition. So the rest of a partition is at or after
its greatest time less the delay: that is its *watermark*.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from dataflow.columns.column import Integers, Mask


class Watermarks:
    """The watermarks of the partitions that one worker reads.

    >>> marks = Watermarks(delay=5)
    >>> marks.late_of("a", [10, 7, 20, 14, 15]), marks.of("a")
    ([3], 15)
    >>> marks.worst
    1
    """

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._greatest: dict[Hashable, int] = {}
        self._heard: dict[Hashable, float] = {}  # when each last had a record
        self.worst = 0  # by how much the latest of all late records was behind its partition's watermark

    def late_of(self, partition: Hashable, times: Sequence[int]) -> list[int]:
        """Takes the records of a partition in their order; the places of those that are late."""
        greatest = self._greatest.get(partition, 0)
        late = []
        for place, time in enumerate(times):
            if time > greatest:
                greatest = time
            elif time < greatest - self._delay:
                late.append(place)
                self.worst = max(self.worst, greatest - self._delay - time)
        self._greatest[partition] = greatest
        return late

    def late_in(self, partition: Hashable, times: Integers) -> Mask:
        """The same for many: whether each is late."""
        first = self._greatest.get(partition, 0)
        greatest = np.maximum.accumulate(np.concatenate([[first], times]))
        self._greatest[partition] = int(greatest[-1])
        behind = greatest[:-1] - self._delay - times
        late: Mask = behind > 0
        self.worst = max(self.worst, int(behind.max(initial=0)))
        return late

    def hear(self, partition: Hashable, now: float) -> None:
        """A partition had records. (None stands for all of a worker, until it is known to have partitions.)"""
        if partition is not None:
            self._heard.pop(None, None)
        self._heard[partition] = now

    def of(self, partition: Hashable) -> int:
        """What can still come from a partition is at this time or later."""
        return max(self._greatest.get(partition, 0) - self._delay, 0)

    def active(self, since: float) -> int | None:
        """The least watermark of the partitions that had a record since then; None if none had."""
        return min((self.of(each) for each, heard in self._heard.items() if heard > since), default=None)

    @property
    def furthest(self) -> int:
        """The greatest watermark of all partitions."""
        return max(map(self.of, self._greatest), default=0)

    def next_idle(self, since: float) -> float | None:
        """The earliest moment at which a partition that counts as active had its last record."""
        return min((heard for heard in self._heard.values() if heard > since), default=None)
