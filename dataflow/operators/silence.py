"""Silence: partitions that say nothing, and what workers tell each other of that, so that they hold nobody back. Pure.

A worker is where the last of its partitions is, of those that are not silent. If all of them are, it goes on with the
others: it needs to know where those are, and that nobody else is silent as well, so workers send each other *tidings*.
(The counts of progress tracking do not say it. Two silent workers would wait for each other; and one that has ended
has taken its last time with it.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

Tiding = tuple[int, int | None, int]
"""(worker, the watermark of its active partitions or None if it has none, the furthest of all of its partitions)"""


class Tidings:
    """What one worker knows of all. A worker that has said nothing yet is active, at 0.

    >>> tidings = Tidings(worker=0, peers=3)
    >>> tidings.hear((1, 7, 9)), tidings.hear((2, 5, 5)), tidings.reach(None, 3)
    (None, None, 5)
    >>> tidings.hear((2, None, 5)), tidings.reach(None, 3)
    (None, 7)
    >>> tidings.hear((1, None, 9)), tidings.reach(None, 3)
    (None, 9)
    """

    def __init__(self, worker: int, peers: int) -> None:
        self.worker = worker
        self._said: dict[int, tuple[int | None, int]] = dict.fromkeys(range(peers), (0, 0))
        self._furthest = 0  # of all that was ever said: workers may be gone that said it

    def hear(self, tiding: Tiding) -> None:
        """A worker says where it is."""
        worker, active, furthest = tiding
        self._said[worker] = (active, furthest)
        self._furthest = max(self._furthest, furthest)

    def forget(self) -> None:
        """Somebody joined, or left: all who can will say it again."""
        self._said.clear()

    def others_wait(self) -> bool:
        """Whether another worker is silent, and so has to know where this one is."""
        return any(active is None for worker, (active, _) in self._said.items() if worker != self.worker)

    def reach(self, active: int | None, furthest: int) -> int:
        """How far this worker may go: as far as its own active partitions are; if it has none, as the active ones of
        the others; if nobody has any, as far as anybody got."""
        if active is not None:
            return active
        marks = [mark for worker, (mark, _) in self._said.items() if worker != self.worker and mark is not None]
        return min(marks) if marks else max(furthest, self._furthest)


class Silence:
    """Which of the partitions that a worker reads are silent: those that had nothing to say for so many seconds. One
    that has something in hand is not, however long it has to wait until that is sent.

    >>> silence = Silence(after=10)
    >>> silence.heard("a", 0), silence.heard("b", 4)
    (None, None)
    >>> silence.active({"a": 7, "b": 9}, now=5), silence.active({"a": 7, "b": 9}, now=12), silence.next(12)
    (7, 9, 14)
    """

    def __init__(self, after: float) -> None:
        self.after = after
        self.furthest = 0  # where the furthest partition got, those included that are at their end
        self._heard: dict[str, float] = {}  # when each last had something to say
        self._speaking: set[str] = set()

    def begin(self, partition: str) -> None:
        """A partition has something to say."""
        self._speaking.add(partition)

    def heard(self, partition: str, now: float) -> None:
        """It has said it; or it is read from now on."""
        self._speaking.discard(partition)
        self._heard[partition] = now

    def forget(self, partition: str) -> None:
        """A partition is at its end, or another worker's."""
        self._speaking.discard(partition)
        self._heard.pop(partition, None)

    def active(self, times: Mapping[str, int], now: float) -> int | None:
        """The least time of the partitions that are not silent; None if all are, or there are none."""
        self.furthest = max(self.furthest, *times.values()) if times else self.furthest
        return min((times[each] for each in self._active(times, now)), default=None)

    def _active(self, partitions: Collection[str], now: float) -> list[str]:
        return [p for p in partitions if p in self._speaking or self._heard[p] + self.after > now]

    def next(self, now: float) -> float | None:
        """When the next may fall silent; None if there is nothing to wait for before one speaks."""
        heard = (self._heard[p] for p in self._active(self._heard, now) if p not in self._speaking)
        return min((each + self.after for each in heard), default=None)
