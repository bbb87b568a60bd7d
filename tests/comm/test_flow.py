"""Backpressure: a slow worker slows the sources of all, what is on its way stays bounded, nothing is lost or stuck."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing

import dataflow
from dataflow.columns import Columns
from dataflow.comm.flow import ROW, Flow, weigh
from dataflow.errors import Stuck
from dataflow.lowlevel import Broadcast, ToWorker
from tests.engine.harness import failsafe

HANG = 15.0
BATCH = 10
WAYS = [pytest.param(True, id="in one process"), pytest.param(False, id="processes")]


def run(main: Any, *args: Any, workers: int, limit: int, in_process: bool) -> list[Any]:
    with failsafe(HANG):
        return dataflow.execute(main, *args, workers=workers, limit=limit, in_process=in_process)


# -------------------------------------------------------------------------------------------------------- the account


def test_pressure_begins_over_the_limit_and_ends_at_half() -> None:
    flow = Flow(peers=2, limit=100)
    assert flow.sent(0, 100) is None and flow.open
    assert flow.sent(0, 1) is True and not flow.open
    assert flow.sent(0, 500) is None  # said already
    assert flow.acknowledged(0, 550) is None and not flow.open
    assert flow.acknowledged(0, 1) is False and flow.open
    assert (flow.on_its_way, flow.most) == (50, 601)


def test_anybody_under_pressure_closes_the_sources() -> None:
    flow = Flow(peers=3, limit=100)
    flow.pressed(1, True)
    flow.pressed(2, True)
    flow.pressed(1, False)
    assert not flow.open
    flow.pressed(2, False)
    assert flow.open


@pytest.mark.parametrize("limit", [1, 2, 7, 8, 100, 12_345])
@pytest.mark.parametrize("peers", [2, 3, 16])
def test_what_stays_unacknowledged_never_keeps_a_sender_under_pressure(limit: int, peers: int) -> None:
    # Every other worker takes everything, in pieces of one: what they hold back must be no more than half the limit.
    sender, receivers = Flow(peers, limit), [Flow(peers, limit) for _ in range(peers - 1)]
    sender.sent(0, 10 * limit * len(receivers))
    for receiver in receivers:
        for _ in range(10 * limit):
            sender.acknowledged(0, receiver.taken(0, 1))
    assert sender.open and 0 <= sender.on_its_way <= limit // 2


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Flow(2, 0)


def test_columns_weigh_their_bytes_and_rows_a_guess() -> None:
    assert weigh(Columns({"a": np.zeros(10), "b": np.zeros(10, np.int8)})) == 90
    assert weigh([1, 2, 3]) == 3 * ROW


@pytest.mark.parametrize("row", [bytes(10**6), "x" * 10**6, (1, bytes(10**6)), [b"", "x" * 10**6]], ids=type)
def test_large_rows_weigh_what_they_are(row: Any) -> None:
    assert weigh([row]) >= 10**6


# -------------------------------------------------------------------------------------------------------- slow workers


def slowly(worker: dataflow.Worker, seconds: float) -> Any:
    """For inspect_batch: takes that long for each batch, on worker 1 only."""
    return lambda *_: time.sleep(seconds) if worker.index == 1 else None


async def all_to_one(worker: dataflow.Worker, records: int) -> tuple[int, int]:
    """Everybody's records go to worker 1, which is slow. The most that was on its way, and how many arrived here."""
    count = 0

    def arrived(_: Any, batch: list[int]) -> None:
        nonlocal count
        count += len(batch)

    with worker.dataflow() as scope:
        stream = scope.source(iter(range(records)), batch=BATCH, ahead=10_000)
        taken = stream.unary("take", lambda _: _pass, pact=ToWorker(1))
        taken.inspect_batch(slowly(worker, 0.0005)).inspect_batch(arrived)
    while worker.dataflows:  # noqa: ASYNC110 (nothing else tells of an end)
        await trio.sleep(0.01)
    return worker.flow.most, count


def _pass(input: Any, output: Any) -> None:
    for message, batch in input:
        output.give(message, batch)


@pytest.mark.parametrize("in_process", WAYS)
@pytest.mark.parametrize("limit", [1, 20 * ROW, 200 * ROW])
def test_a_slow_worker_slows_the_sources_of_all(limit: int, in_process: bool) -> None:
    results = run(all_to_one, 1000, workers=3, limit=limit, in_process=in_process)
    assert [count for _, count in results] == [0, 3000, 0]
    for most, _ in results:
        assert most <= limit + BATCH * ROW  # one epoch of the one source on that worker
    if not in_process:
        assert max(most for most, _ in results) > limit  # it was put to the test


@pytest.mark.parametrize("in_process", WAYS)
def test_one_epoch_alone_is_slowed_as_well(in_process: bool) -> None:
    limit = 50 * ROW

    async def main(worker: dataflow.Worker) -> tuple[int, int]:
        count = 0

        def arrived(_: Any, batch: list[int]) -> None:
            nonlocal count
            count += len(batch)

        def batches() -> Iterator[tuple[int, list[int]]]:
            for _ in range(300):
                yield 0, list(range(BATCH))  # all at one time

        with worker.dataflow() as scope:
            stream = scope.source(batches, timed=True).unary("take", lambda _: _pass, pact=ToWorker(1))
            probe = stream.inspect_batch(slowly(worker, 0.001)).inspect_batch(arrived).probe()
        await probe.wait_passed(0)
        return worker.flow.most, count

    results = run(main, workers=2, limit=limit, in_process=in_process)
    assert [count for _, count in results] == [0, 6000]
    assert results[0][0] <= limit + BATCH * ROW


@pytest.mark.parametrize("in_process", WAYS)
def test_columns_are_bounded_by_their_bytes(in_process: bool) -> None:
    limit, size = 1 << 20, 1 << 18

    async def main(worker: dataflow.Worker) -> tuple[int, int]:
        total = 0

        def add(_: Any, batch: Columns) -> None:
            nonlocal total
            total += int(batch["n"].sum())

        epochs = ((n, Columns({"n": np.full(size // 8, n)})) for n in range(40))
        with worker.dataflow() as scope:
            stream = scope.source(epochs, timed=True, ahead=1000)
            everywhere = stream.unary("take", lambda _: _pass, pact=Broadcast())
            probe = everywhere.inspect_batch(slowly(worker, 0.005)).inspect_batch(add).probe()
        await probe.wait_passed(39)
        return worker.flow.most, total

    results = run(main, workers=2, limit=limit, in_process=in_process)
    assert [total for _, total in results] == [2 * sum(range(40)) * (size // 8)] * 2
    assert all(most <= limit + size for most, _ in results)


# ------------------------------------------------------------------------------------------------- nothing gets stuck


@pytest.mark.parametrize("in_process", WAYS)
@pytest.mark.parametrize("limit", [1, 3 * ROW])
def test_exchanges_in_all_directions_under_a_tiny_limit(limit: int, in_process: bool) -> None:
    async def main(worker: dataflow.Worker) -> tuple[int, int]:
        total = 0

        def add(_: Any, n: int) -> None:
            nonlocal total
            total += n

        with worker.dataflow() as scope:
            stream = scope.source(iter(range(400)), batch=BATCH, ahead=1000)
            for step in range(3):  # each record changes places three times
                stream = stream.exchange(lambda n, step=step: n // 3**step)
            probe = stream.inspect(add).probe()
        await probe.wait_passed(39)
        return total, worker.flow.most

    results = run(main, workers=3, limit=limit, in_process=in_process)
    assert sum(total for total, _ in results) == 3 * sum(range(400))
    # An operator passes on what has arrived: at most what was on its way to it from all.
    assert all(most <= 3 * (limit + 3 * BATCH * ROW) * 3 for _, most in results)


@pytest.mark.parametrize("in_process", WAYS)
@pytest.mark.parametrize("limit", [1, 5 * ROW])
def test_a_loop_across_workers_under_a_tiny_limit(limit: int, in_process: bool) -> None:
    # Records go round through exchanges until they are 0, on another worker each time: a cycle of queues.
    async def main(worker: dataflow.Worker) -> int:
        ended = 0

        def end(*_: Any) -> None:
            nonlocal ended
            ended += 1

        with worker.dataflow() as scope:
            numbers = scope.source(iter(range(100)), batch=BATCH, ahead=1000)

            def body(stream: dataflow.Stream[int]) -> Any:
                done, more = stream.exchange(lambda n: n).map(lambda n: n - 1).branch(lambda n: n <= 0)
                return more, done

            probe = numbers.iterate(body).inspect(end).probe()
        await probe.wait_passed(9)
        return ended

    assert sum(run(main, workers=3, limit=limit, in_process=in_process)) == 300


@pytest.mark.parametrize("in_process", WAYS)
def test_a_main_that_asks_for_room_is_slowed(in_process: bool) -> None:
    limit = 20 * ROW

    async def main(worker: dataflow.Worker) -> tuple[int, int]:
        count = 0

        def arrived(_: Any, batch: list[int]) -> None:
            nonlocal count
            count += len(batch)

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            taken = stream.unary("take", lambda _: _pass, pact=ToWorker(1))
            probe = taken.inspect_batch(slowly(worker, 0.001)).inspect_batch(arrived).probe()
        for _ in range(100):
            await handle.room()
            handle.send(range(BATCH))
        handle.advance_to(1)
        await probe.wait_passed(0)
        return worker.flow.most, count

    results = run(main, workers=3, limit=limit, in_process=in_process)
    assert [count for _, count in results] == [0, 3000, 0]
    assert all(most <= limit + BATCH * ROW for most, _ in results)


def test_several_tasks_may_wait_for_room() -> None:
    async def main(worker: dataflow.Worker) -> int:
        seen = 0

        def see(*_: Any) -> None:
            nonlocal seen
            seen += 1

        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.exchange(lambda n: n).inspect(see).probe()

        async def feed() -> None:
            for n in range(50):
                await handle.room()
                handle.send([n])

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(feed)
        handle.close()
        while not probe.done:
            await worker.step()
        return seen

    assert sum(run(main, workers=2, limit=1, in_process=False)) == 400


# --------------------------------------------------------------------------------------------------------------- sinks


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
            said = flow.sent(0, size) if size > 0 else flow.acknowledged(0, -size)
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
            stream.unary("take", lambda _: _pass, pact=ToWorker(1)).sink(write)
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
            taken = stream.unary("take", lambda _: _pass, pact=pact)
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
            stream.unary("take", lambda _: _pass, pact=ToWorker(1)).sink(write)
        handle.send(range(BATCH))
        while worker.flow.open_to(0):
            await worker.step()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(handle.room)
            await trio.testing.wait_all_tasks_blocked()
            if worker.index == 1:
                worker.drop_dataflow(scope)
        await worker.room()  # what is still on its way to worker 1 presses on until that has heard of it
        return worker.flow.open_to(0)

    assert run(main, workers=2, limit=1, in_process=in_process) == [True, True]
