"""Operators that work when there is nothing else to do."""

from __future__ import annotations

from collections.abc import Callable

import dataflow
from dataflow.lowlevel import Context, OperatorBuilder
from dataflow.testing import simulate


async def main(worker: dataflow.Worker, work: int) -> list[str]:
    """An operator that has some work for idle steps; the last step of any kind counts."""
    done: list[str] = []

    def construct(context: Context) -> Callable[[], None]:
        left = [work]

        def step() -> None:
            for message, batch in context.inputs[0]:
                done.append("records")
                context.outputs[0].give(message, batch)
            if context.is_idle and left[0]:
                left[0] -= 1
                done.append("idle")
            if left[0]:
                context.activate_when_idle()

        return step

    with worker.dataflow() as scope:
        handle, stream = scope.input()
        builder = OperatorBuilder(scope, "idler")
        builder.add_input(stream)
        builder.add_output()
        (out,) = builder.build(construct)
        probe = out.probe()
    for time in range(5):
        handle.send([time])
        handle.advance_to(time + 1)
        await probe.wait_passed(time)
        done.append("passed")
    return done


def test_main_and_records_go_first() -> None:
    """However much work there is, a time passes with a few idle steps in between."""
    (done,) = dataflow.execute(main, 1000, workers=1)
    parts = [part.split() for part in " ".join(done).split("passed")[:-1]]
    assert len(parts) == 5 and all(part.count("records") == 1 and part.count("idle") <= 2 for part in parts)


def test_all_of_it_is_done() -> None:
    for seed in range(20):
        for done in simulate(main, 7, workers=2, seed=seed):
            assert done.count("records") == 5
