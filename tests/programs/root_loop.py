"""A loop without a nested scope: each time round takes records to a later time of the dataflow itself, the same that
its input uses, so records of different epochs meet."""

from __future__ import annotations

from random import Random
from typing import Any

import dataflow
from tests.oracles import loops
from tests.programs.running import OPEN, STEPPED, UNEVEN, Epochs, Run, feed, gathered, random_epochs, require_same


async def main(worker: dataflow.Worker, pace: str, increment: int, records: Epochs) -> list[Any]:
    """Returns (time, record) whenever a (name, rounds left) passed this worker, and how many passed at each time."""
    found: list[Any] = []
    with worker.dataflow("root loop") as scope:
        handle, stream = scope.input("records")
        loop, cycle = scope.feedback(increment)
        passing = stream.concat(cycle).exchange(lambda record: record[0] + record[1])
        passing.inspect(lambda time, record: found.append((time, record)))
        moving = passing.filter(lambda record: record[1] > 0).map(lambda record: (record[0], record[1] - 1))
        moving.connect_loop(loop)
        counts = passing.count()
        probe = counts.inspect(lambda time, count: found.append((time, ("passed", count)))).probe()
    await feed(worker, pace, probe, (handle, records))
    return found


def check(run: Run, chance: Random) -> None:
    """Up to six rounds, one to three times apart. Not in closed loop: what goes round outlives its epoch."""
    records = random_epochs(chance, lambda chance: (chance.randrange(8), chance.randint(0, 6)), size=6)
    increment = chance.randint(1, 3)
    results = run(main, chance.choice((OPEN, STEPPED, UNEVEN)), increment, records)
    require_same(gathered(results), loops.hops(records, increment))
