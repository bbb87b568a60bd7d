"""A computation in which somebody waits and nothing moves says so; one that waits for the outside does not.

On trio's virtual clock, which jumps whenever nothing else can happen.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

import dataflow
from dataflow.comm.messages import Pressure
from dataflow.run.worker import pump_of
from tests.engine.harness import failsafe
from tests.engine.test_explain import keep


def said(main: Any, seconds: float, capsys: pytest.CaptureFixture[str], workers: int = 1, **options: Any) -> list[str]:
    """The lines on standard error of a program that is ended after so many seconds."""

    async def run() -> None:
        with trio.move_on_after(seconds):
            await dataflow.execute_async(main, workers=workers, **options)

    with failsafe(30):
        trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    return capsys.readouterr().err.splitlines()


async def forgets_to_advance(worker: dataflow.Worker) -> None:
    with worker.dataflow("shop") as scope:
        handle, stream = scope.input("clicks")
        probe = stream.map(str).probe()
    handle.send([1])
    await probe.wait_passed(0)


EXPECTED = (
    "worker 0 of 1 has waited 10 seconds for <probe of output 0 of map (#1)> of 'shop' to pass 0, and nothing moves: "
    "held by clicks (#0) at 0 on this worker (advance that input, or close it). `print(worker.explain())` says more; "
    "if it is meant to be so, `execute(..., warn_after=None)` is silent."
)


def test_an_input_that_nobody_advances(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(forgets_to_advance, 12.5, capsys) == [EXPECTED]


def test_nothing_is_said_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(forgets_to_advance, 9.5, capsys) == []


def test_it_is_said_again_ten_times_later(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(forgets_to_advance, 2000, capsys)
    assert [line.split(" seconds")[0].rsplit(" ", 1)[1] for line in lines] == ["10", "100", "1000"]


def test_the_time_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(said(forgets_to_advance, 1.25, capsys, warn_after=1.0)) == 1
    assert said(forgets_to_advance, 10_000, capsys, warn_after=None) == []


@pytest.mark.parametrize("after", [0, -1.0, math.nan])
def test_a_time_that_is_none(after: float) -> None:
    with pytest.raises(ValueError, match="warn_after must be a positive number of seconds, or None"):
        dataflow.execute(forgets_to_advance, warn_after=after)


def test_an_operator_that_forgot_a_capability(capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("forgetful", keep(kept)).probe()
        handle.send(["x"])
        handle.advance_to(1)
        await probe.wait_passed(0)

    (line,) = said(main, 12.5, capsys)
    assert "held by forgetful (#1) at 0 on this worker." in line


def test_messages_that_nobody_takes(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.unary("lazy", lambda _: lambda i, o: None).probe()
        handle.send([1])
        handle.advance_to(1)
        await probe.wait_passed(0)

    (line,) = said(main, 12.5, capsys)
    assert "held by lazy (#1) at 0 on this worker." in line


def test_what_only_others_hold_takes_longer_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    # They may be at work, or compile; and this main may well be paced by theirs.
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input("clicks")
            probe = stream.probe()
        handle.advance_to(1 - worker.index)
        if worker.index:
            await trio.sleep_forever()
        await probe.wait_passed(0)

    assert said(main, 59, capsys, workers=2) == []
    (line,) = said(main, 62.5, capsys, workers=2)
    assert line.startswith("worker 0 of 2 has waited 60 seconds for <probe of output 0 of clicks (#0)>")
    assert "held by clicks (#0) at 0 on other workers." in line


def test_room_that_nobody_makes(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.input()
        pump_of(worker).post(Pressure(1, True))
        while pump_of(worker).busy:
            await worker.step()
        await handle.room()

    assert said(main, 59, capsys) == []
    (line,) = said(main, 62.5, capsys)
    assert "waited 60 seconds for room to send" in line and "too much data of worker 1 is on its way" in line


# --------------------------------------------------------------------------------------------------- waits on purpose


async def rarely() -> AsyncIterator[int]:
    for number in range(3):
        await trio.sleep(1000)
        yield number


async def waits_for_a_source(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        probe = scope.source(rarely).probe()
    await probe.wait_done()


async def waits_for_a_sink(worker: dataflow.Worker) -> None:
    async def write(time: int, batch: list[int]) -> None:
        await trio.sleep(1000)

    with worker.dataflow() as scope:
        handle, stream = scope.input()
        probe = stream.sink(write).probe()
    handle.send([1])
    handle.advance_to(1)
    await probe.wait_passed(0)


async def sleeps(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        handle, _ = scope.input()
    for epoch in range(5):
        await trio.sleep(1000)
        handle.advance_to(epoch + 1)


async def advances_now_and_then(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        probe = stream.probe()

    async def advance() -> None:
        for epoch in range(100):
            await trio.sleep(9)
            handle.advance_to(epoch + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(advance)
        await probe.wait_passed(99)


ON_PURPOSE = [waits_for_a_source, waits_for_a_sink, sleeps, advances_now_and_then]


@pytest.mark.parametrize("main", ON_PURPOSE, ids=lambda main: main.__name__)
def test_waits_on_purpose_are_not_suspicious(main: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(main, 10_000, capsys) == []


def test_a_worker_that_was_busy_is_not_suspicious(capsys: pytest.CaptureFixture[str]) -> None:
    # It computes for an hour, during which nobody looks; then it may wait for another while.
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.probe()

        async def compute() -> None:
            await trio.sleep(9)
            clock.jump(3600)
            await trio.sleep(3)
            handle.advance_to(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(compute)
            await probe.wait_passed(0)

    clock = trio.testing.MockClock(autojump_threshold=0)
    with failsafe(30):
        trio.run(dataflow.execute_async, main, clock=clock)
    assert capsys.readouterr().err == ""


def test_in_processes(capfd: pytest.CaptureFixture[str]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop") as scope:
            _, stream = scope.input("clicks")
            probe = stream.probe()
        with trio.move_on_after(0.5):
            await probe.wait_passed(0)

    with failsafe(30):
        dataflow.execute(main, workers=2, warn_after=0.05)
    err = capfd.readouterr().err
    assert "held by clicks (#0) at 0 on this worker (advance that input, or close it)" in err
