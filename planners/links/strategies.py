"""Progressive mini-migrations: a migration in steps, in each of which a node moves few bins (section 3.2).

The papers limit the tasks that a node takes in, because those are suspended meanwhile. The tasks that a node gives away
are limited here too, so that neither link is crowded. A limit on the bins of a step altogether is `megaphone.batched`.

The strategies are those of `megaphone`, which is imported when the first one is made: planning alone needs none of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from planners.errors import BadRequest, PlannerError
from planners.links.schedule import Schedule
from planners.model import Plan, TaskMoves

if TYPE_CHECKING:
    from megaphone.migration.strategies import Change, Strategy


def progressive(limit: int, gap: int = 0) -> Strategy:
    """A strategy of the fewest steps in each of which every node takes in, and gives away, at most `limit` bins.

    >>> [len(step) for step in progressive(2).steps([0, 0, 0, 0, 0, 1], [1, 1, 1, 2, 2, 0])]
    [3, 2, 1]
    """
    if limit < 1:
        raise BadRequest(f"a node must be allowed to move at least one bin at a time, not {limit}")
    if gap < 0:
        raise BadRequest(f"a gap cannot be negative: {gap}")
    from megaphone.migration.strategies import Strategy

    return Strategy(f"at most {limit} bins a node", lambda changes: _cut(changes, limit), gap)


def mini_migrations(plan: Plan, limit: int) -> list[TaskMoves]:
    """The moves of a plan in the steps of `progressive`."""
    from megaphone.migration.strategies import Change

    changes = [Change(task, origin, destination) for task, origin, destination in plan.moves]
    return [[(c.bin, c.origin, c.destination) for c in step] for step in progressive(limit).cut(changes)]


def scheduled(schedule: Schedule, gap: int = 0) -> Strategy:
    """A strategy that moves bins in the order of a schedule, a phase at a time.

    Only for schedules of whole bins: a bin in pieces belongs to several phases. The bins must be where the schedule's
    plan has them.
    """
    if schedule.pieces:
        raise BadRequest("bins in pieces belong to several phases: ask for schedule(plan, pieces=False)")
    from megaphone.migration.strategies import Strategy

    route = {transfer.task: transfer for transfer in schedule.transfers}

    def cut(changes: list[Change]) -> list[list[Change]]:
        steps: dict[int, list[Change]] = {}
        for change in changes:
            transfer = route.get(change.bin)
            if transfer is None or (transfer.origin, transfer.destination) != (change.origin, change.destination):
                raise PlannerError(
                    f"bin {change.bin} is to move from {change.origin} to {change.destination}, which is not what was "
                    "scheduled: plan again from where bins are now"
                )
            steps.setdefault(transfer.phase, []).append(change)
        return [steps[phase] for phase in sorted(steps)]

    return Strategy("scheduled", cut, gap)


def _cut(changes: list[Change], limit: int) -> list[list[Change]]:
    """An edge colouring in which each colour meets a node at most `limit` times (de Werra).

    With s steps, a node of d bins is split into parts of s bins each, the last of fewer; there are at most `limit`
    parts if s is at least d / limit. Each part meets each of s colours at most once, and s colours suffice (König).
    """
    from megaphone.migration.strategies import Change, matched

    sent, received = Counter(c.origin for c in changes), Counter(c.destination for c in changes)
    steps = max((-(-count // limit) for count in (*sent.values(), *received.values())), default=1)
    out: Counter[int] = Counter()
    into: Counter[int] = Counter()
    names: dict[tuple[int, int], int] = {}
    parts = []
    for number, change in enumerate(changes):
        origin = names.setdefault((change.origin, out[change.origin] // steps), len(names))
        destination = names.setdefault((change.destination, into[change.destination] // steps), len(names))
        out[change.origin] += 1
        into[change.destination] += 1
        parts.append(Change(number, origin, destination))
    return [[changes[part.bin] for part in step] for step in matched().cut(parts)]
