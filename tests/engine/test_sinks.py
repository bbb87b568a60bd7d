"""Sinks: where records leave, at once or after waiting for the outside."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import trio

import dataflow
from tests.engine.harness import Run, bag, notes, timed

EPOCHS = [["a", "b", "c"], [], ["d"]]


def send_all(worker: dataflow.Worker, handle: Any) -> None:
    for time, records in enumerate(EPOCHS):
        handle.send(records[worker.index :: worker.peers])
        handle.advance_to(time + 1)


def test_a_sink_gets_batches_with_their_times(run: Run) -> None:
    written: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(lambda t, batch: written.extend((t, r) for r in batch))
        send_all(worker, handle)

    run(main)
    assert bag(written) == timed(*EPOCHS)


@pytest.mark.parametrize("run", [Run(n, seed=s) for n in (1, 2, 3) for s in (0, 1)], ids=str)
def test_the_end_waits_for_asynchronous_sinks(run: Run) -> None:
    written: list[Any] = []

    async def write(prefix: str, time: int, batch: list[str]) -> None:
        await trio.sleep(10)
        written.extend((time, prefix + r) for r in batch)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(functools.partial(write, ""))
        send_all(worker, handle)

    run(main)
    assert bag(written) == timed(*EPOCHS)


def test_an_object_with_an_asynchronous_call_is_a_sink() -> None:
    class Table:
        def __init__(self) -> None:
            self.rows: list[str] = []

        async def __call__(self, time: int, batch: list[str]) -> None:
            await trio.sleep(1)
            self.rows += batch

    table = Table()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(table)
        send_all(worker, handle)

    Run(1, seed=0)(main)
    assert table.rows == list("abcd")


def test_an_asynchronous_sink_writes_one_batch_after_the_other() -> None:
    log: list[Any] = []

    async def write(time: int, batch: list[int]) -> None:
        log.append(("start", batch[0]))
        await trio.sleep(3 - batch[0])
        log.append(("end", batch[0]))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(write)
        for n in range(3):
            handle.send([n])

    Run(1, seed=0)(main)
    assert log == [(what, n) for n in range(3) for what in ("start", "end")]


def test_a_probe_behind_a_sink_waits_for_the_outside() -> None:
    written: list[Any] = []

    async def write(time: int, batch: list[str]) -> None:
        await trio.sleep(100)
        written.extend(batch)

    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.sink(write).probe()
        handle.send(["a"])
        handle.advance_to(1)
        with trio.move_on_after(50):
            await probe.wait_passed(0)
        early = probe.passed(0), list(written)
        await probe.wait_passed(0)
        return early, written

    assert Run(1, seed=0)(main) == [((False, []), ["a"])]


def test_nothing_comes_out_of_a_sink(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(lambda *_: None).inspect(lambda *_: seen.append(1))
        send_all(worker, handle)

    run(main)
    assert seen == []


def test_a_sink_that_raises_ends_everything(together: Run) -> None:
    async def write(time: int, batch: list[str]) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError("disk full")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.sink(write, name="table").probe()
        if worker.index == 0:
            handle.send(["x"])
        handle.advance_to(1)
        await probe.wait_passed(0)

    with pytest.raises(OSError, match="disk full") as failure:
        together(main)
    assert "table (#1)" in notes(failure.value)


def test_an_asynchronous_sink_s_exception_names_worker_and_dataflow() -> None:
    async def write(time: int, batch: list[str]) -> None:
        raise OSError("disk full")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop") as scope:
            handle, stream = scope.input()
            stream.sink(write)
        if worker.index:
            handle.send(["x"])

    with pytest.raises(OSError, match="disk full") as failure:
        Run(2)(main)
    assert all(words in notes(failure.value) for words in ("sink (#1)", "worker 1 of 2", "'shop'"))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_sink_awaits_what_its_function_returns_or_refuses_it() -> None:
    written: list[Any] = []

    async def write(time: int, batch: list[str]) -> None:
        written.extend(batch)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.sink(lambda t, batch: write(t, batch))
        handle.send(["x"])

    try:
        Run()(main)
    except TypeError:
        return
    assert written == ["x"]
