"""Planners as placements: where bins go when workers join and leave, `worker.scale(4, placement=by_planner(ssm))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.intervals.ssm import ssm
from planners.model import BinMap, Intervals, Plan


class PlacesSeen(Protocol):
    """What is known of an operator whose bins are to be placed: `dataflow.members.requests.Places` is."""

    @property
    def workers(self) -> Sequence[int]: ...
    @property
    def table(self) -> NDArray[np.integer]: ...
    @property
    def records(self) -> NDArray[np.integer]: ...
    @property
    def bytes(self) -> NDArray[np.integer]: ...


class PlacementPlanner(Protocol):
    """`ssm`, `oms`, or `partial(mtm_aware, tables=...)`."""

    def __call__(
        self, current: Intervals, /, *, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float
    ) -> Plan: ...


def by_planner(planner: PlacementPlanner = ssm, tau: float = 0.2) -> Callable[[PlacesSeen], list[int]]:
    """A placement for `worker.scale`: where an interval planner puts bins, with loads at most (1 + tau) of the mean.

    A planner numbers new nodes as it likes, and chooses itself who leaves; here the workers are given, so nodes that
    are none of them stand for those that are free. Bins that are scattered are laid in intervals of equal load: these
    planners take no others. A bin of which nothing was reported counts as little. Costs what the planner does.
    """

    def placement(places: PlacesSeen) -> list[int]:
        table = [int(worker) for worker in places.table]
        loads = np.maximum(np.asarray(places.records, np.float64), 1.0)
        bins = BinMap(table)
        if not bins.consecutive:
            return _laid(loads, list(places.workers))
        sizes = np.maximum(np.asarray(places.bytes, np.int64), 1)
        plan = planner(bins.intervals(), nodes=len(places.workers), sizes=sizes, loads=loads, tau=tau)
        return _renamed(plan.assignment.map().tolist(), list(places.workers))

    return placement


def _laid(loads: NDArray[np.float64], workers: list[int]) -> list[int]:
    """Intervals of equal load, one for each worker.

    >>> _laid(np.array([1.0, 1.0, 2.0, 4.0]), [0, 3])
    [0, 0, 0, 3]
    """
    middle = np.cumsum(loads) - loads / 2
    which = np.minimum((middle * len(workers) / loads.sum()).astype(int), len(workers) - 1)
    return [workers[place] for place in which]


def _renamed(nodes: list[int], workers: list[int]) -> list[int]:
    """The same assignment, with these workers only.

    >>> _renamed([0, 1, 1, 2], [0, 1, 5]), _renamed([1, 1, 2], [0, 1])
    ([0, 1, 1, 5], [1, 1, 0])
    """
    free = [worker for worker in workers if worker not in nodes]
    names = {node: node if node in workers else free.pop(0) for node in dict.fromkeys(nodes)}
    return [names[node] for node in nodes]
