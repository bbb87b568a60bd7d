"""Projected migration costs (PMC): what the migrations to come will cost, from each partitioning (section 4.2; 5.2).

The algorithm as printed (Figure 6; 9 in the live version) sums over every next partitioning. What is meant is the
Bellman equation of a Markov decision process, in which chance picks the next node count and we pick the cuts:

    C[n, P] = sum over n' of M[n, n'] * min over P' balanced for n' of (c(P, P') + gamma * C[n', P'])

A sweep applies it once. Between sweeps the costs of keeping all choices for ever are solved for (`policy`), so that
a handful of sweeps will do. Adding u(n) to the costs of each node count changes no choice, so that part of the error is
known exactly, and corrected (`Correction`); what remains of a sweep's changes bounds the error, and ends the iteration.
It is a bound, not an estimate: it holds however the costs before that sweep came about.

`project` does it in this process; `planners.spark` does the same on many; `dense` knows all costs at once and is an
oracle for small cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planners.errors import BadRequest
from planners.intervals.matching import costs as migration_costs
from planners.intervals.partitionings import Tree
from planners.mtm.policy import Policy, evaluate
from planners.mtm.problem import MTMProblem
from planners.mtm.search import cheapest, least_values

Floats = NDArray[np.float64]
MOST_SWEEPS = 200  # a handful is usual; what needs more is going round in rounding errors
Costs = Mapping[int, Floats]  # by node count, the projected cost by rank


@dataclass(frozen=True, eq=False)
class Projected:
    """Projected costs, by node count and rank, at most `error` from the truth."""

    problem: MTMProblem
    costs: Costs
    error: float
    iterations: int


class Sweep:
    """One application of the Bellman equation, to any sources. Holds the targets as trees: O(partitionings) memory."""

    def __init__(self, problem: MTMProblem) -> None:
        self._problem = problem
        self._prefix = problem.cells.size_prefix()
        self._trees: dict[int, Tree] = {}
        self._costs: Costs = {}
        self._values: dict[int, tuple[Floats, Floats]] = {}  # for these costs, by node count: values, least ones

    def __call__(self, nodes: int, sources: NDArray[np.int16], costs: Costs) -> tuple[Floats, Policy]:
        """The new costs of these partitionings, given the old ones of all, and the choices that lead to them."""
        problem = self._problem
        new, direct = np.zeros(len(sources)), np.zeros(len(sources))
        targets = np.full((len(sources), len(problem.counts)), -1, np.int64)
        for column, then in enumerate(problem.counts):
            likely = problem.transitions.probability(nodes, then)
            if likely:
                values, least = self._valued(then, costs)
                best = cheapest(sources, self._tree(then), values, self._prefix, least)
                new += likely * best.total
                direct += likely * best.cost
                targets[:, column] = best.target
        return new, Policy(direct, targets)

    def _valued(self, nodes: int, costs: Costs) -> tuple[Floats, Floats]:
        """What targets are worth, and the least of each subtree. Callers give the same costs again and again."""
        if costs is not self._costs:
            self._costs, self._values = costs, {}
        if nodes not in self._values:
            values = self._problem.gamma * costs[nodes]
            self._values[nodes] = values, least_values(self._tree(nodes), values)
        return self._values[nodes]

    def _tree(self, nodes: int) -> Tree:
        if nodes not in self._trees:
            self._trees[nodes] = self._problem.partitionings(nodes).tree()
        return self._trees[nodes]


@dataclass(frozen=True)
class Correction:
    """What one sweep tells about the error of all. `low` and `high`: by node count, the least and greatest change.

    With u = (I - gamma M)^-1 middle, the costs plus u change by at most `half` in a sweep, so after it they are within
    gamma / (1 - gamma) * half of the truth (Puterman, section 6.3). `shift` is gamma M u, what to add after the sweep.
    """

    shift: Mapping[int, float]
    error: float

    @classmethod
    def after(cls, problem: MTMProblem, low: Mapping[int, float], high: Mapping[int, float]) -> Correction:
        gamma, matrix, counts = problem.gamma, problem.transitions.matrix, problem.counts
        middle = np.array([(low[n] + high[n]) / 2 for n in counts])
        half = max((high[n] - low[n]) / 2 for n in counts)
        shift = gamma * matrix @ np.linalg.solve(np.eye(len(counts)) - gamma * matrix, middle)
        return cls(dict(zip(counts, shift.tolist(), strict=True)), gamma / (1 - gamma) * half)


def close_enough(problem: MTMProblem, error: float, tolerance: float, sweeps: int) -> bool:
    """Whether to stop. A tolerance is a share of the size of all state: it means the same in bytes and in gigabytes."""
    if error <= tolerance * (problem.tasks.total_size or 1):
        return True
    if sweeps >= MOST_SWEEPS:
        raise BadRequest(f"after {sweeps} sweeps the error is {error:g}: a tolerance of {tolerance:g} is too small")
    return False


def project(problem: MTMProblem, tolerance: float = 1e-9, limit: int = 2_000_000) -> Projected:
    """The projected costs, in this process. At worst O(partitionings squared); see `search` for why it is less."""
    problem.check(limit)
    sources = {nodes: problem.partitionings(nodes).cuts() for nodes in problem.counts}
    sweep = Sweep(problem)
    costs: Costs = {nodes: np.zeros(len(rows)) for nodes, rows in sources.items()}
    iterations = 0
    while True:
        iterations += 1
        swept = {nodes: sweep(nodes, rows, costs) for nodes, rows in sources.items()}
        change = {nodes: swept[nodes][0] - costs[nodes] for nodes in sources}
        low, high = ({nodes: float(end(each)) for nodes, each in change.items()} for end in (np.min, np.max))
        correction = Correction.after(problem, low, high)
        if close_enough(problem, correction.error, tolerance, iterations):
            final = {nodes: swept[nodes][0] + correction.shift[nodes] for nodes in sources}
            return Projected(problem, final, correction.error, iterations)
        costs = settled(problem, swept)


def settled(problem: MTMProblem, swept: Mapping[int, tuple[Floats, Policy]]) -> Costs:
    """The costs of the choices that a sweep made, if they are kept for ever."""
    new, policies = zip(*(swept[nodes] for nodes in problem.counts), strict=True)
    costs = evaluate(list(policies), problem.transitions.matrix, problem.gamma, list(new))
    return dict(zip(problem.counts, costs, strict=True))


def dense(problem: MTMProblem, limit: int = 5_000) -> Projected:
    """The same by policy iteration over the full matrix of costs: an oracle, for some thousand partitionings."""
    problem.check(limit)
    sources = {nodes: problem.partitionings(nodes).cuts() for nodes in problem.counts}
    prefix = problem.cells.size_prefix()
    starts = np.cumsum([0, *(len(rows) for rows in sources.values())])
    blocks = dict(zip(problem.counts, (slice(a, b) for a, b in pairwise(starts.tolist())), strict=True))
    everything = [row for rows in sources.values() for row in rows]
    move = {n: np.array([migration_costs(row, rows, prefix) for row in everything]) for n, rows in sources.items()}
    likely = np.repeat(problem.transitions.matrix, [len(rows) for rows in sources.values()], axis=0)
    costs, iterations = np.zeros(starts[-1]), 0
    choice = np.full((len(blocks), len(likely)), -1)
    while True:
        totals = [move[nodes] + problem.gamma * costs[block] for nodes, block in blocks.items()]
        chosen = np.stack([_better(each, old) for each, old in zip(totals, choice, strict=True)])
        if np.array_equal(choice, chosen):
            return Projected(problem, {n: costs[block] for n, block in blocks.items()}, 0.0, iterations)
        choice, iterations = chosen, iterations + 1
        costs = _evaluate(choice, move, likely, blocks, problem)


def _better(totals: Floats, choice: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least of each row; but a choice that is as good, up to rounding, stays, or ties would go round for ever."""
    best, rows = totals.argmin(axis=1), np.arange(len(totals))
    worth = totals[rows, choice] - totals[rows, best] > 1e-12 * (1 + np.abs(totals[rows, best]))
    return np.where(worth | (choice < 0), best, choice)


def _evaluate(
    choice: NDArray[np.int64],
    move: Mapping[int, Floats],
    likely: Floats,
    blocks: Mapping[int, slice],
    problem: MTMProblem,
) -> Floats:
    """The costs if every choice is made so for ever: a linear system."""
    rows = np.arange(len(likely))
    system, direct = np.eye(len(likely)), np.zeros(len(likely))
    for column, then in enumerate(problem.counts):
        direct += likely[:, column] * move[then][rows, choice[column]]
        system[rows, blocks[then].start + choice[column]] -= problem.gamma * likely[:, column]
    return np.asarray(np.linalg.solve(system, direct), np.float64)
