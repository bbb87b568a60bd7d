"""Rehearsals: a whole program, with sources and sinks, through crashes and changes of the number of workers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import trio

from dataflow.channels.pact import Batch
from dataflow.operators.partitions import Item, Partitions
from dataflow.operators.sinks import Place, Sink, SinkError, Writer
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.policy import Recovery
from dataflow.run.worker import A, R, Worker
from dataflow.testing.simulating import Crashed, simulate
from dataflow.time.order import Time
from dataflow.values import Record

D = TypeVar("D")


@dataclass(frozen=True)
class Life:
    """One life of a program."""

    workers: int
    began: int  # the time at which it went on; 0 for the first
    crashed: bool


class Rehearsal:
    """Plays a program to its end under a seed. Sources and sinks of the rehearsal are its outside: they outlive
    crashes, as files and databases do.

    Everything is drawn from the seed: every step and delivery, how long sources pause (on a virtual clock: nobody
    waits), when it crashes, how many workers each life has. The same seed gives the same rehearsal.
    """

    def __init__(self, seed: int = 0, *, every: float = 1.0) -> None:
        """`every`: virtual seconds from one snapshot to the next."""
        self.seed = seed
        self.lives: list[Life] = []
        self._chance = random.Random(seed)
        self._storage = MemoryStorage()
        self._every = every
        self._sources: list[_Played[Record]] = []

    def source(
        self, records: Sequence[D] | Mapping[str, Sequence[D]], *, batch: int = 1, pause: float = 1.0
    ) -> Partitions[D]:
        """A source that gives records from where it was, `batch` of them at a time, and pauses in between for up to so
        many virtual seconds. A mapping has the records of several partitions."""
        given = records if isinstance(records, Mapping) else {"all": records}
        parts = {name: list(some) for name, some in given.items()}
        played = _Played(parts, batch, pause, random.Random(self._chance.random()))
        self._sources.append(played)
        return played

    def sink(self) -> KeptRows[D]:
        """A sink that keeps each record once. What it has is in `rows`."""
        return KeptRows()

    def run(
        self,
        main: Callable[[Worker, *A], Awaitable[R]],
        *args: *A,
        workers: int | tuple[int, int] = (1, 3),
        crashes: int = 0,
        scale: Sequence[int] = (),
    ) -> list[R]:
        """Plays a program to its end; what each main of the last life returned.

        `workers`: how many, or the least and the most; then each life has another number. `crashes`: so often
        everything but snapshots, sources and sinks is lost, in the midst of it, and the program goes on (less often, if
        it comes to its end before: see `lives`). `scale`: asks
        for these numbers of workers while it runs, one after the other.
        """
        recovery = Recovery(self._storage, every=self._every) if crashes else None
        while True:
            count = self._chance.randint(*workers) if isinstance(workers, tuple) else workers
            crash = self._moment() if len(self.lives) < crashes else None
            began: list[int] = []
            try:
                results = simulate(
                    _Scaled(main, scale, began, self._chance.random()),
                    *args,
                    workers=count,
                    seed=self._chance.randrange(1 << 32),
                    turns=3_000_000,
                    recovery=recovery,
                    crash_after=crash,
                )
            except Crashed:
                self.lives.append(Life(count, began[0] if began else 0, True))
                continue
            except BaseException as error:
                error.add_note(f"rehearsed with seed={self.seed}, in life {len(self.lives) + 1}")
                raise
            self.lives.append(Life(count, began[0], False))
            return results

    def _moment(self) -> Callable[[], bool]:
        """Says when a life shall end: a few turns after its sources have given some part of what they had left."""
        for each in self._sources:
            each.begin()
        part, turns = self._chance.uniform(0, 0.8), self._chance.randrange(60)

        def crash() -> bool:
            nonlocal turns
            given, left = (sum(some) for some in zip((0, 0), *(each.count() for each in self._sources), strict=True))
            if given < part * left:
                return False
            turns -= 1
            return turns < 0

        return crash


class _Scaled:
    """A main that asks for other numbers of workers while it runs."""

    def __init__(
        self, main: Callable[..., Awaitable[Record]], scale: Sequence[int], began: list[int], seed: float
    ) -> None:
        self._main = main
        self._scale = list(scale)
        self._began = began
        self._chance = random.Random(seed)

    async def __call__(self, worker: Worker, *args: object) -> Record:
        if worker.index == 0:
            self._began.append(worker.resume_at)
        if worker.index or not self._scale:
            return await self._main(worker, *args)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._ask, worker)
            result = await self._main(worker, *args)
            nursery.cancel_scope.cancel()
        return result

    async def _ask(self, worker: Worker) -> None:
        while self._scale:
            await trio.sleep(self._chance.uniform(0.1, 3))
            await worker.scale(self._scale.pop(0)).wait()


class _Played(Partitions[D], Generic[D]):
    """Records from a place on, slowly."""

    def __init__(self, parts: dict[str, list[D]], batch: int, pause: float, chance: random.Random) -> None:
        self._parts = parts
        self._batch = batch
        self._pause = pause
        self._chance = chance
        self._starts: dict[str, int] = {}  # of this life, by partition
        self._given = 0  # in this life

    def __repr__(self) -> str:
        return "<a source of a rehearsal>"

    def begin(self) -> None:
        """A life begins."""
        self._starts, self._given = {}, 0

    def count(self) -> tuple[int, int]:
        """How many records were given in this life, and how many there were to give."""
        return self._given, sum(len(records) - self._starts.get(name, 0) for name, records in self._parts.items())

    async def partitions(self) -> list[str]:
        """The names of the parts."""
        return list(self._parts)

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[D]]:
        """The records from a number on."""
        records = self._parts[partition]
        place = self._starts[partition] = position if isinstance(position, int) else 0
        while place < len(records):
            if self._pause and self._chance.random() < 0.5:
                await trio.sleep(self._chance.uniform(0, self._pause))
            batch = records[place : place + self._batch]
            place += len(batch)
            self._given += len(batch)
            yield place, None, batch


class KeptRows(Sink, Generic[D]):
    """Keeps each record once. `rows` has what everybody can see."""

    def __init__(self) -> None:
        self.rows: list[D] = []
        self._known: set[tuple[int, int, int]] = set()  # (incarnation, worker, number) of what was committed
        self._numbers: dict[tuple[int, int], int] = {}

    def __repr__(self) -> str:
        return "<a sink of a rehearsal>"

    def open(self, place: Place) -> Writer:
        """A writer."""
        return _KeptWriter(self, place)

    def number(self, place: Place) -> tuple[int, int, int]:
        """A name for what a writer prepares, which nothing else has."""
        key = (place.incarnation, place.worker)
        self._numbers[key] = self._numbers.get(key, 0) + 1
        return (*key, self._numbers[key])

    def keep(self, name: tuple[int, int, int], rows: Iterable[D]) -> None:
        """Commits, once."""
        if name not in self._known:
            self._known.add(name)
            self.rows += rows


class _KeptWriter(Writer):
    def __init__(self, sink: KeptRows[Record], place: Place) -> None:
        self._sink = sink
        self._place = place
        self._rows: list[Record] = []
        self._prepared: list[tuple[tuple[int, int, int], list[Record]]] = []

    async def write(self, time: Time, batch: Batch) -> None:
        self._rows += list(batch)

    async def prepare(self, time: Time) -> object:
        if self._rows:
            self._prepared.append((self._sink.number(self._place), self._rows))
            self._rows = []
        return [[list(name), rows] for name, rows in self._prepared] or None

    async def commit(self, token: object) -> None:
        if not isinstance(token, list):
            raise SinkError(f"{token!r} is no token of a rehearsal's sink")
        for (incarnation, worker, number), rows in token:
            self._sink.keep((incarnation, worker, number), rows)
        done = {tuple(name) for name, _ in token}
        self._prepared = [each for each in self._prepared if each[0] not in done]

    async def recover(self, tokens: Sequence[object]) -> None:
        for token in tokens:
            await self.commit(token)
