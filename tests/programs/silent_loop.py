"""A loop that never receives data still ends: nothing goes round, but its frontiers must, and must not chase each other
for ever. Also a loop in a loop, and a loop whose records are all turned away at its door."""

from __future__ import annotations

from random import Random
from typing import Any

import dataflow
from tests.programs.running import PACES, Run, feed, gathered, require, require_same


async def main(worker: dataflow.Worker, pace: str, epochs: int, depth: int, records: int) -> list[Any]:
    """Returns what came out of the loop, which is nothing."""
    found: list[Any] = []

    def body(inner: dataflow.Stream[Any], level: int) -> dataflow.Stream[Any]:
        result = inner if level == 0 else inner.iterate(lambda deeper: body(deeper, level - 1))
        return result.exchange(lambda record: record)

    with worker.dataflow("silent loop") as scope:
        handle, stream = scope.input("nothing")
        out = body(stream.filter(lambda record: False), depth)
        probe = out.inspect(lambda time, record: found.append((time, record))).probe()
    await feed(worker, pace, probe, (handle, [list(range(records))] * epochs))
    await probe.wait_done()
    require(probe.done and not len(probe.frontier), "the loop's frontier is not empty at the end")
    return found


def check(run: Run, chance: Random) -> None:
    """With no record at all, and with some that do not get in."""
    epochs, depth, records = chance.randint(1, 4), chance.randint(1, 3), chance.choice((0, 0, 5))
    results = run(main, chance.choice(PACES), epochs, depth, records)
    require_same(gathered(results), gathered([]))
