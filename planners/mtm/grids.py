"""Coarser grids of cuts: fewer partitionings, at a price with a bound.

A grid allows cuts at some positions only, which merges the tasks between two of them into one cell. The problem on the
grid is the same problem with fewer, larger tasks. What is lost: move every cut of an exact optimum down to the grid.
Each cut then takes with it the tasks of its cell before it, so

- a node's load grows by at most `load_error`, the most load that a cell has without its last task, and
- a partitioning moves by at most `size_error(n)`, the sum of that for sizes over the n - 1 heaviest cells.

By the triangle inequality of migration costs each step of the moved sequence costs at most twice that more, the first
at most once, because it starts on the grid. Hence, for projected costs from a partitioning on the grid,

    exact(limit) <= grid(limit) <= exact(limit - load_error) + (1 + gamma) / (1 - gamma) * size_error(largest n)

where the limit is the greatest load that a node may have.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planners.errors import BadRequest
from planners.intervals.feasibility import least_maximal_load
from planners.model import SLACK, Tasks, integers


@dataclass(frozen=True, init=False)
class Grid:
    """Where cuts may be: ascending positions from 0 to m.

    >>> Grid([0, 2, 3, 6]).merge(Tasks([1, 2, 3, 4, 5, 6], [1] * 6)).sizes.tolist()
    [3, 3, 15]
    """

    positions: tuple[int, ...]

    def __init__(self, positions: Iterable[int]) -> None:
        checked = integers("the positions of a grid", positions)
        if len(checked) < 2 or checked[0] != 0 or any(b <= a for a, b in pairwise(checked)):
            raise BadRequest(f"a grid ascends from 0 to the number of tasks, and {list(checked)} does not")
        object.__setattr__(self, "positions", checked)

    def __len__(self) -> int:
        return len(self.positions) - 1

    def merge(self, tasks: Tasks) -> Tasks:
        """The cells as tasks."""
        if self.positions[-1] != len(tasks):
            raise BadRequest(f"the grid ends at {self.positions[-1]}, and there are {len(tasks)} tasks")
        return Tasks(*(np.add.reduceat(amounts, self.positions[:-1]) for amounts in (tasks.sizes, tasks.loads)))

    def load_error(self, tasks: Tasks) -> float:
        """By how much a load can grow when cuts are moved down to the grid."""
        return float(self._without_last(tasks.load_prefix()).max())

    def size_error(self, tasks: Tasks, nodes: int) -> float:
        """By how much a partitioning for so many nodes may have to move, to be on the grid."""
        heaviest = np.sort(self._without_last(tasks.size_prefix()))[::-1]
        return float(heaviest[: nodes - 1].sum())

    def cost_error(self, tasks: Tasks, nodes: int, gamma: float) -> float:
        """The bound on the error of projected costs, with at most so many nodes."""
        return (1 + gamma) / (1 - gamma) * self.size_error(tasks, nodes)

    def _without_last(self, prefix: NDArray[np.float64]) -> NDArray[np.float64]:
        positions = np.array(self.positions)
        weights: NDArray[np.float64] = prefix[positions[1:] - 1] - prefix[positions[:-1]]
        return weights


def coarse(tasks: Tasks, cells: int) -> Grid:
    """A grid of so many cells, the heaviest of which is as light as can be: size and load count alike.

    >>> coarse(Tasks([1] * 6, [1, 1, 1, 1, 1, 7]), 3).positions
    (0, 3, 5, 6)
    """
    if cells < 1:
        raise BadRequest(f"a grid has one cell or more, not {cells}")
    sizes, loads = tasks.size_prefix(), tasks.load_prefix()
    weight = sizes / (sizes[-1] or 1.0) + loads / (loads[-1] or 1.0)
    bound = least_maximal_load(weight.tolist(), cells) * (1 + SLACK)
    positions = [0]
    while positions[-1] < len(tasks):
        start = positions[-1]
        positions.append(max(start + 1, int(np.searchsorted(weight, weight[start] + bound, side="right")) - 1))
    while len(positions) - 1 < min(cells, len(tasks)):  # the heaviest task set the bound: there is room to be finer
        insort(positions, _split(positions, weight))
    return Grid(positions)


def _split(positions: list[int], weight: NDArray[np.float64]) -> int:
    """Where to cut the heaviest cell of several tasks, nearest to its middle."""
    start, stop = max(
        ((a, b) for a, b in pairwise(positions) if b - a > 1), key=lambda cell: float(weight[cell[1]] - weight[cell[0]])
    )
    middle = (weight[start] + weight[stop]) / 2
    return start + 1 + int(np.abs(weight[start + 1 : stop] - middle).argmin())
