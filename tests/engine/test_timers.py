"""A worker sleeps as long as it was told to, on the kernel's clock and on a virtual one, and keeps no timer."""

from __future__ import annotations

import os

import pytest
import trio
import trio.testing

import dataflow
from dataflow.run import clock as clocks
from dataflow.run.clock import Clock


def test_nobody_sleeps_too_short() -> None:
    async def main() -> None:
        clock = Clock()
        for seconds in (0.0, 1e-9, 3e-4, 2e-3):
            deadline = clock.now() + seconds
            await clock.sleep_until(deadline)
            assert clock.now() >= deadline
        clock.close()

    trio.run(main)


def test_on_a_virtual_clock_the_deadline_counts() -> None:
    """The timer is over long before, or would be long after."""

    async def main() -> list[float]:
        clock = Clock()
        woken: list[float] = []

        async def sleep(until: float) -> None:
            await clock.sleep_until(until)
            woken.append(clock.now())

        async with trio.open_nursery() as nursery:
            for until in (0.04, 0.01, 0.02):
                nursery.start_soon(sleep, until)
        clock.close()
        return woken

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == [0.01, 0.02, 0.04]
    slow = trio.run(main, clock=trio.testing.MockClock(rate=0.5))  # timers ring at half of the time
    assert all(woken >= until for woken, until in zip(slow, (0.01, 0.02, 0.04), strict=True))


def test_a_sleeper_can_be_cancelled_and_its_timer_is_used_again() -> None:
    async def main() -> None:
        clock = Clock()
        with trio.move_on_after(0.001) as scope:
            await clock.sleep_until(clock.now() + 0.04)
        assert scope.cancelled_caught
        deadline = clock.now() + 0.002
        await clock.sleep_until(deadline)  # on the timer that would have rung later
        assert clock.now() >= deadline
        clock.close()

    trio.run(main)


def test_without_timers_it_is_trio_that_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "make_timer", lambda: None)

    async def main() -> None:
        clock = Clock()
        deadline = clock.now() + 0.001
        await clock.sleep_until(deadline)
        assert clock.now() >= deadline

    trio.run(main)


def test_a_worker_leaves_no_timer_open() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(lambda: iter([1, 2, 3]), every=0.001).probe()

    before = len(os.listdir("/proc/self/fd"))
    dataflow.execute(main, workers=2, in_process=True)
    assert len(os.listdir("/proc/self/fd")) == before
