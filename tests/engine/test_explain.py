"""worker.explain(): for a dataflow that seems stuck, who holds which time, and why."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import dataflow
from dataflow.errors import Stuck
from tests.engine.harness import Run


def keep(kept: list[Any]) -> Any:
    """An operator that retains a capability for each message, and drops none."""

    def make(context: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            for message, _ in input:
                kept.append(message.retain())

        return step

    return make


def stuck(main: Any, workers: int = 1) -> str:
    with pytest.raises(Stuck, match="nothing can happen any more") as failure:
        Run(workers, seed=0)(main)
    return str(failure.value)


def test_an_input_that_does_not_advance() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop") as scope:
            handle, stream = scope.input("clicks")
            probe = stream.map(str).probe()
        handle.advance_to(3)
        await probe.wait_passed(5)

    text = stuck(main)
    assert "worker 0 of 1:\n  'shop': 2 operators, idle\n" in text
    assert "clicks (#0) holds 1 capability at 3 (on this worker): not advanced past it, nor closed" in text
    assert "somebody waits for <probe of output 0 of map (#1)> to pass 5; held by clicks (#0) at 3" in text


def test_the_input_of_another_worker() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input("clicks")
            probe = stream.probe()
        handle.advance_to(7 if worker.index == 0 else 2)
        if worker.index == 0:
            await probe.wait_passed(6)
        else:
            await trio.Event().wait()

    first, second = stuck(main, workers=2).split("worker 1 of 2:")
    assert "clicks (#0) holds 1 capability at 2 (on another worker)" in first
    assert "clicks (#0) holds 1 capability at 7 (on this worker)" in first
    assert "clicks (#0) holds 1 capability at 2 (on this worker)" in second


def test_an_operator_that_forgot_a_capability() -> None:
    kept: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("forgetful", keep(kept))
        handle.send(["x"], at=4)

    text = stuck(main)
    assert "forgetful (#1) holds 1 capability at 4 (on this worker)" in text
    assert "input" not in text


def test_messages_that_nobody_takes() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("lazy", lambda _: lambda i, o: None)
        handle.send([1])
        handle.send([2])

    assert "2 messages at 0 to lazy (#1) (2 queued on this worker)" in stuck(main)


def test_a_dataflow_that_only_others_have_built() -> None:
    async def main(worker: dataflow.Worker) -> None:
        if worker.index == 0:
            with worker.dataflow() as scope:
                scope.input()
        await trio.Event().wait()

    assert "worker 0 built dataflow number 0; this worker has not" in stuck(main, workers=2)


def test_what_is_about_to_run() -> None:
    async def main(worker: dataflow.Worker) -> str:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map(str)
        handle.send([1])
        return worker.explain()

    (text,) = Run()(main)
    assert "busy" in text and "map (#1) is about to run" in text


def test_when_all_is_done() -> None:
    async def main(worker: dataflow.Worker) -> str:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()
        handle.close()
        await probe.wait_done()
        await worker.step()
        return worker.explain()

    assert Run()(main) == ["worker 0 of 1:\n  every dataflow is complete"]


def test_before_anything_is_built() -> None:
    async def main(worker: dataflow.Worker) -> str:
        return worker.explain()

    assert Run()(main) == ["worker 0 of 1:\n  every dataflow is complete"]


def test_partially_ordered_times() -> None:
    async def main(worker: dataflow.Worker) -> str:
        with worker.dataflow(time=dataflow.Product(int, int)) as scope:
            handle, _ = scope.unordered_input("events")
        handle.capability.delayed((0, 3))
        handle.capability.downgrade((2, 0))
        await worker.step()
        return worker.explain()

    (text,) = Run()(main)
    assert text.index("capability at (0, 3)") < text.index("capability at (2, 0)")


def test_a_loop_that_is_held_inside() -> None:
    kept: list[Any] = []

    async def main(worker: dataflow.Worker) -> str:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            with scope.nested() as inner:
                probe = stream.enter(inner).unary("forgetful", keep(kept)).leave().probe()
        handle.send(["x"])
        handle.advance_to(1)
        while not kept:
            await worker.step()
        with trio.move_on_after(0.01):
            await probe.wait_passed(0)
        text = worker.explain()
        kept[0].drop()
        return text

    (text,) = Run()(main)
    assert "forgetful (#2) holds 1 capability at (0, 0) (on this worker)" in text
    assert "input (#0) holds 1 capability at 1" in text


def test_a_waiter_is_told_which_operator_inside_a_loop_it_waits_for() -> None:
    kept: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.iterate(lambda s: s.unary("forgetful", keep(kept))).probe()
        handle.send(["x"])
        handle.advance_to(1)
        await probe.wait_passed(0)

    assert "to pass 0; held by forgetful" in stuck(main)
