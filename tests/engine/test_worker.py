"""The worker: several dataflows, dropping one, stepping by hand, and rest when there is nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
import trio.testing

import dataflow
from dataflow.errors import ConstructionError, DataflowDropped
from dataflow.run.worker import pump_of
from tests.engine.harness import ALONE, Run


@contextmanager
def counting_steps(worker: dataflow.Worker) -> Iterator[list[int]]:
    """Counts the steps that the worker takes."""
    counts = [0]
    pump = pump_of(worker)
    step_now = pump.step_now

    def counted() -> None:
        counts[0] += 1
        step_now()

    pump.step_now = counted  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        del pump.step_now  # type: ignore[method-assign]


def simple(worker: dataflow.Worker, name: str | None = None) -> tuple[Any, Any, Any]:
    """A scope, its input, and a probe behind an exchange."""
    with worker.dataflow(name) as scope:
        handle, stream = scope.input()
        probe = stream.exchange(lambda n: n).probe()
    return scope, handle, probe


# Rest


@pytest.mark.parametrize("workers", [1, 3])
def test_an_idle_worker_takes_no_steps(workers: int) -> None:
    counted: list[int] = []
    everybody = trio.Event()  # whoever finishes says so to the others, who would step

    async def main(worker: dataflow.Worker) -> None:
        _, handle, probe = simple(worker)
        handle.send([1, 2, 3])
        handle.advance_to(1)
        await probe.wait_passed(0)
        await trio.testing.wait_all_tasks_blocked()
        with counting_steps(worker) as counts:
            for _ in range(50):
                await trio.lowlevel.checkpoint()
            await trio.sleep(0.01)
        counted.append(counts[0])
        if len(counted) == worker.peers:
            everybody.set()
        await everybody.wait()

    Run(workers)(main)
    assert counted == [0] * workers


def test_a_worker_sleeps_through_virtual_days() -> None:
    async def main(worker: dataflow.Worker) -> int:
        _, handle, probe = simple(worker)
        with counting_steps(worker) as counts:
            for day in range(1, 4):
                await trio.sleep(86_400)
                handle.advance_to(day)
                await probe.wait_passed(day - 1)
        return counts[0]

    async def run() -> list[Any]:
        from dataflow.execute import execute_async

        return await execute_async(main)

    (steps,) = trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    assert 3 <= steps <= 12


def test_an_input_wakes_the_worker_and_nothing_else_does() -> None:
    async def main(worker: dataflow.Worker) -> list[int]:
        _, handle, probe = simple(worker)
        await trio.testing.wait_all_tasks_blocked()
        taken: list[int] = []
        for use in (
            lambda: handle.advance_to(0),
            lambda: handle.send([]),
            lambda: probe.passed(0),
            lambda: handle.send([1]),
            lambda: handle.advance_to(1),
        ):
            with counting_steps(worker) as counts:
                use()
                await trio.testing.wait_all_tasks_blocked()
            taken.append(counts[0])
        return taken

    ((*nothing, send, advance),) = Run()(main)
    assert nothing == [0, 0, 0] and send >= 1 and advance >= 1


def test_operators_without_work_are_not_scheduled() -> None:
    ran: list[str] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            busy, stream = scope.input()
            idle, other = scope.input()
            stream.inspect_batch(lambda *_: ran.append("busy"))
            other.inspect_batch(lambda *_: ran.append("idle"))
            quiet = other.unary("quiet", lambda _: lambda i, o: ran.append("quiet"))
            probe = stream.concat(quiet).probe()
        for time in range(10):
            busy.send([time])
            busy.advance_to(time + 1)
            idle.advance_to(time + 1)
            await probe.wait_passed(time)

    Run()(main)
    assert ran == ["busy"] * 10


# Steps by hand


def test_step_does_what_there_is_to_do_and_says_whether_there_is_more(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> bool:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.map(lambda n: n + 1).inspect(lambda _, n: seen.append(n))
        handle.send([worker.index])
        with trio.testing.assert_checkpoints():
            more = await worker.step()
        assert worker.index + 1 in seen
        return more

    assert all(isinstance(more, bool) for more in run(main))
    assert Run()(main) == [False]


@pytest.mark.parametrize(
    "run",
    [
        *ALONE,
        Run(2),
        Run(3, debug=True),
        Run(2, seed=0),
    ],
    ids=str,
)
def test_a_program_may_step_in_place_of_waiting(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        _, handle, probe = simple(worker)
        handle.send([1, 2])
        handle.advance_to(1)
        while not probe.passed(0):
            await worker.step()

    run(main)


def test_a_worker_cannot_be_stepped_from_inside_an_operator() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.inspect(lambda *_: pump_of(worker).step_now())
        handle.send([1])

    with pytest.raises(ConstructionError, match="cannot be stepped from inside an operator"):
        Run()(main)


# Several dataflows


def test_several_dataflows_side_by_side(run: Run) -> None:
    seen: dict[int, list[Any]] = {0: [], 1: [], 2: []}

    async def main(worker: dataflow.Worker) -> None:
        handles, probes = [], []
        for number in range(3):
            with worker.dataflow() as scope:
                handle, stream = scope.input()
                out = stream.exchange(lambda n: n).map(lambda n, number=number: n * number)
                probes.append(out.inspect(lambda t, n, number=number: seen[number].append(n)).probe())
                handles.append(handle)
        for number in (2, 0, 1):
            handles[number].send([worker.index + 1])
            handles[number].advance_to(1)
            await probes[number].wait_passed(0)

    run(main)
    for number in range(3):
        assert sorted(seen[number]) == [number * (index + 1) for index in range(run.workers)]


def test_one_dataflow_may_feed_another(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("second") as scope:
            second, stream = scope.input()
            stream.inspect(lambda t, n: seen.append(n))
        with worker.dataflow("first") as scope:
            first, stream = scope.input()
            done = stream.exchange(lambda n: n).sink(lambda t, batch: second.send([n * 10 for n in batch])).probe()
        first.send([worker.index])
        first.advance_to(1)
        await done.wait_passed(0)

    run(main)
    assert sorted(seen) == [index * 10 for index in range(run.workers)]


def test_a_dataflow_built_after_another_is_complete(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> list[bool]:
        ends = []
        for _ in range(3):
            _, handle, probe = simple(worker)
            handle.send([1])
            handle.close()
            await probe.wait_done()
            ends.append(bool(probe.done))
        return ends

    assert run(main) == [[True] * 3] * run.workers


# Dropping


def test_whoever_waits_for_a_dropped_dataflow_is_told(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> str:
        scope, _, probe = simple(worker, "doomed")
        _, other, other_probe = simple(worker, "other")

        async def drop() -> None:
            other.advance_to(1)
            await other_probe.wait_passed(0)
            if worker.index == 1:
                worker.drop_dataflow(scope)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drop)
            with pytest.raises(DataflowDropped) as failure:
                await probe.wait_passed(0)
        other.send([1, 2, 3])
        other.advance_to(2)
        await other_probe.wait_passed(1)
        return str(failure.value)

    for index, message in enumerate(together(main)):
        assert "'doomed'" in message
        assert ("was dropped" if index == 1 else "worker 1 dropped") in message


@pytest.mark.parametrize("run", ALONE, ids=str)
def test_a_dropped_dataflow_refuses_everything(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        scope, handle, probe = simple(worker, "doomed")
        worker.drop_dataflow(scope)
        for use in (lambda: handle.send([1]), lambda: handle.advance_to(5)):
            with pytest.raises(DataflowDropped, match="'doomed' was dropped: nothing can be sent to it"):
                use()
        with pytest.raises(DataflowDropped):
            await probe.wait_passed(0)
        handle.close()
        worker.drop_dataflow(scope)
        await worker.step()

    run(main)


def test_dropping_with_everything_under_way(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("doomed") as scope:
            handle, stream = scope.input()
            stream.broadcast().iterate(lambda s: s.map(lambda n: n + 1).exchange(lambda n: n))  # for ever
        handle.send([1])
        for _ in range(3):
            await worker.step()
        if worker.index == 0:
            worker.drop_dataflow(scope)

    together(main)


def test_a_dataflow_that_is_dropped_before_the_others_have_built_it(together: Run) -> None:
    async def main(worker: dataflow.Worker) -> str:
        _, go, ready = simple(worker, "go")
        if worker.index == 0:
            scope, handle, _ = simple(worker, "doomed")
            handle.send([1, 2, 3])
            worker.drop_dataflow(scope)
            await worker.step()
            go.close()
            return "dropped"
        go.close()
        await ready.wait_done()
        _, handle, probe = simple(worker, "doomed")
        try:
            handle.send([1])
            await probe.wait_passed(0)
        except DataflowDropped:
            return "told"
        return "not told"

    dropped, *others = together(main)
    assert dropped == "dropped" and set(others) == {"told"}


def test_dropping_one_with_sources_and_sinks(together: Run) -> None:
    async def forever() -> Any:
        while True:
            await trio.lowlevel.checkpoint()
            yield 1

    async def write(time: int, batch: list[int]) -> None:
        await trio.lowlevel.checkpoint()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("doomed") as scope:
            probe = scope.source(forever).exchange(lambda n: n).sink(write).probe()
        if worker.index == 0:
            await probe.wait_passed(2)
            worker.drop_dataflow(scope)

    together(main)


def test_an_operator_may_drop_its_own_dataflow() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("doomed") as scope:
            handle, stream = scope.input()
            stream.inspect(lambda *_: worker.drop_dataflow(scope)).map(str).inspect(print)
        handle.send([1])
        await worker.step()
        with pytest.raises(DataflowDropped):
            handle.send([2])

    Run()(main)


def test_dropping_a_complete_dataflow_does_nothing(run: Run) -> None:
    async def main(worker: dataflow.Worker) -> None:
        scope, handle, probe = simple(worker)
        handle.close()
        await probe.wait_done()
        worker.drop_dataflow(scope)

    run(main)


def test_dropping_inside_the_block_is_refused_clearly() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.input()
            worker.drop_dataflow(scope)

    with pytest.raises(ConstructionError):
        Run()(main)


def test_an_asynchronous_sink_stops_when_its_dataflow_is_dropped() -> None:
    written: list[Any] = []

    async def write(time: int, batch: list[int]) -> None:
        await trio.sleep(1)
        written.extend(batch)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(write)
        for n in range(5):
            handle.send([n])
        await trio.sleep(1.5)
        worker.drop_dataflow(scope)
        await trio.sleep(10)

    Run(1, seed=0)(main)
    assert written in ([0], [0, 1])
