"""Progressive mini-migrations: a migration in steps, in each of which a node moves few bins (section 3.2).

The papers limit the tasks that a node takes in, because those are suspended meanwhile. The tasks that a node gives away
are limited here too, so that neither link is crowded. A limit on the bins of a step altogether is `megaphone.batched`.

The strategies are those of `megaphone`, which is imported when the first one is made: planning alone needs none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planners.errors import BadRequest, PlannerError
from planners.links.schedule import Schedule, Transfer
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


def scheduled(schedule: Schedule, gap: int = 0, counts: Sequence[int] | NDArray[np.integer] | None = None) -> Strategy:
    """A strategy that moves bins in the order of a schedule, a phase at a time.

    `counts`: by task of the plan, how many finest bins it has (`controller.counts`); one, unless given. A bin that the
    schedule sends in pieces is cut along its finest bins, which hold about as much each: a piece is as many of them as
    its share says, and a bin that cannot be cut so finely goes with the pieces that have more of it. The bins must be
    where the schedule's plan has them.
    """
    from megaphone.migration.strategies import Change, Strategy

    transfers: dict[int, list[Transfer]] = {}
    for transfer in sorted(schedule.transfers, key=lambda each: each.phase):
        transfers.setdefault(transfer.task, []).append(transfer)
    last = max(transfers, default=-1)
    sizes = np.ones(last + 1, np.int64) if counts is None else np.asarray(counts, np.int64)
    if last >= len(sizes):
        raise BadRequest(f"the schedule moves task {last}, and counts are of {len(sizes)} tasks")
    firsts = np.cumsum(sizes) - sizes
    route: dict[int, Transfer] = {}  # by finest bin
    for task, pieces in transfers.items():
        route |= dict(
            zip(range(firsts[task], firsts[task] + sizes[task]), _dealt(pieces, int(sizes[task])), strict=True)
        )

    def cut(changes: list[Change]) -> list[list[Change]]:
        steps: dict[int, list[Change]] = {}
        for change in changes:
            bins = range(change.bin, change.bin + change.count)
            for bin in bins:
                transfer = route.get(bin)
                if transfer is None or (transfer.origin, transfer.destination) != (change.origin, change.destination):
                    raise PlannerError(
                        f"bin {bin} is to move from {change.origin} to {change.destination}, which is not what was "
                        "scheduled: plan again from where bins are now"
                    )
            for phase, run in groupby(bins, key=lambda bin: route[bin].phase):
                first, *more = run
                steps.setdefault(phase, []).append(Change(first, change.origin, change.destination, 1 + len(more)))
        return [steps[phase] for phase in sorted(steps)]

    return Strategy("scheduled", cut, gap)


def _dealt(pieces: Sequence[Transfer], count: int) -> list[Transfer]:
    """By finest bin of a task, the piece that it goes with: in order, as many for each as its share says."""
    amounts = np.array([piece.amount for piece in pieces], np.float64)
    shares = np.cumsum(amounts) / amounts.sum() if amounts.sum() else np.ones(len(pieces))
    places = np.searchsorted(shares, (np.arange(count) + 0.5) / count)
    return [pieces[min(place, len(pieces) - 1)] for place in places.tolist()]


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
