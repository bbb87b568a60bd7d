"""Operators that migrate together, with bins of 32 MiB: as large as those that a budget once did not see (Q4 to Q6)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.migration.strategies import Strategy, all_at_once, batched

MIB = 1 << 20
BINS, ROWS, WORDS = 8, 2048, 1024  # rows of a bin, and words of a row: 16 MiB for each of two operators
HEAVY = [0, 2, 4, 6]  # at worker 0, to begin with
TIMES = 24
STATE = {"count": "i8", "more": ("i8", WORDS - 1)}


@megaphone.fold(state=STATE, output={"key": "i8", "count": "i8"}, compiled=False)
def count(key, state):
    state.count += 1
    return key, state.count


async def main(worker: dataflow.Worker, strategy: Strategy) -> Any:
    """Two operators, one behind the other, as in Q4 to Q6: what came out, and what the controller knew at each time."""
    out: list[Any] = []
    told: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        group = []
        for name in ("first", "second"):
            stream = megaphone.state_machine(
                configuration, stream, key="key", fold=count, keys=megaphone.dense(BINS * ROWS), bins=BINS, name=name,
                interval=0.0,
            )  # fmt: skip
            group.append(stream)
        probe = stream.inspect_batch(lambda time, batch: out.extend((time, *row) for row in batch.rows())).probe()
    controller = megaphone.Controller(control, megaphone.Group(group))
    for time in range(TIMES):
        if worker.index == 0:
            data.send({"key": np.array([HEAVY[time % 4], HEAVY[time % 4] + BINS * (time % ROWS)])})
        data.advance_to(time + 1)
        if time == 5 and worker.index == 0:
            controller.migrate(to=[1] * BINS, strategy=strategy)
        controller.advance_to(time + 1)
        held = sum(int(stream.handle.store.sizes(0, BINS).sum()) for stream in group)
        told.append((controller.configuration, controller.progress, held))
        await probe.wait_passed(time)
    return out, told, controller.busy


def steps_of(told: list[Any]) -> list[list[int]]:
    """The bins of each step that have something in them."""
    pairs = pairwise(configuration for configuration, *_ in told)
    steps = [[b for b in HEAVY if before[b] != after[b]] for before, after in pairs]
    return [step for step in steps if step]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (batched(BINS), [[0], [2], [4], [6]]),  # the usual budget, 8 MiB: a bin that is larger goes alone
        (batched(BINS, budget=64 * MIB), [[0, 2], [4, 6]]),
        (all_at_once(), [[0, 2, 4, 6]]),
    ],
    ids=["usual", "two at a time", "all at once"],
)
def test_four_bins_of_32_mib_go_as_the_budget_says(strategy: Strategy, expected: list[list[int]]) -> None:
    (rows, told, busy), (more, *_, others) = simulate(main, strategy, workers=2, seed=1)
    assert told[4][2] == 4 * 32 * MIB and told[-1][2] == 0 and told[-1][0] == (1,) * BINS
    assert steps_of(told) == expected and not busy and not others
    seen: dict[int, int] = {}
    for _, key, n in sorted(rows + more):
        seen[key] = seen.get(key, 0) + 1
        assert n == seen[key], "state came along"
    assert sum(seen.values()) == 2 * TIMES
