"""Under asyncio, and with what is made for it: errors that say which loop runs here and what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio

import dataflow
from tests.engine.harness import failsafe, notes


async def nothing(worker: dataflow.Worker) -> int:
    await trio.lowlevel.checkpoint()
    return worker.index


async def sleep() -> None:
    await asyncio.sleep(0.01)


async def yields() -> None:
    await asyncio.sleep(0)


async def waits_for_a_future() -> None:
    loop = asyncio.new_event_loop()
    try:
        await loop.create_future()
    finally:
        loop.close()


async def takes_from_a_queue() -> None:
    await asyncio.Queue[int]().get()


async def in_a_nursery() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleep)


FOREIGN = [sleep, yields, waits_for_a_future, takes_from_a_queue]


def test_execute_async_under_asyncio_says_what_to_call() -> None:
    async def program() -> None:
        await dataflow.execute_async(nothing)

    with pytest.raises(dataflow.DataflowError, match=r"trio loop, and this is an asyncio loop: .* asyncio.to_thread\("):
        asyncio.run(program())


def test_the_advice_works() -> None:
    async def program() -> Any:
        return await asyncio.to_thread(dataflow.execute, nothing)

    with failsafe(20):
        assert asyncio.run(program()) == [0]


def test_execute_async_without_any_loop() -> None:
    coroutine = dataflow.execute_async(nothing)
    with pytest.raises(dataflow.DataflowError, match="call `dataflow"):
        coroutine.send(None)


@pytest.mark.parametrize("foreign", [*FOREIGN, in_a_nursery], ids=lambda f: f.__name__)
def test_in_main(foreign: Callable[[], Awaitable[None]]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        await foreign()

    with failsafe(20), pytest.raises((TypeError, RuntimeError, AttributeError)) as caught:
        dataflow.execute(main)
    _check(caught.value, "in main on worker 0")


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda f: f.__name__)
def test_in_a_source(foreign: Callable[[], Awaitable[None]]) -> None:
    async def items() -> AsyncIterator[int]:
        await foreign()
        yield 1

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(items)

    with failsafe(20), pytest.raises((TypeError, RuntimeError, AttributeError)) as caught:
        dataflow.execute(main)
    _check(caught.value, "in operator source (#0)")


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda f: f.__name__)
def test_in_a_sink(foreign: Callable[[], Awaitable[None]]) -> None:
    async def write(time: int, batch: list[int]) -> None:
        await foreign()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source([1]).sink(write)

    with failsafe(20), pytest.raises((TypeError, RuntimeError, AttributeError)) as caught:
        dataflow.execute(main)
    _check(caught.value, "in operator sink (#1)")


def test_what_another_process_says_about_it_arrives() -> None:
    async def main(worker: dataflow.Worker) -> None:
        if worker.index == 1:
            await asyncio.sleep(0.1)
        await trio.sleep_forever()

    with failsafe(20), pytest.raises(RuntimeError) as caught:
        dataflow.execute(main, workers=2)
    _check(caught.value, "in main on worker 1")


async def fails_in_a_loop_of_its_own() -> None:
    async def fetch() -> None:
        await asyncio.gather(_fail())

    await trio.to_thread.run_sync(asyncio.run, fetch())


async def _fail() -> None:
    raise RuntimeError("something else")


@pytest.mark.parametrize("foreign", [_fail, fails_in_a_loop_of_its_own])
def test_errors_of_the_program_get_no_advice(foreign: Callable[[], Awaitable[None]]) -> None:
    async def main(worker: dataflow.Worker) -> None:
        await foreign()

    with failsafe(20), pytest.raises(RuntimeError) as caught:
        dataflow.execute(main)
    assert "trio" not in notes(caught.value)


def _check(error: BaseException, where: str) -> None:
    told = notes(error)
    assert where in told
    assert told.count("dataflow runs in a trio loop") == 1
    assert "trio-asyncio" in told and "trio.to_thread" in told
