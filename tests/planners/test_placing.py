"""Planners as placements of `worker.scale`: any of them, with any strategy and budget."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

import dataflow
import megaphone
from planners.intervals.ssm import ssm
from planners.model import Tasks
from planners.mtm.choice import Tables, mtm_aware
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.transitions import Transitions
from planners.scaling.placing import by_planner

BINS, KEYS = 12, 600


def _mtm() -> Any:
    tasks, likely = Tasks([1] * BINS, [1] * BINS), Transitions([1, 2, 3, 4], np.full((4, 4), 1 / 4))
    return partial(mtm_aware, tables=Tables.of(project(MTMProblem(tasks, likely, tau=0.5, gamma=0.5))))


def _count(key: int, one: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + one
    return total, [(key, total)]


async def _main(worker: dataflow.Worker, plan: list[tuple[int, Any, Any]]) -> Any:
    found: Counter[int] = Counter()
    with worker.dataflow() as scope:
        data, stream = scope.input()
        totals = megaphone.state_machine(scope.control(), stream, fold=_count, bins=BINS, name="totals")
        probe = totals.inspect(lambda _, row: found.update({row[0]: row[1] - found[row[0]]})).probe()
    if worker.index:
        return found, []  # the others only work
    tables, epoch = [], 0
    for workers, planner, strategy in plan:
        placement = by_planner(planner, tau=0.2 if planner is ssm else 0.5)
        change = worker.scale(workers, placement=placement, strategy=strategy)
        while not change.done:
            data.send([(key, 1) for key in range(KEYS)])
            epoch += 1
            data.advance_to(epoch)
            await probe.wait_passed(epoch - 2)
        await change.wait()
        tables.append(totals.handle.configuration.tolist())
    return found, [epoch, *tables]


def test_ssm_and_mtm_aware_place_bins_while_workers_come_and_go() -> None:
    plan = [
        (3, ssm, megaphone.fluid()),
        (4, ssm, megaphone.batched(2, budget=1 << 16)),
        (2, _mtm(), megaphone.all_at_once()),
        (3, _mtm(), megaphone.fluid()),
    ]
    (_, (epoch, *tables)), *_ = results = dataflow.execute(_main, plan, workers=2, in_process=True)
    for (workers, planner, _), table in zip(plan, tables, strict=True):
        used = [worker for worker, _ in groupby(table)]
        assert len(used) == len(set(used)) <= workers, f"one interval for each worker, or none: {table}"
        assert len(used) == workers or planner is not ssm, f"within tau no worker is idle: {table}"
    best: Counter[int] = Counter()
    for found, _ in results:
        best |= found  # the greatest total of each key
    assert best == dict.fromkeys(range(KEYS), epoch)
