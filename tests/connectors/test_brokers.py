"""Sources and sinks of servers that keep messages: the same tests on each."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio

import dataflow
from dataflow import sinks, sources
from dataflow.recovery.memory import MemoryStorage
from dataflow.state import native
from tests.connectors.brokers import BROKERS, Broker
from tests.engine.harness import failsafe


@pytest.fixture(params=BROKERS, ids=lambda kind: kind.__name__)
def broker(request: pytest.FixtureRequest) -> Broker:
    """A broker of each kind, with streams that nobody else has."""
    kind: type[Broker] = request.param
    return kind(request.getfixturevalue(kind.fixture))


def total(key: int, number: int, so_far: int | None) -> tuple[int, list[tuple[int, int]]]:
    so_far = (so_far or 0) + number
    return so_far, [(number, so_far)]


def totals(numbers: list[int]) -> list[tuple[int, int]]:
    """By number modulo 3, which is the partition, running totals: the oracle."""
    found, sums = [], Counter[int]()
    for number in numbers:
        sums[number % 3] += number
        found.append((number, sums[number % 3]))
    return sorted(found)


class Tripping:
    """Fails once, at some record, and never again."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, number: int) -> tuple[int, int]:
        self.seen += 1
        if self.seen == self.at:
            raise RuntimeError("tripped on purpose")
        return number % 3, number


def run(main: Any, workers: int, storage: MemoryStorage | None) -> None:
    recovery = None if storage is None else dataflow.Recovery(storage, every=0.01, restarts=10)
    with failsafe(60):
        dataflow.execute(main, workers=workers, in_process=True, recovery=recovery)


def test_all_of_it_and_then_what_came_since(broker: Broker) -> None:
    """Without recovery a run begins at the beginning; with it, where the last one ended."""
    seen: list[int] = []
    source = broker.source()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(source).inspect(lambda _, number: seen.append(number))

    broker.fill(range(50))
    run(main, 2, None)
    assert sorted(seen) == list(range(50))
    for partition in range(broker.partitions):
        assert [number for number in seen if number % broker.partitions == partition] == [*range(partition, 50, 3)]
    storage = MemoryStorage()
    seen.clear()
    run(main, 2, storage)
    assert sorted(seen) == list(range(50))
    broker.fill(range(50, 60))
    seen.clear()
    run(main, 1, storage)
    assert sorted(seen) == list(range(50, 60))
    seen.clear()
    run(main, 3, storage)
    assert seen == []


@pytest.mark.parametrize("seed", range(3))
def test_through_a_failure_in_mid_stream(broker: Broker, seed: int) -> None:
    """Everything is counted once; what is written is there once, or at least once where that is all that is said."""
    numbers = list(range(300))
    broker.fill(numbers)
    sink = broker.sink()
    assert isinstance(sink, sinks.AtLeastOnce) == broker.at_least_once
    tripping = Tripping(random.Random(seed).randrange(10, 300))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            pairs = scope.source(broker.source()).map(tripping)
            native.state_machine(pairs, fold=total, name="totals").sink(sink, name="out")

    run(main, 2, MemoryStorage())
    rows = broker.rows()
    if broker.at_least_once:
        assert sorted(set(rows)) == totals(numbers)
    else:
        assert sorted(rows) == totals(numbers)
    assert tripping.seen > 300


def test_following(broker: Broker) -> None:
    """What comes while it runs; the end is by main."""
    seen: list[int] = []
    broker.fill(range(10))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(broker.source(follow=True)).inspect(lambda _, number: seen.append(number))
        for some in (range(10), range(10, 30), range(30, 40)):
            if worker.index == 0:
                await trio.to_thread.run_sync(broker.fill, some if some.start else range(0))
            while not set(some) <= set(seen):  # noqa: ASYNC110  # another worker sees some of it
                await trio.sleep(0.01)
        worker.drop_dataflow(scope)

    with failsafe(60):
        dataflow.execute(main, workers=2, in_process=True)
    assert sorted(seen) == list(range(40))


def test_into_a_table_through_a_failure(broker: Broker, tmp_path: Path) -> None:
    """From a broker to SQLite, each number once."""
    import sqlite3

    broker.fill(range(100))
    tripping = Tripping(60)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            pairs = scope.source(broker.source(batch=4)).map(tripping)
            pairs.sink(sinks.sqlite(tmp_path / "out.db", "numbers", columns=("part", "number")))

    run(main, 3, MemoryStorage())
    connection = sqlite3.connect(tmp_path / "out.db")
    rows = connection.execute("SELECT number, part FROM numbers ORDER BY number").fetchall()
    connection.close()
    assert rows == [(number, number % 3) for number in range(100)]


def test_a_position_that_cannot_be_one(broker: Broker) -> None:
    source = broker.source()

    async def main() -> None:
        partition = (await source.partitions())[0]
        reader: Any = source.read(partition, ["no", "position"])
        with pytest.raises(sources.SourceError, match="is no position in a"):
            await anext(reader)
        await reader.aclose()

    broker.fill(range(3))
    trio.run(main)
