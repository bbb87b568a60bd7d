"""The barrier, where workers do not start together."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import trio

import dataflow
from dataflow.testing import simulate
from tests.programs import barrier


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_nobody_goes_ahead_of_a_worker_that_has_not_started(workers: int) -> None:
    async def late(worker: dataflow.Worker, draw: Any, started: list[int]) -> list[Any]:
        if worker.index == 0:
            await trio.sleep(100)  # virtual seconds: everybody else has done all that they can
        started.append(draw())
        return await barrier.main(worker, 3, draw)

    for seed in range(20):
        started: list[int] = []
        logs = simulate(late, count().__next__, started, workers=workers, seed=seed)
        last_start = max(started)
        firsts = [log[0] for log in logs]
        seconds = [log[1] for log in logs]
        assert [round for _, round in firsts] == [0] * workers
        # Round 0 asks nobody: even a worker that is alone may be in it. Round 1 needs round 0 of the latecomer.
        assert all(ticket > last_start for ticket, _ in seconds)


def test_one_worker_that_dawdles_holds_the_others() -> None:
    """Worker 0 keeps round 2 until main says so; until then nobody is told of round 3."""

    async def main(worker: dataflow.Worker) -> list[int]:
        rounds: list[int] = []
        held: list[dataflow.Capability] = []

        def make(context: Any) -> Any:
            due = context.notificator()
            due.notify_at(context.capability())

            def step(input: Any, output: Any) -> None:
                for capability in due:
                    rounds.append(capability.time)
                    if capability.time == 2 and worker.index == 0 and not held:
                        held.append(capability.clone())
                    if capability.time < 5:
                        due.notify_at(capability.delayed(capability.time + 1))

            return step

        with worker.dataflow() as scope:
            loop, cycle = scope.feedback(1)
            cycle.unary("dawdle", make, frontier=True, initial=True).connect_loop(loop)
        await trio.sleep(100)
        assert rounds == [0, 1, 2]
        await trio.sleep(100)  # until everybody has looked
        for capability in held:
            capability.drop()
        return rounds

    for seed in range(10):
        assert simulate(main, workers=3, seed=seed) == [[0, 1, 2, 3, 4, 5]] * 3
