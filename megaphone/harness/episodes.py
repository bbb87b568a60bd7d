"""Episodes: when something was done to the system while it ran, such as a migration, and what was due around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from megaphone.harness.schedule import SECOND


@dataclass(frozen=True)
class Episode:
    """Something with a name (a migration's: its strategy) that began and ended, in nanoseconds since the start.

    `end` is None if it had not ended when the run did.
    """

    name: str
    begin: int
    end: int | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.end is None else (self.end - self.begin) / SECOND


class Episodes:
    """Collects the episodes of one worker's run. Say when one begins and ends, or `follow` what is under way.

    >>> seconds = iter([1.0, 1.5, 4.0, 4.25])
    >>> episodes = Episodes()
    >>> episodes.start(lambda: next(seconds))
    >>> episodes.begin("fluid")
    >>> episodes.end()
    >>> for under_way in (None, "batched", "batched", None, None):
    ...     episodes.follow(under_way)
    >>> [(episode.name, episode.seconds) for episode in episodes.all]
    [('fluid', 0.5), ('batched', 0.25)]
    """

    def __init__(self) -> None:
        self.all: list[Episode] = []
        self._elapsed: Callable[[], float] | None = None

    def start(self, elapsed: Callable[[], float]) -> None:
        """The run begins; from now on `elapsed()` says how many seconds ago that was. Called by the driver."""
        self._elapsed = elapsed

    @property
    def under_way(self) -> str | None:
        """The name of the episode that has not ended, if there is one."""
        return self.all[-1].name if self.all and self.all[-1].end is None else None

    def begin(self, name: str) -> None:
        """An episode begins now."""
        if self.under_way is not None:
            raise ValueError(f"episode {self.under_way!r} has not ended: end it before {name!r} begins")
        self.all.append(Episode(name, self._now()))

    def end(self) -> None:
        """The episode that is under way ends now."""
        if self.under_way is None:
            raise ValueError("no episode is under way that could end")
        self.all[-1] = Episode(self.all[-1].name, self.all[-1].begin, self._now())

    def follow(self, under_way: str | None) -> None:
        """Begins and ends episodes so that this one is under way: for a caller who only looks from time to time."""
        if under_way != self.under_way:
            if self.under_way is not None:
                self.end()
            if under_way is not None:
                self.begin(under_way)

    def _now(self) -> int:
        if self._elapsed is None:
            raise ValueError("the run has not started: episodes are counted from its start")
        return round(self._elapsed() * SECOND)


def merged(lists: Sequence[Sequence[Episode]]) -> list[Episode]:
    """What several workers saw of the same episodes: from the first one's begin to the last one's end.

    Workers that saw none do not matter; the others must have seen the same.

    >>> merged([[Episode("fluid", 5, 9)], [], [Episode("fluid", 4, 8)]])
    [Episode(name='fluid', begin=4, end=9)]
    """
    seen = [episodes for episodes in lists if episodes]
    names = [[episode.name for episode in episodes] for episodes in seen]
    if any(other != names[0] for other in names):
        raise ValueError(f"the workers disagree on what happened: {names}. Record episodes on one of them, or on all")
    together: list[Episode] = []
    for same in zip(*seen, strict=True):
        ends = [episode.end for episode in same if episode.end is not None]
        end = max(ends) if len(ends) == len(same) else None
        together.append(Episode(same[0].name, min(episode.begin for episode in same), end))
    return together
