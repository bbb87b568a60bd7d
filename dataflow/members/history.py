"""Who takes part in a dataflow, as a function of time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from dataflow.time.order import Time


class History:
    """The memberships of one dataflow: each holds from its time on. Numbers of workers may have gaps.

    `at` costs O(log changes that somebody may still ask for).

    >>> history = History((0, 1))
    >>> history.change(5, (0, 1, 3))
    >>> history.at(4), history.at(5)
    ((0, 1), (0, 1, 3))
    >>> history.retire(lambda time: time <= 5)
    >>> history.at(5), len(history)
    ((0, 1, 3), 1)
    """

    def __init__(self, members: Sequence[int], since: Sequence[tuple[Time, Sequence[int]]] = ()) -> None:
        self._members: list[tuple[int, ...]] = [tuple(members)]
        self._times: list[Time] = []  # invariant: one fewer than memberships, increasing
        for time, later in since:
            self.change(time, later)

    def __len__(self) -> int:
        """How many memberships there are that somebody may ask for."""
        return len(self._members)

    def change(self, time: Time, members: Sequence[int]) -> None:
        """From a time on others take part. It is after all earlier changes."""
        assert not self._times or self._times[-1] < time, (self._times, time)
        self._times.append(time)
        self._members.append(tuple(members))

    def slot(self, time: Time) -> int:
        """The place in `memberships` of the one that holds at a time of the root."""
        return bisect_right(self._times, time) if self._times else 0

    def at(self, time: Time) -> tuple[int, ...]:
        """Who takes part at a time of the root."""
        return self._members[self.slot(time)]

    @property
    def memberships(self) -> Sequence[tuple[int, ...]]:
        """All that somebody may still ask for, in the order of time."""
        return self._members

    @property
    def latest(self) -> tuple[int, ...]:
        """Who takes part as of the last change that was decided."""
        return self._members[-1]

    @property
    def last_change(self) -> Time | None:
        """The time of the last change that somebody may ask for; None if there is none."""
        return self._times[-1] if self._times else None

    def retire(self, is_past: Callable[[Time], bool]) -> None:
        """Forgets what held only before times of which `is_past` says that nobody can ask for anything before them."""
        while self._times and is_past(self._times[0]):
            del self._times[0], self._members[0]

    def as_plain(self) -> list[object]:
        """For those who join."""
        return [list(self._members[0]), [[t, list(m)] for t, m in zip(self._times, self._members[1:], strict=True)]]
