"""What the papers compare with: Storm's even split, consistent hashing, and Redist.

All three start from any assignment. None of them looks at sizes; the first two do not look at loads either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from planners.errors import BadRequest
from planners.model import Assignment, BinMap, Intervals, Limits, Plan, Tasks, members


def storm(current: Assignment, *, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float | None = None) -> Plan:
    """Gives all nodes equally many consecutive tasks, in the order of nodes: Storm's scheduler.

    >>> storm(Intervals([0, 4, 10]), nodes=3, sizes=[1] * 10, loads=[1] * 10).assignment.cuts
    (0, 3, 7, 10)
    """
    tasks, names = _request(current, nodes, sizes, loads)
    m = current.tasks
    cuts = [(2 * i * m + nodes) // (2 * nodes) for i in range(nodes + 1)]
    return Plan.between("storm", current, Intervals(cuts, names), tasks, tau)


def consistent_hashing(
    current: Assignment,
    *,
    nodes: int,
    sizes: ArrayLike,
    loads: ArrayLike,
    tau: float | None = None,
    seed: int = 0,
    points: int = 100,
) -> Plan:
    """Tasks and `points` points of each node on a ring; a task belongs to the node whose point comes next (Karger).

    A node's points depend on its number and on `seed` only, so that few tasks move if the current assignment came about
    in the same way.
    """
    tasks, names = _request(current, nodes, sizes, loads)
    if points < 1:
        raise BadRequest(f"a node needs at least one point on the ring, not {points}")
    return Plan.between("consistent hashing", current, ring(current.tasks, names, seed, points), tasks, tau)


def ring(tasks: int, nodes: Sequence[int], seed: int = 0, points: int = 100) -> BinMap:
    """Where consistent hashing puts tasks, from nothing.

    >>> before, after = ring(64, [0, 1, 2]).map(), ring(64, [0, 1, 2, 3]).map()
    >>> set(after[before != after].tolist())
    {3}
    """
    circle = sorted((_mix(seed, 1 + node, point), node) for node in nodes for point in range(points))
    places = [place for place, _ in circle]
    return BinMap([circle[bisect_left(places, _mix(seed, 0, task)) % len(circle)][1] for task in range(tasks)], nodes)


def redist(current: Assignment, *, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float) -> Plan:
    """Places all tasks anew, in descending order of load, so that loads are balanced and few tasks move (Gedik).

    A task stays where it is if the load allows it there, or else goes to the least loaded node. Every task counts alike
    as moved, whatever its size. `plan.met` says whether the bound was kept: a greedy placement can miss it.

    >>> redist(BinMap([0, 0, 0, 1]), nodes=2, sizes=[1] * 4, loads=[3, 2, 1, 1], tau=0.2).moves
    [(1, 0, 1)]
    """
    tasks, names = _request(current, nodes, sizes, loads)
    limit = Limits(nodes, tau).load(tasks.total_load)
    load = dict.fromkeys(names, 0.0)
    owners = current.map().tolist()
    for task in np.argsort(-tasks.loads.astype(np.float64), kind="stable").tolist():
        weight = float(tasks.loads[task])
        if owners[task] not in load or load[owners[task]] + weight > limit:
            owners[task] = min(names, key=lambda node: (load[node], node))
        load[owners[task]] += weight
    return Plan.between("redist", current, BinMap(owners, names), tasks, float(tau))


def _request(current: Assignment, nodes: int, sizes: ArrayLike, loads: ArrayLike) -> tuple[Tasks, tuple[int, ...]]:
    """The tasks, and which nodes there shall be: those of the least numbers stay."""
    tasks = Tasks(sizes, loads)
    if len(tasks) != current.tasks:
        raise BadRequest(f"the current assignment has {current.tasks} tasks, and there are {len(tasks)} sizes")
    stay = sorted(current.nodes)[: Limits(nodes, 0.0).nodes]
    return tasks, tuple(sorted(members(current, nodes, stay)))


def _mix(*words: int) -> int:
    """A hash of whole numbers that is the same everywhere (splitmix64, word by word)."""
    value = 0
    for word in words:
        value = (value + word + 0x9E3779B97F4A7C15) & (2**64 - 1)
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        value ^= value >> 31
    return value
