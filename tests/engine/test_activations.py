"""Activations: a step that is called though nothing arrived."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import dataflow
from dataflow.lowlevel import OperatorBuilder
from tests.engine.harness import Run


def generator(scope: Any, name: str, make: Any) -> Any:
    """The stream of an operator without inputs that starts with a capability."""
    builder = OperatorBuilder(scope, name)
    builder.add_output(initial=True)
    (stream,) = builder.build(make)
    return stream


def countdown(context: Any) -> Any:
    """Sends 3, 2, 1, one in each activation, and activates itself until it is done."""
    capability, output = context.capability(), context.outputs[0]
    left = [3]
    context.activate()

    def step() -> None:
        output.give(capability, [left[0]])
        left[0] -= 1
        if left[0]:
            capability.downgrade(capability.time + 1)
            context.activate()
        else:
            capability.drop()

    return step


def test_an_operator_may_activate_itself(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            generator(scope, "countdown", countdown).inspect(lambda t, r: seen.append((t, r)))

    run(main)
    assert sorted(seen) == sorted([(0, 3), (1, 2), (2, 1)] * run.workers)


def test_several_activations_before_a_step_are_one() -> None:
    steps: list[int] = []

    def make(context: Any) -> Any:
        for _ in range(5):
            context.activate()
        return lambda input, output: steps.append(1)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.input()[1].unary("counted", make)

    Run(1, seed=0)(main)
    Run()(main)
    assert steps == [1, 1]


def test_activation_after_some_time_of_the_virtual_clock() -> None:
    wakes: list[float] = []

    def make(context: Any) -> Any:
        capability = context.capability()
        context.activate_after(10)
        context.activate_after(2.5)

        def step() -> None:
            wakes.append(round(context.clock.now() - start, 3))
            if len(wakes) == 2:
                context.activate_after(100)
            if len(wakes) == 3:
                capability.drop()

        return step

    start = 0.0

    async def main(worker: dataflow.Worker) -> None:
        nonlocal start
        start = trio.current_time()
        with worker.dataflow() as scope:
            generator(scope, "alarm", make)

    Run(1, seed=0)(main)
    assert wakes == [2.5, 10, 110]


def test_a_timer_alone_keeps_nobody_from_ending() -> None:
    steps: list[int] = []

    def make(context: Any) -> Any:
        context.activate_after(1_000_000)
        return lambda input, output: steps.append(1)

    async def main(worker: dataflow.Worker) -> float:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("alarm", make).probe()
        handle.close()
        await probe.wait_done()
        return trio.current_time()

    (end,) = Run(1, seed=0)(main)
    assert end < 1_000_000 and steps == []


def test_an_operator_that_does_not_watch_frontiers_runs_only_for_messages() -> None:
    steps: list[Any] = []

    def make(context: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            steps.append([batch for _, batch in input])

        return step

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("lazy", make).probe()
        for time in range(5):
            if time == 2:
                handle.send(["x"])
            handle.advance_to(time + 1)
            await probe.wait_passed(time)

    Run()(main)
    assert steps == [[["x"]]]


def test_an_operator_that_watches_frontiers_sees_the_first_and_each_change() -> None:
    frontiers: list[Any] = []

    def make(context: Any) -> Any:
        return lambda input, output: frontiers.append((list(input.frontier), input.done))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("watcher", make, frontier=True).probe()
        await worker.step()
        for time in (1, 4):
            handle.advance_to(time)
            await probe.wait_passed(time - 1)

    Run()(main)
    assert frontiers == [([0], False), ([1], False), ([4], False), ([], True)]


def test_what_a_context_knows(run: Run) -> None:
    known: list[Any] = []

    def make(context: Any) -> Any:
        known.append((context.name, context.worker, context.peers, len(context.inputs), len(context.outputs)))
        return lambda input, output: None

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.input()[1].unary("knowing", make)

    run(main)
    assert sorted(known) == [("knowing (#1)", index, run.workers, 1, 1) for index in range(run.workers)]


@pytest.mark.parametrize("run", [Run(2), Run(2, seed=0)], ids=str)
def test_a_task_of_an_operator_ends_with_the_worker(run: Run) -> None:
    ended: list[int] = []

    def make(context: Any) -> Any:
        async def forever() -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.append(context.worker)

        context.spawn(forever)
        return lambda input, output: None

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.input()[1].unary("spawner", make)
        await trio.lowlevel.checkpoint()

    run(main)
    assert sorted(ended) == [0, 1]


def test_a_task_of_an_operator_that_fails_ends_everything(together: Run) -> None:
    def make(context: Any) -> Any:
        async def fail() -> None:
            raise ConnectionError("gone")

        if context.worker == 1:
            context.spawn(fail)
        return lambda input, output: None

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.input()[1].unary("spawner", make)
        await trio.sleep_forever()

    with pytest.raises(ConnectionError, match="gone"):
        together(main)
