"""Path summaries: what becomes of a time between two places of the graph.

Scopes nest, and a time in a scope at depth d has d + 1 levels: the dataflow's own time, then one per scope. A bare
time stands for one level, a tuple for more. Along a path some outer levels are kept, each under a summary of its own
domain, and what was entered on the way starts afresh. So every path, however long, has the form

    kept: one summary for each of the outer levels that survive       fresh: the times of the levels entered since

>>> from dataflow.time.timestamp import Integers
>>> ints = Integers()
>>> once_round = enter((ints,), ints).followed_by(advance((ints, ints), (0, 1)))
>>> once_round.results_in(7)
(7, 1)
>>> once_round.followed_by(leave((ints, ints))).results_in(7)
7
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dataflow.time.order import Time, TimeSummary
from dataflow.time.timestamp import Domain

Levels = tuple[Domain, ...]


def split(time: Time, depth: int) -> tuple[Time, ...]:
    """A time as the tuple of its levels."""
    return time if depth else (time,)


def join(levels: tuple[Time, ...]) -> Time:
    """The inverse of `split`."""
    return levels if len(levels) > 1 else levels[0]


@dataclass(frozen=True, slots=True)
class PathSummary:
    """The summary of a path from a scope with levels `origin`. Comparing and composing cost O(depth)."""

    origin: Levels
    kept: tuple[TimeSummary, ...]
    fresh: tuple[Time, ...]
    entered: Levels

    @property
    def target(self) -> Levels:
        """The levels of the scope in which the path ends."""
        return self.origin[: len(self.kept)] + self.entered

    @property
    def is_identity(self) -> bool:
        """Whether times pass unchanged."""
        return len(self.kept) == len(self.origin) and not self.fresh and not self.first_advance_below(len(self.kept))

    def first_advance_below(self, depth: int) -> bool:
        """Whether any of the first `depth` kept levels is advanced."""
        return any(s != d.identity for s, d in zip(self.kept[:depth], self.origin, strict=False))

    def advances(self, level: int) -> bool:
        """Whether the path advances that level (and keeps it)."""
        return level < len(self.kept) and bool(self.kept[level] != self.origin[level].identity)

    def results_in(self, time: Time) -> Time | None:
        """The least time that can come out when `time` goes in; None if none can."""
        levels = split(time, len(self.origin) - 1)
        kept = tuple(d.results_in(s, t) for d, s, t in zip(self.origin, self.kept, levels, strict=False))
        return None if any(level is None for level in kept) else join(kept + self.fresh)

    def followed_by(self, other: PathSummary) -> PathSummary | None:
        """This path and then `other`; None if nothing can pass both."""
        assert len(self.target) == len(other.origin), "paths that do not meet"
        n, m = len(self.kept), len(other.kept)
        kept = [d.followed_by(a, b) for d, a, b in zip(self.origin, self.kept, other.kept, strict=False)]
        fresh = [
            d.results_in(s, t)
            for d, s, t in zip(self.entered, other.kept[n:], self.fresh[: max(0, m - n)], strict=False)
        ]
        if any(part is None for part in (*kept, *fresh)):
            return None
        entered = self.entered[: max(0, m - n)] + other.entered
        return PathSummary(self.origin, tuple(kept), tuple(fresh) + other.fresh, entered)

    def less_equal(self, other: PathSummary) -> bool:
        """Whether this path gives times no later than `other`, for every time (a sufficient test across scopes)."""
        for level, domain in enumerate(self.target):
            mine, theirs = level < len(self.kept), level < len(other.kept)
            a = self.kept[level] if mine else self.fresh[level - len(self.kept)]
            b = other.kept[level] if theirs else other.fresh[level - len(other.kept)]
            if mine and theirs:
                below = domain.summary_less_equal(a, b)
            elif mine:
                below = False  # keeps a level that may be arbitrarily late where the other starts afresh
            elif theirs:
                least = domain.results_in(b, domain.minimum)
                below = least is not None and domain.less_equal(a, least)
            else:
                below = domain.less_equal(a, b)
            if not below:
                return False
        return True

    def compiled(self) -> Callable[[Time], Time | None] | None:
        """A function that does what `results_in` does, faster; None stands for the identity."""
        if self.is_identity:
            return None
        depth = len(self.origin) - 1
        if not self.first_advance_below(len(self.kept)):
            if len(self.kept) == len(self.origin) and len(self.fresh) == 1:
                (least,) = self.fresh
                return (lambda t: (t, least)) if depth == 0 else (lambda t: (*t, least))
            if len(self.kept) == depth and not self.fresh:
                return (lambda t: t[0]) if depth == 1 else (lambda t: t[:-1])
        return self.results_in


def identity(levels: Levels) -> PathSummary:
    """The path that stays where it is."""
    return advance(levels, tuple(d.identity for d in levels))


def advance(levels: Levels, summaries: tuple[TimeSummary, ...]) -> PathSummary:
    """A path within one scope that applies one summary per level."""
    return PathSummary(levels, summaries, (), ())


def enter(levels: Levels, inner: Domain) -> PathSummary:
    """The path into a nested scope: a new level starts at its minimum."""
    return PathSummary(levels, tuple(d.identity for d in levels), (inner.minimum,), (inner,))


def leave(levels: Levels) -> PathSummary:
    """The path out of a nested scope: the innermost level is forgotten."""
    return PathSummary(levels, tuple(d.identity for d in levels[:-1]), (), ())
