"""Cuts off the grid, for tables that only know cuts on it.

Tables on a grid list few cut lists, and what is not listed may be better: an operator whose cuts are off the grid would
have to move onto it first, which costs at once what the grid costs at all. But the tables say enough of a cut list that
they do not have. Whoever has cuts P with n nodes can go by the tables from the next step on, which costs

    sum over n' of M[n, n'] * min over listed P' of (c(P, P') + gamma * C[n', P'])

This is no less than the exact projected cost of P, and what the tables promise of a listed P' is no less either. So a
choice between both never costs more, on average, than choosing listed ones only (a step of policy improvement).

Tried are the plan of SSM, and the tables' own choice with cuts put back, one after the other, where they are now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from planners.intervals.matching import cost, first_best
from planners.intervals.ssm import ssm
from planners.model import Intervals, Limits, Tasks
from planners.mtm.tables import Tables


@dataclass(frozen=True)
class NextCuts:
    """Where a step may lead: its cuts, their projected cost, and what the step and all after it cost together."""

    cuts: tuple[int, ...]
    projected: float
    total: float


class OffGrid:
    """Judges cut lists for one request. `growth`: how much larger all state is than in the tables."""

    def __init__(self, tables: Tables, current: Intervals, tasks: Tasks, limits: Limits, growth: float) -> None:
        self._tables, self._current, self._tasks, self._limits = tables, current, tasks, limits
        self._growth, self._gamma = growth, tables.problem.gamma
        self._sizes, self._loads = tasks.size_prefix(), tasks.load_prefix()
        self._read = cache(lambda nodes, group: tables.rows(nodes)[group].read())

    def better(self, known: NextCuts) -> NextCuts:
        """The best that was found, no worse than what the tables chose."""
        tasks, limits = self._tasks, self._limits
        single = ssm(self._current, nodes=limits.nodes, sizes=tasks.sizes, loads=tasks.loads, tau=limits.tau)
        best = min(known, self._judged(single.assignment.intervals().cuts), key=lambda target: target.total)
        here = known
        for place in range(1, len(known.cuts) - 1):
            for cuts in self._put_back(here.cuts, place):
                tried = self._judged(cuts)
                here = tried if tried.total < here.total else here
        return here if here.total < best.total else best

    def _put_back(self, cuts: Sequence[int], place: int) -> Iterator[list[int]]:
        """The cut lists that have one of today's cuts in this place, and are balanced."""
        low, high = cuts[place - 1], cuts[place + 1]
        for own in sorted({cut for cut in self._current.cuts if low < cut < high and cut != cuts[place]}):
            changed = [*cuts[:place], own, *cuts[place + 1 :]]
            if max(self._loads[b] - self._loads[a] for a, b in pairwise(changed)) <= self._limit:
                yield changed

    @property
    def _limit(self) -> float:
        return self._limits.load(self._tasks.total_load)

    def _judged(self, cuts: Sequence[int]) -> NextCuts:
        projected = self._projected(cuts)
        now = cost(self._current.cuts, cuts, self._sizes)
        return NextCuts(tuple(cuts), projected, now + self._gamma * projected)

    def _projected(self, cuts: Sequence[int]) -> float:
        """What going by the tables costs from the next step on."""
        matrix = self._tables.problem.transitions
        likely = ((then, matrix.probability(self._limits.nodes, then)) for then in matrix.counts)
        return sum(chance * self._next(cuts, then) for then, chance in likely if chance)

    def _next(self, cuts: Sequence[int], nodes: int) -> float:
        best, factor = inf, self._gamma * self._growth
        for number, group in enumerate(self._tables.rows(nodes)):
            if factor * group.least >= best:
                break
            rows, projected = self._read(nodes, number)
            best, _ = first_best(cuts, rows, self._sizes, factor * projected, best)
        return best


def balanced(rows: NDArray[np.int16], tasks: Tasks, limits: Limits) -> NDArray[np.bool_]:
    """By row of cuts, whether all loads are within the limit."""
    ends = tasks.load_prefix()[rows]
    return np.asarray(np.diff(ends, axis=1).max(axis=1) <= limits.load(tasks.total_load))
