"""A partition that is far ahead of the others goes to another worker, a snapshot is taken at a time between them, and
everything crashes: the snapshot has asked the heir where the partition was long ago."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import trio

import dataflow
from dataflow.operators.partitions import Partitions
from dataflow.testing import Crashed, simulate
from tests.crashes.disk import Disk

EACH, AHEAD, FIRST = 20, 12, 8  # batches of a partition; those of b that go first; times before b's first, if named


class Story:
    """What has happened, for all workers: they share a process."""

    def __init__(self) -> None:
        self.times: dict[tuple[str, int], int] = {}  # by partition and number, when it was sent first
        self.begun: dict[str, int] = {}  # by partition, where this life went on
        self.ahead, self.handed_over = trio.Event(), trio.Event()  # b has gone ahead; it is another worker's

    def saw(self, time: int, record: tuple[str, int]) -> None:
        """A record was sent."""
        self.times.setdefault(record, time)
        if record == ("b", AHEAD - 1):
            self.ahead.set()


class Apart(Partitions[Any]):
    """Partition b goes ahead; a, and the rest of b, wait until b is another worker's."""

    def __init__(self, story: Story, timed: bool) -> None:
        self._story, self.timed = story, timed

    async def partitions(self) -> list[str]:
        """Worker 0 has the first, worker 1 the second."""
        return ["a", "b"]

    async def read(self, partition: str, position: Any) -> AsyncIterator[tuple[int, int | None, list[Any]]]:
        """The rest of one, a record at a time."""
        self._story.begun.setdefault(partition, position or 0)
        for number in range(position or 0, EACH):
            if partition == "a" or number >= AHEAD:
                await self._story.handed_over.wait()
            await trio.sleep(1.0 if partition == "a" else 0.0)  # so that snapshots are taken in between
            time = number + (FIRST if partition == "b" else 0)
            yield number + 1, time if self.timed else None, [(partition, number)]


async def main(worker: dataflow.Worker, story: Story, timed: bool) -> None:
    """Worker 1 leaves when its partition has gone ahead."""
    with worker.dataflow("apart") as scope:
        records = scope.source(Apart(story, timed), name="apart", ahead=100)
        records.inspect(story.saw)
    if worker.index == 0 and not story.handed_over.is_set():
        await story.ahead.wait()
        worker.drain(1)
        async for members in worker.members():
            if members.workers == (0,):
                break
        story.handed_over.set()


def is_right(timed: bool, seed: int) -> bool:
    """Whether each partition goes on, after the crash, behind exactly what was sent of it before the snapshot."""
    story, disk = Story(), Disk(Random(f"heirs {seed}"))
    recovery = dataflow.Recovery(disk, every=1e-6)

    def crash(event: str) -> None:
        if story.handed_over.is_set() and event == "put a manifest" and disk.acknowledged and disk.acknowledged[-1] > 1:
            raise Crashed(event)

    disk.noticed = crash
    try:
        simulate(main, story, timed, workers=2, seed=seed, turns=20_000, recovery=recovery)
    except Crashed:
        disk.crash()
    else:
        raise AssertionError("no snapshot was taken after the change")
    disk.noticed = lambda event: None
    cut, sent = disk.acknowledged[-1], dict(story.times)
    story.begun.clear()
    simulate(main, story, timed, workers=1, seed=seed, turns=20_000, recovery=recovery)
    assert set(story.times) == {(partition, number) for partition in "ab" for number in range(EACH)}
    before = {p: {number for (q, number), time in sent.items() if q == p and time < cut} for p in "ab"}
    return all(before[partition] == set(range(begun)) for partition, begun in story.begun.items())
