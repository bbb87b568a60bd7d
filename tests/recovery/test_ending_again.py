"""A run that goes on from the end of another, and has nothing to do, ends where that one did."""

from __future__ import annotations

import pytest
import trio

import megaphone
from dataflow import Recovery, Worker
from dataflow.recovery.catalogue import choose
from dataflow.recovery.memory import MemoryStorage
from dataflow.testing import simulate


def count(key: int, value: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
    total = (total or 0) + value
    return total, [(key, total)]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_end_is_never_before_the_beginning(workers: int) -> None:
    storage, seen = MemoryStorage(), list[tuple[int, int]]()

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input("numbers")
            totals = megaphone.state_machine(scope.control(), stream, fold=count, bins=4, name="totals")
            totals.inspect(lambda _, row: seen.append(row))
        for epoch in range(worker.resume_at, 6):
            if worker.index == 0:
                numbers.send([(1, 1)])
            numbers.advance_to(epoch + 1)

    ends: list[object] = []
    for seed in range(4):
        simulate(main, workers=workers, seed=seed, recovery=Recovery(storage))
        manifest = trio.run(choose, storage, "dataflow 0")
        assert manifest is not None and manifest.final
        ends.append(manifest.time)
    assert ends == sorted(ends) and ends[0] >= 6
    assert seen == [(1, total) for total in range(1, 7)]  # once, in the first run
