"""Sources that are held back by what is outstanding."""

from __future__ import annotations

from typing import Any

import pytest

import dataflow
from dataflow.testing import simulate


async def one_by_one(worker: dataflow.Worker, ahead: int) -> list[Any]:
    seen: list[Any] = []
    with worker.dataflow() as scope:
        numbers = scope.source(range(5), batch=1, ahead=ahead)
        numbers.exchange(lambda n: n).inspect(lambda time, n: seen.append((time, n)))
    return seen


@pytest.mark.parametrize(
    "ahead",
    [
        1,
        2,
        8,
    ],
)
def test_every_allowance_gets_to_the_end(ahead: int) -> None:
    for seed in range(5):
        seen = simulate(one_by_one, ahead, workers=2, seed=seed)
        assert sorted(seen[0] + seen[1]) == sorted([(n, n) for n in range(5)] * 2)
