"""What the interval planners share: the request that they check, and the nodes that they give to intervals."""

from __future__ import annotations

from numpy.typing import ArrayLike

from planners.errors import BadRequest
from planners.model import Assignment, Intervals, Limits, Tasks, members


def request(current: Assignment, nodes: int, sizes: ArrayLike, loads: ArrayLike, tau: float) -> tuple[Tasks, Limits]:
    """What every interval planner is asked, checked."""
    if not isinstance(current, Intervals):
        current.intervals()  # if tasks are scattered, this says whose, and what to do
        raise BadRequest("an interval planner starts from Intervals; a BinMap of consecutive tasks has .intervals()")
    tasks = Tasks(sizes, loads)
    if len(tasks) != current.tasks:
        raise BadRequest(f"the current assignment has {current.tasks} tasks, and there are {len(tasks)} sizes")
    return tasks, Limits(nodes, tau)


def assign(current: Intervals, cuts: list[int], owners: list[int | None]) -> Intervals:
    """Gives every interval without an owner a node that has none: one that is there, then a new one."""
    busy = [i for i in range(len(owners)) if cuts[i] < cuts[i + 1]]
    stay = [owner for i in busy if (owner := owners[i]) is not None]
    spare = list(members(current, len(owners), stay)[len(stay) :])
    chosen = [spare.pop(0) if (owner := owners[i]) is None else owner for i in busy]
    return Intervals([0, *(cuts[i + 1] for i in busy), *[cuts[-1]] * len(spare)], chosen + spare)
