"""Where a source stood at every time that a cut may still ask for. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from dataflow.time.order import Time


class Positions:
    """By partition, the position behind what was sent, as a function of time.

    A source runs ahead of the cuts: the share of a cut at t needs the position behind the last record that was sent
    before t, which may be long ago. So the positions of all times at or after `limit` are kept, and one before.
    `note` costs O(1) on average, `before` O(what is kept).

    >>> positions = Positions({"a": 10})
    >>> positions.take_up("a"), positions.take_up("b")
    (10, None)
    >>> for time, position in ((4, 20), (5, 30), (6, 40)):
    ...     positions.note("a", time, position, limit=5)
    >>> positions.before(5), positions.before(6)
    ({'a': 20}, {'a': 30})
    """

    def __init__(self, restored: Mapping[str, object] | None = None) -> None:
        self.restored = dict(restored or {})  # of all workers' partitions, where the run went on from
        self._behind: dict[str, object] = {}  # by partition, where it stood before all that is in its history
        self._history: dict[str, deque[tuple[Time, object]]] = {}  # (time, position behind what was sent then)

    def take_up(self, partition: str) -> object:
        """Where a partition that belongs to this worker from now on starts; None for its beginning."""
        if partition in self._history:  # handed over by another worker
            return self.last(partition)
        start = self.restored.get(partition)
        self._history[partition] = deque()
        if start is not None:
            self._behind[partition] = start
        return start

    def note(self, partition: str, time: Time, position: object, limit: Time) -> None:
        """All of a partition up to a position has been sent, the last of it at a time. No cut before `limit` will be
        asked for any more."""
        history = self._history[partition]
        if history and history[-1][0] == time:
            history[-1] = time, position
        else:
            history.append((time, position))
        while history and history[0][0] < limit:
            self._behind[partition] = history.popleft()[1]

    def before(self, cut: Time) -> dict[str, object]:
        """By partition, the position behind the last that was sent before the cut; none where nothing was."""
        found = dict(self._behind)
        for partition, history in self._history.items():
            for time, position in history:
                if time >= cut:
                    break
                found[partition] = position
        return found

    def adopt(self, partition: str, behind: object, history: Iterable[tuple[Time, object]]) -> None:
        """Takes over a partition that another worker has read so far."""
        self._history[partition] = deque(history)
        if behind is not None:
            self._behind[partition] = behind

    def part_with(self, partition: str) -> tuple[object, list[tuple[Time, object]]]:
        """Gives a partition away; what the next reader must know."""
        return self._behind.pop(partition, None), list(self._history.pop(partition, ()))

    def known(self, partition: str) -> tuple[object, list[tuple[Time, object]]]:
        """What `part_with` would give."""
        if partition not in self._history:
            return self.restored.get(partition), []
        return self._behind.get(partition), list(self._history[partition])

    def last(self, partition: str) -> object:
        """The position behind all that was sent of a partition; None if nothing was."""
        history = self._history.get(partition)
        return history[-1][1] if history else self._behind.get(partition)
