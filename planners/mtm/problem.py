"""What the projected costs are computed for: tasks, limits, the matrix and the discount. A plain frozen value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planners import decoding
from planners.errors import BadRequest
from planners.intervals.feasibility import check_feasible
from planners.intervals.partitionings import MOST_TASKS, Partitionings, check_count
from planners.model import Limits, Tasks, real
from planners.mtm.grids import Grid, coarse
from planners.mtm.transitions import Transitions


@dataclass(frozen=True)
class MTMProblem:
    """`gamma` discounts what a later migration costs; it is below one, or the costs of all time to come would not end.

    >>> to_and_fro = Transitions([1, 2], [[0, 1], [1, 0]])
    >>> problem = MTMProblem(Tasks([1, 1, 1, 1], [1, 1, 1, 1]), to_and_fro, tau=0.5, gamma=0.8)
    >>> [problem.partitionings(n).count for n in problem.transitions.counts]
    [1, 3]
    >>> MTMProblem.of(problem.parameters()) == problem
    True
    """

    tasks: Tasks
    transitions: Transitions
    tau: float
    gamma: float
    grid: Grid | None = None

    def __post_init__(self) -> None:
        if not 0 <= real(self.gamma) < 1:
            raise BadRequest(f"gamma is zero or more and below one, not {self.gamma!r}")
        if len(self.tasks) > MOST_TASKS:
            raise BadRequest(f"{len(self.tasks):,} tasks are more than the {MOST_TASKS:,} that fit: merge bins first")
        Limits(1, self.tau)  # refuses what is no tau
        _ = self.cells  # refuses a grid that does not fit

    @property
    def counts(self) -> tuple[int, ...]:
        """The node counts there may be."""
        return self.transitions.counts

    @cached_property
    def cells(self) -> Tasks:
        """What can be cut: the tasks, or the cells of the grid."""
        return self.tasks if self.grid is None else self.grid.merge(self.tasks)

    def partitionings(self, nodes: int) -> Partitionings:
        """The balanced partitionings of the cells."""
        return Partitionings(self.cells, Limits(nodes, self.tau))

    def in_tasks(self, cuts: NDArray[np.int16]) -> NDArray[np.int16]:
        """Cuts of cells as cuts of tasks."""
        return cuts if self.grid is None else np.array(self.grid.positions, np.int16)[cuts]

    def check(self, limit: int) -> int:
        """How many partitionings there are; an error if some node count has none, or if there are too many."""
        for nodes in self.counts:
            check_feasible(self.cells, Limits(nodes, self.tau))
        each = [self.partitionings(nodes) for nodes in self.counts]
        return check_count(each, limit, self._advice(limit) if sum(p.count for p in each) > limit else "")

    def _advice(self, limit: int) -> str:
        """The finest coarse grid that is within the limit, for those who asked for too much."""
        for cells in range(len(self.cells) - 1, 1, -1):
            grid = coarse(self.tasks, cells)
            merged = grid.merge(self.tasks)
            counts = [Partitionings(merged, Limits(nodes, self.tau)).count for nodes in self.counts]
            if 0 not in counts and sum(counts) <= limit:
                return f" (a grid of {cells} cells has {sum(counts):,})"
        return ""

    def parameters(self) -> dict[str, object]:
        """All of it, as JSON can say it."""
        return {
            "sizes": self.tasks.sizes.tolist(),
            "loads": self.tasks.loads.tolist(),
            "node_counts": list(self.counts),
            "transitions": self.transitions.matrix.tolist(),
            "tau": self.tau,
            "gamma": self.gamma,
            "grid": None if self.grid is None else list(self.grid.positions),
        }

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> MTMProblem:
        """The problem of these parameters; BadRequest says what is wrong with them."""
        return cls(
            Tasks(decoding.numbers(parameters, "sizes"), decoding.numbers(parameters, "loads")),
            Transitions(decoding.wholes(parameters, "node_counts"), decoding.rows(parameters, "transitions")),
            decoding.number(parameters, "tau"),
            decoding.number(parameters, "gamma"),
            None if decoding.member(parameters, "grid") is None else Grid(decoding.wholes(parameters, "grid")),
        )

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same problem, in every process: by this a checkpoint is known to belong to it."""
        return hashlib.sha256(json.dumps(self.parameters(), sort_keys=True).encode()).hexdigest()[:16]
