"""Probes: asking, waiting, and waiting in company."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

import dataflow
from dataflow.errors import ConstructionError
from dataflow.run.worker import pump_of
from tests.engine.harness import RUNS, Run


def probed(worker: dataflow.Worker, **options: Any) -> tuple[Any, Any]:
    """An input, and a probe two operators behind it."""
    with worker.dataflow(**options) as scope:
        handle, stream = scope.input()
        probe = stream.exchange(lambda n: n).map(str).probe()
    return handle, probe


def test_a_probe_follows_the_input(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        handle, probe = probed(worker)
        before = list(probe.frontier), probe.passed(0), probe.done
        handle.send([1, 2, 3])
        handle.advance_to(4)
        await probe.wait_passed(3)
        between = list(probe.frontier), probe.passed(3), probe.done
        await probe.wait_passed(1)
        handle.close()
        await probe.wait_done()
        return before, between, (list(probe.frontier), probe.passed(10**9), probe.done)

    for before, between, after in run(main):
        assert before == ([0], False, False)
        assert between == ([4], True, False)
        assert after == ([], True, True)


def test_waiting_for_what_has_passed_is_a_checkpoint() -> None:
    async def main(worker: dataflow.Worker) -> None:
        handle, probe = probed(worker)
        handle.advance_to(2)
        await probe.wait_passed(1)
        with trio.testing.assert_checkpoints():
            await probe.wait_passed(0)
        with trio.testing.assert_checkpoints():
            await probe.wait_passed(-1)
        handle.close()
        await probe.wait_done()
        with trio.testing.assert_checkpoints():
            await probe.wait_done()

    Run()(main)
    Run(1, seed=0)(main)


@pytest.mark.parametrize("run", [r for r in RUNS if not r.debug], ids=str)
def test_waiting_for_a_time_before_all_times_returns_at_once(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> bool:
        _, probe = probed(worker)
        await probe.wait_passed(-2)
        return bool(probe.passed(-1))

    assert run(main) == [True] * run.workers


def test_waiting_for_a_time_before_all_times_returns_at_once_in_debug_mode_as_well() -> None:
    async def main(worker: dataflow.Worker) -> None:
        _, probe = probed(worker)
        await probe.wait_passed(-2)

    Run(debug=True)(main)


def test_several_wait_for_several_times_and_each_is_woken_for_its_own(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        handle, probe = probed(worker)
        woken: list[int] = []

        async def wait(time: int) -> None:
            await probe.wait_passed(time)
            assert probe.passed(time)
            woken.append(time)

        async with trio.open_nursery() as nursery:
            for time in (2, 0, 1, 1, 0):
                nursery.start_soon(wait, time)
            for time in (1, 2, 3):
                await trio.lowlevel.checkpoint()
                handle.advance_to(time)
                await probe.wait_passed(time - 1)
        assert probe.awaited == []
        return woken

    assert all(sorted(woken) == [0, 0, 1, 1, 2] for woken in run(main))


def test_one_who_gives_up_waiting_leaves_the_others_alone() -> None:
    async def main(worker: dataflow.Worker) -> list[str]:
        handle, probe = probed(worker)
        log: list[str] = []

        async def patient() -> None:
            await probe.wait_passed(0)
            log.append("patient")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(patient)
            with trio.move_on_after(1):
                await probe.wait_passed(0)
            log.append("gave up")
            assert probe.awaited == [0]
            handle.advance_to(1)
        return log

    assert Run(1, seed=0)(main) == [["gave up", "patient"]]


def test_a_waiter_may_be_cancelled_in_the_instant_in_which_it_is_woken() -> None:
    async def main(worker: dataflow.Worker) -> None:
        handle, probe = probed(worker)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(probe.wait_passed, 0)
            await trio.testing.wait_all_tasks_blocked()
            handle.advance_to(1)
            pump_of(worker).step_now()
            nursery.cancel_scope.cancel()
        assert probe.awaited == []

    Run()(main)


def test_a_probe_tells_nothing_inside_the_block() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            probe = stream.probe()
            for ask in (lambda: probe.passed(0), lambda: probe.frontier, lambda: probe.done):
                with pytest.raises(ConstructionError, match="before its dataflow is complete"):
                    ask()
            with pytest.raises(ConstructionError, match="before its dataflow is complete"):
                await probe.wait_passed(0)

    Run()(main)


@pytest.mark.parametrize("time", [0.5, "0", None, (0, 0)])
def test_a_probe_refuses_what_is_no_time(time: Any) -> None:
    async def main(worker: dataflow.Worker) -> None:
        _, probe = probed(worker)
        with pytest.raises(dataflow.TimeError, match="is not a time"):
            probe.passed(time)
        with pytest.raises(dataflow.TimeError, match="is not a time"):
            await probe.wait_passed(time)

    Run()(main)


def test_a_partially_ordered_frontier_passes_what_it_is_not_before(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow(time=dataflow.Product(int, int)) as scope:
            handle, stream = scope.unordered_input()
            probe = stream.exchange(lambda n: n).probe()
        up, right = handle.capability.delayed((0, 2)), handle.capability.delayed((2, 0))
        handle.capability.drop()
        await probe.wait_passed((1, 1))
        state = sorted(probe.frontier), [probe.passed(t) for t in ((0, 1), (0, 2), (1, 0), (2, 0), (5, 5))]
        up.drop()
        right.drop()
        return state

    if run.workers == 1:
        assert run(main) == [([(0, 2), (2, 0)], [True, False, True, False, False])]
    else:
        run(main)  # the others' capabilities come and go; it must only end


def test_a_probe_of_a_stream_that_nobody_feeds_is_done(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> bool:
        with worker.dataflow() as scope:
            probe = scope.source([]).map(str).probe()
        await probe.wait_done()
        return bool(probe.done)

    assert run(main) == [True] * run.workers


def test_no_frontier_is_empty_at_the_start(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> bool:
        handle, probe = probed(worker)
        early = bool(probe.done)
        for _ in range(5):
            early = early or bool(probe.done)
            await trio.lowlevel.checkpoint()
        handle.advance_to(1)
        await probe.wait_passed(0)
        return early

    assert together(main) == [False] * together.workers
