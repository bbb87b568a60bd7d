"""Running counts under load, to be scaled and killed: `python -m tests.kills.scaled_count STATE TARGET STOP`.

Its sources go on until there is a file STOP. The run is called `scaled`; it begins with two workers.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator

import trio

import dataflow
import megaphone
from dataflow import sinks, sources

PARTITIONS = ("a", "b", "c", "d", "e")
PAUSE = 0.005  # seconds between two batches of a partition
BATCH = 5
KEYS = 23

Record = tuple[str, int]


def count(key: int, record: Record, total: int | None) -> tuple[int, list[tuple[str, int, int]]]:
    """Which record of its key each is."""
    total = (total or 0) + 1
    return total, [(*record, total)]


def numbers(stop: str, partition: str, position: object | None) -> AsyncIterator[tuple[int, Record]]:
    """The numbers of a partition, from a position on, until there is that file."""

    async def rest() -> AsyncIterator[tuple[int, Record]]:
        assert position is None or isinstance(position, int)
        for number in itertools.count(position or 0):
            if number % BATCH == 0:
                await trio.sleep(PAUSE)
                if await trio.Path(stop).exists():
                    return
            yield number + 1, (partition, number)

    return rest()


async def main(worker: dataflow.Worker, target: str, stop: str) -> None:
    """Numbers, counted by key, into files."""
    with worker.dataflow("scaled") as scope:
        source = sources.shares(lambda partition, position: numbers(stop, partition, position), PARTITIONS, BATCH)
        keyed = scope.source(source, name="numbers").map(lambda record: (record[1] % KEYS, record))
        counted = megaphone.state_machine(scope.control(), keyed, fold=count, bins=16, name="count")
        counted.sink(sinks.json_lines(target, columns=("partition", "number", "total")), name="out")


if __name__ == "__main__":
    state, *arguments = sys.argv[1:]
    recovery = dataflow.Recovery(state, every=0.2, restarts=100)
    dataflow.execute(main, *arguments, workers=2, recovery=recovery, name="scaled")
