"""delay: records move to later times, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

import dataflow
from tests.engine.harness import Run, notes, outcome, timed


def test_delay_moves_records_to_later_times(run: Run) -> None:
    out = outcome(run, lambda s: s.delay(lambda t, n: t + n), [[0, 1, 2], [0, 1], [], [0]])
    assert out == timed([0], [1, 0], [2, 1], [0])


def test_delay_to_windows(run: Run) -> None:
    epochs = [[t] for t in range(7)]
    out = outcome(run, lambda s: s.delay(lambda t, _: t - t % 3 + 2).count(), epochs)
    assert out == [(2, 3), (5, 3), (8, 1)]


def test_a_delayed_record_holds_its_new_time_and_not_its_old() -> None:
    async def main(worker: dataflow.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.delay(lambda t, _: t + 5).probe()
        numbers.send(["x"])
        numbers.advance_to(3)
        await probe.wait_passed(2)
        there = list(probe.frontier)
        numbers.advance_to(9)
        await probe.wait_passed(8)
        return [there, list(probe.frontier)]

    assert Run(1, seed=1)(main) == [[[3], [9]]]


def test_delay_to_an_earlier_time_is_refused(run: Run) -> None:
    with pytest.raises(dataflow.CapabilityError, match=r"delay \(#1\).*not later") as failure:
        outcome(run, lambda s: s.delay(lambda t, _: t - 1), [[], ["x"]])
    assert "delay (#1)" in notes(failure.value)


def test_delay_to_something_that_is_no_time_is_refused() -> None:
    with pytest.raises(dataflow.TimeError, match=r"1\.5 is not a time"):
        outcome(Run(), lambda s: s.delay(lambda t, _: 1.5), [["x"]])


def test_delay_to_an_earlier_time_is_refused_also_if_another_record_waits_for_that_time() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            letters, stream = scope.input()
            stream.delay(lambda t, _: 2)
        letters.send(["from 0 to 2"])
        letters.send(["from 3 back to 2"], at=3)

    with pytest.raises(dataflow.CapabilityError):
        Run()(main)
