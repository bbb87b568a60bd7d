"""MTM-aware migration: the choice that is cheap now and leaves cheap migrations to come (section 4.2; 5.2).

The migrations to come are an average over the migration transition matrix, computed beforehand: see `projection` for
how, and `planners.spark` for doing it on a cluster. The choice is a scan of the table for the node count asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from planners.errors import BadRequest, NotInTables
from planners.intervals.assignment import assign, request
from planners.intervals.feasibility import check_feasible
from planners.intervals.matching import first_best, match
from planners.model import Intervals, Limits, Plan, Tasks
from planners.mtm.off_grid import NextCuts, OffGrid, balanced
from planners.mtm.tables import Tables

__all__ = ["Choice", "Tables", "mtm_aware", "mtm_choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A plan, the projected cost of where it leads, and what was minimised: `plan.cost + gamma * projected`."""

    plan: Plan
    projected: float
    total: float


def mtm_aware(
    current: Intervals,
    *,
    nodes: int,
    tables: Tables,
    sizes: ArrayLike | None = None,
    loads: ArrayLike | None = None,
    tau: float | None = None,
) -> Plan:
    """The plan that minimises its own cost and gamma times the projected cost of where it leads.

    Sizes, loads and tau are those of the tables unless given. If loads have changed since, those partitionings are
    looked at which the tables know and which are balanced now; projected costs are scaled to the size that state has
    now. A greater tau than that of the tables is refused: what it newly allows has no projected cost. Costs a few dozen
    nanoseconds for each partitioning looked at; the search ends when the projected cost alone exceeds the best total.
    If the tables are on a grid, some cuts off it are looked at as well (see `off_grid`): that takes milliseconds.
    """
    return mtm_choice(current, nodes=nodes, tables=tables, sizes=sizes, loads=loads, tau=tau).plan


def mtm_choice(
    current: Intervals,
    *,
    nodes: int,
    tables: Tables,
    sizes: ArrayLike | None = None,
    loads: ArrayLike | None = None,
    tau: float | None = None,
) -> Choice:
    """`mtm_aware`, and why: the figures that it compared."""
    known = tables.problem
    sizes = known.tasks.sizes if sizes is None else sizes
    loads = known.tasks.loads if loads is None else loads
    tasks, limits = request(current, nodes, sizes, loads, known.tau if tau is None else tau)
    _check_comparable(tasks, limits, tables)
    growth = _growth(tasks, known.tasks)
    target = _from_tables(current, tables, tasks, limits, growth)
    if known.grid is not None:
        target = OffGrid(tables, current, tasks, limits, growth).better(target)
    cuts, prefix = list(target.cuts), tasks.size_prefix()
    keeps = match(current.cuts, cuts, prefix)
    owners = [None if keep is None else current.nodes[keep] for keep in keeps]
    plan = Plan.between("mtm_aware", current, assign(current, cuts, owners), tasks, limits.tau)
    return Choice(plan, target.projected, target.total)


def _from_tables(current: Intervals, tables: Tables, tasks: Tasks, limits: Limits, growth: float) -> NextCuts:
    """The best of what the tables list."""
    known = tables.problem
    factor = known.gamma * growth
    narrower = limits.tau < known.tau or not np.array_equal(tasks.loads, known.tasks.loads)
    prefix, total, cuts, cost = tasks.size_prefix(), inf, None, 0.0
    for group in tables.rows(limits.nodes):
        if factor * group.least >= total:
            break
        rows, projected = group.read()
        if narrower:
            kept = balanced(rows, tasks, limits)
            rows, projected = rows[kept], projected[kept]
        better, row = first_best(current.cuts, rows, prefix, factor * projected, total)
        if row >= 0:
            total, cuts, cost = better, rows[row].tolist(), float(projected[row])
    if cuts is None:
        raise _nothing_balanced(tasks, limits)
    return NextCuts(tuple(cuts), cost * growth, total)


def _check_comparable(tasks: Tasks, limits: Limits, tables: Tables) -> None:
    known = tables.problem
    if len(tasks) != len(known.tasks):
        raise BadRequest(f"the tables are for {len(known.tasks)} tasks, and there are {len(tasks)}")
    if limits.tau > known.tau:
        raise BadRequest(
            f"the tables know what is balanced within tau = {known.tau:g}, and {limits.tau:g} was asked for: make "
            "tables with the greatest tau that will be needed; smaller ones can be asked of them"
        )


def _growth(now: Tasks, then: Tasks) -> float:
    """Costs are sizes: if all state is twice as large, so is what it will cost to move."""
    return now.total_size / then.total_size if then.total_size else 1.0


def _nothing_balanced(tasks: Tasks, limits: Limits) -> Exception:
    check_feasible(tasks, limits)  # if nothing at all is balanced, this says which tau would do
    return NotInTables(
        f"none of the tables' partitionings for {limits.nodes} nodes is balanced within tau = {limits.tau:g} under "
        "these loads, which are not those the tables were made for: plan this step with ssm, or make the tables anew"
    )
