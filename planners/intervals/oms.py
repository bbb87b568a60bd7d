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

    `sizes` and `loads` by task, or with a row for each step where they change along the sequence: those that a step's
    migration finds.

    `most` bounds the partitionings that are enumerated; `TooMany`, with their number, if there are more. Costs the
    product of the numbers of partitionings of neighbouring steps, times some ten nanoseconds for each interval.

    >>> units = [1] * 20
    >>> plans = oms(Intervals([0, 13, 20]), steps=[(3, 0.4), (4, 0.4)], sizes=units, loads=units)
    >>> [plan.cost for plan in plans]
    [4, 2]
    >>> growing = [units, [10] * 20]
    >>> plans = oms(Intervals([0, 13, 20]), steps=[(3, 0.4), (4, 0.4)], sizes=growing, loads=units)
    >>> [plan.cost for plan in plans]
    [6, 0]
    """
    limits = [step if isinstance(step, Limits) else Limits(*step) for step in steps]
    if not limits:
        raise BadRequest("a sequence has at least one step (nodes, tau)")
    amounts = zip(_by_step("sizes", sizes, len(limits)), _by_step("loads", loads, len(limits)), strict=True)
    tasks = [request(current, limit.nodes, *each, limit.tau)[0] for limit, each in zip(limits, amounts, strict=True)]
    for each, limit in zip(tasks, limits, strict=True):
        check_feasible(each, limit)
    every = [Partitionings(*step) for step in zip(tasks[:-1], limits[:-1], strict=True)]
    check_count(every, most)
    choices = _choose(current, [each.cuts() for each in every], tasks, limits[-1])
    plans: list[Plan] = []
    for cuts, each, limit in zip(choices, tasks, limits, strict=False):
        plans.append(_towards(plans[-1].assignment.intervals() if plans else current, cuts, each, limit.tau))
    last, final = plans[-1].assignment.intervals() if plans else current, tasks[-1]
    found = ssm(last, nodes=limits[-1].nodes, sizes=final.sizes, loads=final.loads, tau=limits[-1].tau)
    return (*plans, Plan.between("oms", last, found.assignment, final, limits[-1].tau))


def _by_step(what: str, amounts: ArrayLike, steps: int) -> list[ArrayLike]:
    """What each step finds: the same, or a row of its own."""
    rows = list(np.asarray(amounts)) if np.ndim(amounts) == 2 else [amounts] * steps
    if len(rows) != steps:
        raise BadRequest(f"there are {steps} steps, and {len(rows)} rows of {what}: one for each step, or one for all")
    return rows


def _choose(
    current: Intervals, every: list[NDArray[np.int16]], tasks: list[Tasks], final: Limits
) -> list[tuple[int, ...]]:
    """The cut lists to go through, one for each step but the last. `tasks`: by step."""
    if not every:
        return []
    prefixes = [each.size_prefix() for each in tasks]
    ahead = [_final_costs(every[-1], tasks[-1], final)]  # by step and partitioning, the least cost of all that follows
    for rows, following, prefix in zip(every[-2::-1], every[:0:-1], prefixes[-2:0:-1], strict=True):
        costs = ahead[0]
        ahead.insert(0, np.array([(matching.costs(row, following, prefix) + costs).min() for row in rows]))
    chosen = []
    at = np.array(current.cuts)
    for rows, costs, prefix in zip(every, ahead, prefixes, strict=False):
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
