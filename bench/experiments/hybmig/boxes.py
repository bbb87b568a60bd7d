"""GMS, GPT and GHM, counted (section 4): plans with a median on top as black boxes, which only take records.

The median is over the results that are valid now: from their last record until a window after their first. So a plan's
state is a function of the records of the last window, its reach. A record that gives results gives one new median.
"""

from __future__ import annotations

from collections import deque

from bench.experiments.hybmig.counting import Contents
from bench.experiments.hybmig.methods import Effect, Steady
from bench.experiments.hybmig.setting import Arrival
from megaphone.plans.trees import Tree


class MedianBox(Steady):
    """A plan with a median on top."""

    def step(self, arrival: Arrival) -> Effect:
        done = super().step(arrival)
        return Effect(done.evaluations, int(done.results > 0))


class _General(MedianBox):
    """A box that is replaced by another, which cannot be looked into."""

    def __init__(self, tree: Tree, contents: Contents, new: Tree, names: str) -> None:
        super().__init__(tree, contents)
        self._next: Steady | None = None
        self._fresh = MedianBox(new, Contents(names, contents.window))
        self._recent: deque[Arrival] = deque()  # a window of records

    def arrive(self, arrival: Arrival) -> Effect:
        while self._recent and self._recent[0].time < arrival.time - self.contents.window:
            self._recent.popleft()
        self._recent.append(arrival)
        return super().arrive(arrival)

    def _switch(self, now: float) -> None:
        assert self._next is not None
        self.tree, self.contents, self.ended, self._next = self._next.tree, self._next.contents, now, None

    @property
    def tuples(self) -> int:
        return super().tuples + (self._next.tuples if self._next is not None else 0)


class GeneralMovingState(_General):
    """GMS: the new box is fed the last window; then it takes over."""

    def start(self, now: float) -> int:
        self.began, self._next = now, self._fresh
        work = sum(self._next.arrive(arrival).evaluations for arrival in self._recent if _is_in(self, arrival, now))
        self._switch(now)
        return work


class GeneralParallelTrack(_General):
    """GPT: both boxes take everything. The old one's results count for a window, then the new one's."""

    def start(self, now: float) -> int:
        self._next = self._fresh
        return super().start(now)

    def arrive(self, arrival: Arrival) -> Effect:
        if self._next is None:
            return super().arrive(arrival)
        if self.is_past(arrival):
            self._switch(arrival.time)
            return super().arrive(arrival)
        done = super().arrive(arrival)
        return Effect(done.evaluations + self._next.arrive(arrival).evaluations, done.results)


class GeneralHybrid(_General):
    """GHM: the new box is fed the last window and what arrives from a queue, while nothing waits for the old one."""

    def __init__(self, tree: Tree, contents: Contents, new: Tree, names: str) -> None:
        super().__init__(tree, contents, new, names)
        self._queue: deque[Arrival] = deque()
        self._debt = 0.0  # evaluations of the record that the new box is at

    def start(self, now: float) -> int:
        self._next = self._fresh
        self._queue.extend(arrival for arrival in self._recent if _is_in(self, arrival, now))
        return super().start(now)

    def arrive(self, arrival: Arrival) -> Effect:
        if self._next is not None:
            self._queue.append(arrival)
        return super().arrive(arrival)

    def background(self, budget: float, now: float) -> float:
        if self._next is None:
            return 0.0
        spent = 0.0
        while True:
            paid = min(budget - spent, self._debt)
            spent, self._debt = spent + paid, self._debt - paid
            if self._debt:
                return budget
            if not self._queue:
                self._switch(now)
                return spent
            self._debt = float(self._next.arrive(self._queue.popleft()).evaluations)


def _is_in(box: Steady, arrival: Arrival, now: float) -> bool:
    return arrival.time >= now - box.contents.window
