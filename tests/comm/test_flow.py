"""Backpressure: a slow worker slows the sources of all, what is on its way stays bounded, nothing is lost or stuck."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import trio

import dataflow
from dataflow.columns import Columns
from dataflow.comm.flow import ROW, Flow, weigh
from dataflow.lowlevel import Broadcast, ToWorker
from dataflow.run.worker import pump_of
from tests.comm.pressure import BATCH, WAYS, pass_on, run

# -------------------------------------------------------------------------------------------------------- the account


def test_pressure_begins_over_the_limit_and_ends_at_half() -> None:
    flow = Flow(peers=2, limit=100)
    assert flow.sent(0, 100, 1) is None and flow.open
    assert flow.sent(0, 1, 1) is True and not flow.open
    assert flow.sent(0, 500, 1) is None  # said already
    assert flow.acknowledged(0, 550, 1) is None and not flow.open
    assert flow.acknowledged(0, 1, 1) is False and flow.open
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
    for number in range(1, peers):
        sender.sent(0, 10 * limit, number)
    for number, receiver in enumerate(receivers, 1):
        for _ in range(10 * limit):
            sender.acknowledged(0, receiver.taken(0, 1), number)
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
        taken = stream.unary("take", lambda _: pass_on, pact=ToWorker(1))
        taken.inspect_batch(slowly(worker, 0.0005)).inspect_batch(arrived)
    while pump_of(worker).dataflows:  # noqa: ASYNC110 (nothing else tells of an end)
        await trio.sleep(0.01)
    return pump_of(worker).flow.most, count


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
            stream = scope.source(batches, timed=True).unary("take", lambda _: pass_on, pact=ToWorker(1))
            probe = stream.inspect_batch(slowly(worker, 0.001)).inspect_batch(arrived).probe()
        await probe.wait_passed(0)
        return pump_of(worker).flow.most, count

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
            everywhere = stream.unary("take", lambda _: pass_on, pact=Broadcast())
            probe = everywhere.inspect_batch(slowly(worker, 0.005)).inspect_batch(add).probe()
        await probe.wait_passed(39)
        return pump_of(worker).flow.most, total

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
        return total, pump_of(worker).flow.most

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
            taken = stream.unary("take", lambda _: pass_on, pact=ToWorker(1))
            probe = taken.inspect_batch(slowly(worker, 0.001)).inspect_batch(arrived).probe()
        for _ in range(100):
            await handle.room()
            handle.send(range(BATCH))
        handle.advance_to(1)
        await probe.wait_passed(0)
        return pump_of(worker).flow.most, count

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
