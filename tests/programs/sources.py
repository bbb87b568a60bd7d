"""Sources and sinks: iterables, asynchronous iterables and timed ones on every worker, counted, and written to a sink
that takes its time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from random import Random
from typing import Any

import trio

import dataflow
from tests.oracles import tables
from tests.programs.running import Run, gathered, require, require_same

Timed = list[tuple[int, list[int]]]


async def slowly(items: Iterable[Any]) -> AsyncIterator[Any]:
    """The items, each after a turn of the others."""
    for item in items:
        await trio.lowlevel.checkpoint()
        yield item


async def main(worker: dataflow.Worker, ahead: int, plain: list[Any], late: list[Any], timed: Any) -> list[Any]:
    """Every worker's share of each kind; returns (time, (record, count)) as it was written on this worker."""
    written: list[Any] = []

    async def write(time: int, batch: list[Any]) -> None:
        await trio.lowlevel.checkpoint()
        written.extend((time, count) for count in batch)

    with worker.dataflow("sources") as scope:
        streams = [
            scope.source(plain[worker.index], batch=2, ahead=ahead, name="plain"),
            scope.source(slowly(late[worker.index]), ahead=ahead, name="late"),
            scope.source(timed[worker.index], timed=True, ahead=ahead, name="timed"),
        ]
        counts = scope.concat(streams).count(lambda record: record)
        probe = counts.sink(write).probe()
    await probe.wait_done()
    require(all(probe.passed(time) for time, _ in written), "the probe of the sink is behind what was written")
    return written


def check(run: Run, chance: Random) -> None:
    """A plain source has two records at each time, an asynchronous one has one, and a timed one says."""

    def records() -> list[int]:
        return [chance.randrange(4) for _ in range(chance.randint(0, 8))]

    def epochs() -> Timed:
        return [(time, records()) for time in sorted(chance.choices(range(8), k=3))]

    plain, late = [records() for _ in range(run.workers)], [records() for _ in range(run.workers)]
    timed = [epochs() for _ in range(run.workers)]
    ahead = chance.randint(1, 4)
    results = run(main, ahead, plain, late, timed)
    pairs = [(n // 2, record) for one in plain for n, record in enumerate(one)]
    pairs += [(n, record) for one in late for n, record in enumerate(one)]
    pairs += [(time, record) for one in timed for time, batch in one for record in batch]
    require_same(gathered(results), tables.count_by_time(pairs))
