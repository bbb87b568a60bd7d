"""Balanced partitionings: every way to cut the tasks into at most n intervals within the limit, counted and enumerated.

A partitioning is what of an assignment matters to later migrations: where the cuts are, not who owns which interval
(Lemma 4.2; 5.2 in the live version). Idle nodes own empty intervals, and which of them is empty makes no difference, so
each cut list is listed once: ascending, then filled up with m. For 4 nodes, `0, 3, 7, 10, 10` leaves one node idle.

There are very many: 63 choose 7 for m = 64 and n = 8 if all were balanced. Their number is known from a table of m x n
sums before any is made (`count`), any range of them can be made without those before it (`cuts`), in lexicographic
order, and a cut list's place in that order is its rank. That is how executors share the work without talking.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from planners.errors import BadRequest, PlannerError
from planners.model import Limits, Tasks

Cuts = NDArray[np.int16]
MOST_TASKS = 32_767  # what a cut of two bytes can tell


class TooMany(PlannerError):
    """More balanced partitionings than fit; `count` says how many there are."""

    def __init__(self, count: int, limit: int, advice: str = "") -> None:
        self.count, self.limit, self.advice = count, limit, advice
        super().__init__(
            f"there are {count:,} balanced partitionings, and {limit:,} is the limit. A smaller tau, fewer node counts "
            f"or a coarser grid of cuts makes them fewer{advice}; a higher limit needs that much more memory."
        )

    def __reduce__(self) -> tuple[type[TooMany], tuple[int, int, str]]:
        return TooMany, (self.count, self.limit, self.advice)


@dataclass(frozen=True)
class Partitionings:
    """The balanced partitionings of these tasks among so many nodes.

    Costs: `count` O(m n) additions; `cuts` and `tree` O(1) numpy calls a node, and memory for what they return.

    >>> tasks = Tasks([5, 6, 9, 1, 8, 4, 1, 3, 2, 6], [8, 4, 7, 9, 2, 4, 1, 4, 7, 5])
    >>> [Partitionings(tasks, Limits(n, 0.5)).count for n in (2, 3, 4)]
    [5, 11, 27]
    >>> Partitionings(tasks, Limits(3, 0.5)).cuts(9).tolist()
    [[0, 3, 7, 10], [0, 3, 8, 10]]
    """

    tasks: Tasks
    limits: Limits

    def __post_init__(self) -> None:
        if len(self.tasks) > MOST_TASKS:
            raise BadRequest(f"{len(self.tasks):,} tasks are more than the {MOST_TASKS:,} that fit: merge bins first")

    @cached_property
    def count(self) -> int:
        """How many there are, exactly; zero if no partitioning is balanced."""
        return self._leaves[0][0]

    def cuts(self, start: int = 0, stop: int | None = None) -> Cuts:
        """Those of rank `start` up to `stop`: a row of n + 1 cuts each, in lexicographic order."""
        stop = self.count if stop is None else min(stop, self.count)
        m, n = len(self.tasks), self.limits.nodes
        if start >= stop:
            return np.empty((0, n + 1), np.int16)
        rows, before = np.zeros((1, 1), np.int16), 0  # `before`: the rank of the first cut list below the first row
        for column in range(1, n):
            parent, cut, _ = self._children(rows[:, -1], column)
            leaves = self._leaf_counts[column][cut]
            ranks = before + np.cumsum(leaves) - leaves
            kept = (ranks < stop) & (ranks + leaves > start)
            before = int(ranks[kept][0])
            rows = np.column_stack([rows[parent[kept]], cut[kept]])
        return np.column_stack([rows, np.full(len(rows), m, np.int16)])

    def tree(self) -> Tree:
        """All of them, as a tree of shared prefixes."""
        if not self.count:
            raise BadRequest(f"no cuts for {self.limits.nodes} nodes are balanced within tau = {self.limits.tau}")
        levels = [np.zeros(1, np.int16)]
        firsts = []
        for column in range(1, self.limits.nodes):
            _, cut, first = self._children(levels[-1], column)
            levels.append(cut)
            firsts.append(first)
        if not firsts:  # one node: a single cut list, as a range of one
            firsts, levels = [np.zeros(1, np.int64)], [*levels, np.full(1, len(self.tasks), np.int16)]
        starts = np.cumsum([0, *map(len, levels[:-1])])
        absolute = [first + start for first, start in zip(firsts[:-1], starts[1:-1], strict=True)] + [firsts[-1]]
        return Tree(
            cut=np.concatenate(levels[:-1]),
            first=np.concatenate(absolute),
            levels=starts,
            least_cut=self._least[::-1][1 : len(levels)] if self.limits.nodes > 1 else np.full(1, len(self.tasks)),
            reach=self._reach,
            leaves=self.count,
        )

    def _children(self, cuts: Cuts, column: int) -> tuple[NDArray[np.int64], Cuts, NDArray[np.int64]]:
        """What may stand in a column after these cuts: the index of each child's parent, its cut, and by parent the
        index of its first child. A parent's children are consecutive cuts."""
        m = len(self.tasks)
        low = np.minimum(np.maximum(cuts.astype(np.int64) + 1, self._least[self.limits.nodes - column]), m)
        many = self._reach[cuts] - low + 1
        first = np.cumsum(many) - many
        parent = np.repeat(np.arange(len(cuts)), many)
        cut = (low - first)[parent] + np.arange(len(parent))
        return parent, cut.astype(np.int16), first

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        """By cut, the greatest cut that may follow it."""
        prefix, limit = self.tasks.load_prefix(), self.limits.load(self.tasks.total_load)
        m, b, reach = len(self.tasks), 0, np.empty(len(self.tasks) + 1, np.int64)
        for a in range(m + 1):
            b = max(a, b)
            while b < m and prefix[b + 1] - prefix[a] <= limit:
                b += 1
            reach[a] = b
        return reach

    @cached_property
    def _least(self) -> NDArray[np.int64]:
        """By number of intervals that are left, the least cut from which they suffice. Later cuts do as well."""
        m = len(self.tasks)
        least = [m]
        for _ in range(self.limits.nodes):
            least.append(int(np.argmax(self._reach >= least[-1])))
        return np.array(least)

    @cached_property
    def _leaves(self) -> list[list[int]]:
        """By column and cut, how many cut lists go on from there. Python's integers: the numbers have no bound."""
        m, n = len(self.tasks), self.limits.nodes
        reach = self._reach.tolist()
        leaves = [[0] * self._least[1] + [1] * (m + 1 - int(self._least[1]))]  # one interval is left
        for _ in range(1, n):
            sums = [0, *accumulate(leaves[0])]
            leaves.insert(0, [sums[reach[a] + 1] - sums[a + 1] for a in range(m)] + [1])
        return leaves

    @cached_property
    def _leaf_counts(self) -> NDArray[np.int64]:
        if self.count >= 2**62:
            raise TooMany(self.count, 2**62)
        return np.array([[min(count, 2**62) for count in column] for column in self._leaves], np.int64)


@dataclass(frozen=True, eq=False)
class Tree:
    """Cut lists by their prefixes, for a search that passes over whole subtrees.

    A node is a prefix of cuts; its children are those that add one more, consecutive cuts from the least to the
    greatest that may follow. The children of the last level are leaves: the cut lists themselves, numbered by rank.
    """

    cut: Cuts  # by node, level by level: the last cut of its prefix
    first: NDArray[np.int64]  # by node, its first child; on the last level, the rank of its first leaf
    levels: NDArray[np.int64]  # by level, its first node; and, at the end, the number of nodes
    least_cut: NDArray[np.int64]  # by level, the least cut that a child there may have
    reach: NDArray[np.int64]  # by cut, the greatest that may follow
    leaves: int


def check_count(partitionings: list[Partitionings], limit: int, advice: str = "") -> int:
    """The number of all of them together; `TooMany` if that exceeds the limit."""
    count = sum(each.count for each in partitionings)
    if count > limit:
        raise TooMany(count, limit, advice)
    return count
