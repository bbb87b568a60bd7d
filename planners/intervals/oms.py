"""OMS: the cheapest sequence of migrations when all of them are known ahead (section 5.1 of the live version).

Where the cuts are matters to later migrations, not who owns which interval (Lemma 5.1). So the partitionings of every
step but the last are enumerated, and a backward dynamic program finds the cheapest way through them; the last step is
what `ssm` does. The paper recurses afresh from each partitioning; here each is solved once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planners.errors import BadRequest
from planners.intervals import matching, ssm_kernel
from planners.intervals.assignment import assign, request
from planners.intervals.feasibility import check_feasible
from planners.intervals.partitionings import Partitionings, check_count
from planners.intervals.ssm import ssm
from planners.model import Intervals, Limits, Plan, Tasks

Floats = NDArray[np.float64]


def oms(
    current: Intervals,
    *,
    steps: Sequence[Limits | tuple[int, float]],
    sizes: ArrayLike,
    loads: ArrayLike,
    most: int = 200_000,
) -> tuple[Plan, ...]:
    """The plans, one for each step (nodes, tau), whose costs have the least sum.

    `most` bounds the partitionings that are enumerated; `TooMany`, with their number, if there are more. Costs the
    product of the numbers of partitionings of neighbouring steps, times some ten nanoseconds for each interval.

    >>> units = [1] * 20
    >>> plans = oms(Intervals([0, 13, 20]), steps=[(3, 0.4), (4, 0.4)], sizes=units, loads=units)
    >>> [plan.cost for plan in plans]
    [4, 2]
    """
    limits = [step if isinstance(step, Limits) else Limits(*step) for step in steps]
    if not limits:
        raise BadRequest("a sequence has at least one step (nodes, tau)")
    tasks, _ = request(current, limits[0].nodes, sizes, loads, limits[0].tau)
    for limit in limits:
        check_feasible(tasks, limit)
    every = [Partitionings(tasks, limit) for limit in limits[:-1]]
    check_count(every, most)
    choices = _choose(current, [each.cuts() for each in every], tasks, limits[-1])
    plans: list[Plan] = []
    for cuts, limit in zip(choices, limits, strict=False):
        plans.append(_towards(plans[-1].assignment.intervals() if plans else current, cuts, tasks, limit.tau))
    last = plans[-1].assignment.intervals() if plans else current
    final = ssm(last, nodes=limits[-1].nodes, sizes=tasks.sizes, loads=tasks.loads, tau=limits[-1].tau)
    return (*plans, Plan.between("oms", last, final.assignment, tasks, limits[-1].tau))


def _choose(current: Intervals, every: list[NDArray[np.int16]], tasks: Tasks, final: Limits) -> list[tuple[int, ...]]:
    """The cut lists to go through, one for each step but the last."""
    if not every:
        return []
    prefix = tasks.size_prefix()
    ahead = [_final_costs(every[-1], tasks, final)]  # by step and partitioning, the least cost of all that follows
    for rows, following in zip(every[-2::-1], every[:0:-1], strict=True):
        costs = ahead[0]
        ahead.insert(0, np.array([(matching.costs(row, following, prefix) + costs).min() for row in rows]))
    chosen = []
    at = np.array(current.cuts)
    for rows, costs in zip(every, ahead, strict=True):
        at = rows[np.argmin(matching.costs(at, rows, prefix) + costs)]
        chosen.append(tuple(at.tolist()))
    return chosen


def _final_costs(rows: NDArray[np.int16], tasks: Tasks, limits: Limits) -> Floats:
    """By partitioning, the cost of the cheapest migration from it to the last node count."""
    size, load = tasks.size_prefix(), tasks.load_prefix()
    starts = ssm_kernel.window_starts(load, limits.load(load[-1]))
    gains = [ssm_kernel.solve(size, starts, np.unique(row).astype(np.int64), limits.nodes)[0][-1, -1] for row in rows]
    return np.full(len(rows), size[-1]) - np.array(gains, np.float64)


def _towards(current: Intervals, cuts: tuple[int, ...], tasks: Tasks, tau: float) -> Plan:
    """The plan to a given partitioning: every interval goes to the node that keeps it in the best matching."""
    keeps = matching.match(current.cuts, cuts, tasks.size_prefix())
    owners = [None if keep is None else current.nodes[keep] for keep in keeps]
    return Plan.between("oms", current, assign(current, list(cuts), owners), tasks, tau)
