"""What waits for an asynchronous sink to be written is bounded as well, and nothing gets stuck over it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
import trio.testing

import dataflow
from dataflow.comm.flow import ROW, Flow
from dataflow.errors import Stuck
from dataflow.lowlevel import ToWorker
from dataflow.run.worker import pump_of
from tests.comm.pressure import BATCH, WAYS, pass_on, run


def test_what_sinks_keep_presses_on_their_own_dataflow_only() -> None:
    flow = Flow(peers=2, limit=100)
    assert flow.kept(0, 7, 100) is None and flow.open_to(7)
    assert flow.kept(0, 7, 1) is True and not flow.open_to(7)
    assert flow.open and flow.open_to(8)
    assert flow.kept(0, 8, 101) is True and not flow.open_to(8)
    assert flow.kept(0, 7, -50) is None and not flow.open_to(7)
    assert flow.kept(0, 7, -1) is False and flow.open_to(7) and not flow.open_to(8)
    flow.pressed(1, True, 7)
    assert not flow.open_to(7)
    flow.pressed(1, True)  # data on its way: that concerns all
    assert not flow.open and not flow.open_to(9)
    flow.pressed(1, False)
    flow.forget(7)
    assert flow.open_to(7) and not flow.open_to(8)


@pytest.mark.parametrize("seed", range(20))
def test_pressure_is_what_was_said(seed: int) -> None:
    # Another worker that hears every change of pressure, and nothing else, knows exactly when sources must wait.
    chance = random.Random(seed)
    flow, hearer, limit = Flow(2, 50), Flow(2, 50), 50
    kept = dict.fromkeys((-1, 0, 1), 0)
    pressing = dict.fromkeys(kept, False)
    for _ in range(300):
        why = chance.choice(list(kept))
        size = chance.randint(1, 30) if chance.random() < 0.5 else -chance.randint(0, kept[why])
        kept[why] += size
        if why >= 0:
            said = flow.kept(0, why, size)
        else:
            said = flow.sent(0, size, 1) if size > 0 else flow.acknowledged(0, -size, 1)
        if said is not None:
            hearer.pressed(0, said, why)
        pressing[why] = kept[why] > limit or (pressing[why] and kept[why] > limit // 2)
        for number in (0, 1):
            assert hearer.open_to(number) == flow.open_to(number) == (not pressing[-1] and not pressing[number])


def test_a_slow_sink_slows_the_sources() -> None:
    limit = 20 * ROW
    waiting = most = 0  # records that were sent and not written; all workers are in this process

    async def main(worker: dataflow.Worker) -> None:
        async def write(_: Any, batch: list[int]) -> None:
            nonlocal waiting
            await trio.sleep(0.0002)
            waiting -= len(batch)

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("take", lambda _: pass_on, pact=ToWorker(1)).sink(write)
        nonlocal waiting, most
        for _ in range(300 if worker.index == 0 else 0):
            await handle.room()
            handle.send(range(BATCH))
            waiting += BATCH
            most = max(most, waiting)

    run(main, workers=2, limit=limit, in_process=True)
    assert most * ROW <= limit + 10 * BATCH * ROW  # and the few batches that a sink takes before they are written


@pytest.mark.parametrize("in_process", WAYS)
@pytest.mark.parametrize("pact", [ToWorker(1), None], ids=["behind an exchange", "without one"])
def test_the_queue_of_a_slow_sink_is_bounded(pact: Any, in_process: bool) -> None:
    limit = 20 * ROW

    async def main(worker: dataflow.Worker) -> tuple[int, int]:
        waiting = most = written = 0  # here

        def arrived(_: Any, batch: list[int]) -> None:
            nonlocal waiting, most
            waiting += len(batch)
            most = max(most, waiting)

        async def write(_: Any, batch: list[int]) -> None:
            nonlocal waiting, written
            await trio.sleep(0.001)
            waiting -= len(batch)
            written += len(batch)

        with worker.dataflow() as scope:
            stream = scope.source(iter(range(1000)), batch=BATCH, ahead=10_000)
            taken = stream.unary("take", lambda _: pass_on, pact=pact)
            probe = taken.inspect_batch(arrived).sink(write).probe()
        await probe.wait_done()
        return written, most

    results = run(main, workers=2, limit=limit, in_process=in_process)
    assert [written for written, _ in results] == ([0, 2000] if pact else [1000, 1000])
    # The sink's limit; and from each worker what was on its way, and an epoch or two more until its source has heard.
    assert max(most for _, most in results) * ROW <= limit + 2 * (limit + 3 * BATCH * ROW)
    assert max(most for _, most in results) * ROW > limit  # it was put to the test


@pytest.mark.parametrize("in_process", WAYS)
def test_a_sink_that_feeds_another_dataflow_s_source_is_not_stuck(in_process: bool) -> None:
    # The first dataflow's sink waits for the second's source, so that must never wait for the first's sink.
    async def main(worker: dataflow.Worker) -> int:
        total = 0

        def add(_: Any, n: int) -> None:
            nonlocal total
            total += n

        async def slowly_add(_: Any, batch: list[int]) -> None:
            await trio.lowlevel.checkpoint()
            for n in batch:
                add(None, n)

        feed, fed = trio.open_memory_channel[int](0)

        async def write(_: Any, batch: list[int]) -> None:
            for n in batch:
                await feed.send(n)

        with worker.dataflow("first") as scope:
            numbers = scope.source(iter(range(200)), batch=BATCH, ahead=1000)
            first = numbers.exchange(lambda n: n).sink(write).probe()
        with worker.dataflow("second") as scope:
            second = scope.source(fed, ahead=1000).exchange(lambda n: n // 2).sink(slowly_add).probe()
        await first.wait_done()
        await feed.aclose()
        await second.wait_done()
        return total

    assert sum(run(main, workers=2, limit=1, in_process=in_process)) == 2 * sum(range(200))


@pytest.mark.parametrize("nested", [False, True], ids=["itself", "a task that it starts"])
def test_a_sink_that_waits_for_room_in_its_own_dataflow_is_refused(nested: bool) -> None:
    refusals: list[Stuck] = []

    async def main(worker: dataflow.Worker) -> None:
        async def ask() -> None:
            try:
                await handle.room()
            except Stuck as error:
                refusals.append(error)

        async def write(_: Any, batch: list[int]) -> None:
            if not nested:
                return await ask()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)

        with worker.dataflow("mine") as scope:
            handle, stream = scope.input()
            stream.sink(write)
        await handle.room()  # main may
        handle.send([1])

    run(main, workers=1, limit=1, in_process=True)
    (refusal,) = refusals
    assert "a sink of dataflow 'mine' waits for room in that dataflow" in str(refusal)


@pytest.mark.parametrize("in_process", WAYS)
def test_dropping_a_dataflow_ends_the_pressure_of_its_sinks(in_process: bool) -> None:
    # Worker 1's sink never writes anything. Both mains wait for room, until worker 1 drops the dataflow.
    async def main(worker: dataflow.Worker) -> bool:
        async def write(_: Any, batch: list[int]) -> None:
            await trio.sleep_forever()

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.unary("take", lambda _: pass_on, pact=ToWorker(1)).sink(write)
        handle.send(range(BATCH))
        while pump_of(worker).flow.open_to(0):
            await worker.step()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(handle.room)
            await trio.testing.wait_all_tasks_blocked()
            if worker.index == 1:
                worker.drop_dataflow(scope)
        await worker.room()  # what is still on its way to worker 1 presses on until that has heard of it
        return pump_of(worker).flow.open_to(0)

    assert run(main, workers=2, limit=1, in_process=in_process) == [True, True]
