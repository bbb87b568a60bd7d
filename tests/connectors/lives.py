"""Simulated lives of one program: each goes on from the last snapshot, and may end at any turn."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import trio

from dataflow import sources
from dataflow.operators.source import Reader
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.policy import Recovery
from dataflow.testing import Crashed, simulate

__all__ = ["Crashed", "Lives", "Paced"]

Main = Callable[..., Awaitable[Any]]


class Lives:
    """One storage, and life after life on it."""

    def __init__(self, every: float = 1.0) -> None:
        self.storage = MemoryStorage()
        self.began: list[int] = []  # where each life went on from
        self._every = every

    def live(self, main: Main, workers: int, seed: int, turns: int | None = None) -> None:
        """A life, of so many turns at most: Crashed if it did not get to its end."""

        async def noted(worker: Any) -> None:
            if worker.index == 0:
                self.began.append(worker.resume_at)
            await main(worker)

        recovery = Recovery(self.storage, every=self._every)
        simulate(noted, workers=workers, seed=seed, turns=300_000, recovery=recovery, crash_after=turns)


class Paced(sources.Partitions[Any]):
    """A source that waits for the clock now and then: a simulation's clock goes on only when somebody waits for it, and
    snapshots are taken by the clock."""

    def __init__(self, source: sources.Partitions[Any], seed: int) -> None:
        self.timed = source.timed
        self._source = source
        self._chance = random.Random(seed)

    async def partitions(self) -> Collection[str]:
        return await self._source.partitions()

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Any]:
        reader = Reader(self._source.read(partition, position))
        try:
            while (item := await reader.next(self)) is not self:
                if self._chance.random() < 0.3:
                    await trio.sleep(self._chance.random())
                yield item
        finally:
            await reader.close()

    async def acknowledge(self, partition: str, position: object) -> None:
        await self._source.acknowledge(partition, position)


class Until(sources.Partitions[Any]):
    """A source that never ends, up to a record that a function knows: a program that reads it comes to its end."""

    def __init__(self, source: sources.Partitions[Any], ends: Callable[[Any], bool]) -> None:
        self.resumable = source.resumable
        self._source = source
        self._ends = ends

    async def partitions(self) -> Collection[str]:
        return await self._source.partitions()

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Any]:
        inner, ended = position if isinstance(position, list | tuple) else (None, False)
        if ended:
            return
        reader = Reader(self._source.read(partition, inner))
        try:
            while not ended and (item := await reader.next(self)) is not self:
                ended = any(map(self._ends, item[2]))
                yield [item[0], ended], None, item[2]
        finally:
            await reader.close()

    async def acknowledge(self, partition: str, position: object) -> None:
        assert isinstance(position, list | tuple)
        await self._source.acknowledge(partition, position[0])


class Tripping:
    """Passes records on, and fails once at each of some of them."""

    def __init__(self, *at: object) -> None:
        self.left = list(at)

    def __call__(self, record: Any) -> Any:
        if record in self.left:
            self.left.remove(record)
            raise RuntimeError("tripped on purpose")
        return record
