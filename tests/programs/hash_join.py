"""Hash join at a time: pairs of records with equal keys and equal times. Everything is sent from time 0, at later
times, in any order, so that many times are open at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import trio

import dataflow
from tests.oracles import tables
from tests.programs.running import Run, gathered, require_same, share

Timed = Sequence[tuple[int, Any]]


async def main(worker: dataflow.Worker, left: Timed, right: Timed) -> list[Any]:
    """Returns (time, (key, left, right)) for each pair found on this worker."""
    found: list[Any] = []
    with worker.dataflow("join") as scope:
        left_input, left_stream = scope.input("left")
        right_input, right_stream = scope.input("right")
        pairs = left_stream.join(right_stream, lambda record: record[0], lambda record: record[1])
        pairs.inspect(lambda time, pair: found.append((time, pair)))
    for handle, timed in ((left_input, left), (right_input, right)):
        for time, record in share(timed, worker):
            handle.send([record], at=time)
            await trio.lowlevel.checkpoint()
        handle.close()
    return found


def check(run: Run, chance: Random) -> None:
    """Few keys and few times, so that most records find partners. The key is first on the left, second on the right."""
    keys, times = chance.randint(1, 5), chance.randint(1, 4)

    def records(make: Any) -> list[tuple[int, Any]]:
        count = chance.randint(0, 24)
        return [(chance.randrange(times), make(chance.randrange(keys), n)) for n in range(count)]

    left, right = records(lambda key, n: (key, f"l{n}")), records(lambda key, n: (f"r{n}", key))
    require_same(gathered(run(main, left, right)), tables.join(left, right))
