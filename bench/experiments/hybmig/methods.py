"""The methods, counted: what each does with a record (evaluations, results) and has in its states.

`Steady` is a plan that never changes, and what all of them are before the migration and after it. Times are logical:
those of the records. When a record is processed is the clock's affair (`clock`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from bench.experiments.hybmig.counting import Contents, Extent, climb, inner, sources
from bench.experiments.hybmig.setting import Arrival
from megaphone.plans.trees import Tree


@dataclass(frozen=True, slots=True)
class Effect:
    """What a record cost and gave; `held` are results that are kept back, and `released` what had been."""

    evaluations: int
    results: int
    held: int = 0
    released: int = 0


class Steady:
    """A plan that runs. Subclasses migrate it."""

    def __init__(self, tree: Tree, contents: Contents) -> None:
        self.tree = tree
        self.contents = contents
        self.ended: float | None = None  # when the migration was over, by the clock of records
        self.began = 0.0

    def start(self, now: float) -> int:
        """The migration starts; how many evaluations nothing can be done before."""
        self.began = now
        return 0

    def arrive(self, arrival: Arrival) -> Effect:
        """A record is processed."""
        self.contents.expire(arrival.time)
        done = self.step(arrival)
        self.contents.add(arrival)
        return done

    def step(self, arrival: Arrival) -> Effect:
        """What a record does with states as they are before it."""
        return Effect(*climb(self.tree, arrival, Extent(self.contents)))

    def background(self, budget: float, now: float) -> float:
        """Does what can be done while nothing waits; how many of so many evaluations it took."""
        return 0.0

    @property
    def tuples(self) -> int:
        """How many tuples are in all states, shared ones once."""
        return plan_size(self.tree, self.contents)

    def is_over(self) -> bool:
        """Whether there is one plan again."""
        return self.ended is not None

    def is_past(self, arrival: Arrival) -> bool:
        """Whether a record comes a window after the start or later: then nothing old can be part of a result."""
        return arrival.time >= self.began + self.contents.window


Method: TypeAlias = Callable[[Tree, Contents], Steady]
"""From the old plan and what is in its window to the method."""


def plan_size(tree: Tree, contents: Contents) -> int:
    """The tuples in all states of a complete plan."""
    return sum(map(contents.size, sources(tree))) + sum(contents.size(node.streams) for node in inner(tree))


class MovingState(Steady):
    """MS: fills the states of the new plan that the old one has not, then goes on."""

    def __init__(self, tree: Tree, contents: Contents, new: Tree) -> None:
        super().__init__(tree, contents)
        self._new = new

    def start(self, now: float) -> int:
        self.began = self.ended = now
        self.contents.expire(now)
        had = {node.streams for node in inner(self.tree)}
        self.tree = self._new
        return sum(
            self.contents.size(node.left.streams) * self.contents.size(node.right.streams)
            for node in inner(self.tree)
            if node.streams not in had
        )


class ParallelTracks(Steady):
    """PT: both plans take everything; the new one starts empty. Its results are held until the end."""

    def __init__(self, tree: Tree, contents: Contents, new: Tree, names: str) -> None:
        super().__init__(tree, contents)
        self._new = new
        self._fresh = Contents(names, contents.window)
        self._held = 0
        self._is_on = False

    def start(self, now: float) -> int:
        self._is_on = True
        return super().start(now)

    def arrive(self, arrival: Arrival) -> Effect:
        if not self._is_on:
            return super().arrive(arrival)
        if self.is_past(arrival):
            released, self._held, self._is_on = self._held, 0, False
            self.tree, self.contents, self.ended = self._new, self._fresh, arrival.time
            done = super().arrive(arrival)
            return Effect(done.evaluations, done.results, released=released)
        self.contents.expire(arrival.time)
        old, results = climb(self.tree, arrival, Extent(self.contents))
        new, fresh = climb(self._new, arrival, Extent(self._fresh))
        self.contents.add(arrival)
        self._fresh.add(arrival)
        self._held += fresh
        return Effect(old + new, results - fresh, held=fresh)

    @property
    def tuples(self) -> int:
        return super().tuples + (plan_size(self._new, self._fresh) if self._is_on else 0)
