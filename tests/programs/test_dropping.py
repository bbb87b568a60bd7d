"""Dropping a dataflow, in each of the ways in which it could be busy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
from dataflow.errors import DataflowDropped
from dataflow.run.dataflow import Dataflow
from dataflow.testing import simulate
from tests.oracles import tables
from tests.programs import dropping
from tests.programs.running import CLOSED, Executed, Simulated, gathered

LINES = [["the quick fox", "the dog"], ["the fox"], []]


@pytest.mark.parametrize("doom", dropping.DOOMED)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_what_is_kept_is_not_disturbed(doom: Callable[..., Any], workers: int) -> None:
    for run in (Simulated(workers, 1), Simulated(workers, 2, debug=True), Executed(workers)):
        for dropper in range(workers):
            results = run(dropping.main, CLOSED, doom, dropper, LINES)
            assert gathered(results) == tables.word_count(LINES)


def test_dropping_from_every_worker_at_once() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("doomed") as scope:
            _, probe = dropping.endless_loop(scope)
        worker.drop_dataflow(scope)
        with pytest.raises(DataflowDropped, match="doomed"):
            await probe.wait_passed(0)

    for seed in range(20):
        simulate(main, workers=3, seed=seed)


def test_what_is_complete_can_be_dropped() -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        seen: list[int] = []
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.exchange(lambda n: n).inspect(lambda _, n: seen.append(n)).probe()
        numbers.send([worker.index])
        numbers.close()
        await probe.wait_done()
        worker.drop_dataflow(scope)
        return seen

    for seed in range(20):
        results = simulate(main, workers=3, seed=seed)
        assert sorted(n for result in results for n in result) == [0, 1, 2]


def test_what_is_dropped_in_the_middle_of_something_takes_no_further_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its progress could leave after the goodbye of its worker, which others take for a broken protocol."""
    stepped: list[str] = []
    step = Dataflow.step
    monkeypatch.setattr(Dataflow, "step", lambda flow: (stepped.append(flow.name), step(flow)))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("dropped") as scope:
            numbers, stream = scope.input()
            stream.map(abs).probe()
        await worker.step()
        numbers.send([1, 2, 3])  # there is something to do now
        worker.drop_dataflow(scope)
        stepped.clear()
        for _ in range(3):
            await worker.step()

    dataflow.execute(main, workers=1)
    assert "dropped" not in stepped
