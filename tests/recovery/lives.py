"""Runs that make snapshots in a storage that delays, fails and crashes, while others believe to be alive as well.

The model: each snapshot has a time of its own, and the state that it must give back is remembered under it. A run that
starts must find the snapshot that was acknowledged last, or one that was tried after it, and exactly its state.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import trio
import trio.testing

from dataflow.recovery.catalogue import Fenced, claim, commit
from dataflow.recovery.faulty import Faulty
from dataflow.recovery.manifest import Manifest, SavedFile, SavedOperator, follow, stale_shards
from dataflow.recovery.part_files import FilledPart, PartBuffers, PartWriter, fetch_part, live_pieces, store_part
from dataflow.recovery.retention import Retention
from dataflow.recovery.storage import StorageError

FLOW = "flow"
SHARDS = 6
OPERATORS = {"a": SavedOperator({"store": "rows"}, SHARDS)}
Commit = Callable[[Faulty, Manifest], Awaitable[Manifest]]


@dataclass
class Variant:
    """How runs do it; tests break one thing at a time."""

    syncs: bool = True
    files_first: bool = True
    remembers_changes: bool = True  # of a snapshot that was abandoned
    commit: Commit = commit


@dataclass
class World:
    """A storage, and what must be true of it."""

    seed: int
    variant: Variant
    storage: Faulty = field(init=False)
    chance: random.Random = field(init=False)
    states: dict[int | None, dict[int, int]] = field(default_factory=lambda: {None: {}})  # by time, what was saved
    acknowledged: int | None = None  # the time of the last snapshot that is known to be committed
    tried: set[int] = field(default_factory=set)  # times of later snapshots, of which nobody knows
    leader: int = 0  # the incarnation that has claimed last
    fenced: int = 0
    committed: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        failures = self.chance.choice([0.0, 0.05, 0.2])
        self.storage = Faulty(self.seed, delay=1.0, failures=failures, syncs=self.variant.syncs)

    async def live(self) -> None:
        """Several runs, one after the other; some of those before do not know that they are over."""
        async with trio.open_nursery() as nursery:
            for _ in range(self.chance.randrange(3, 8)):
                scope = trio.CancelScope()
                nursery.start_soon(self._run, scope)
                await trio.sleep(self.chance.random() * 30)
                if self.chance.random() < 0.6:
                    scope.cancel()
                    self.storage.crash()
            nursery.cancel_scope.cancel()
        self.storage.failures = 0.0
        await self._start()

    async def _run(self, scope: trio.CancelScope) -> None:
        with scope:
            manifest, state = await self._start()
            retention = Retention(self.storage, FLOW, self.chance.randrange(1, 4))
            changed: set[int] = set()
            async with trio.open_nursery() as nursery:
                while True:
                    self._change(state, changed)
                    changed |= set(stale_shards(manifest).get("a", np.empty(0, np.int64)).tolist())
                    try:
                        manifest = await self._snapshot(manifest, state, changed)
                    except StorageError:
                        if not self.variant.remembers_changes:
                            changed.clear()
                        continue
                    except Fenced:
                        self.fenced += 1
                        return
                    changed.clear()
                    nursery.start_soon(self._collect, retention, manifest)

    def _change(self, state: dict[int, int], changed: set[int]) -> None:
        for _ in range(self.chance.randrange(4)):
            shard = self.chance.randrange(SHARDS)
            state[shard] = self.chance.choice([0, self.chance.randrange(1 << 40)])
            changed.add(shard)

    async def _collect(self, retention: Retention, manifest: Manifest) -> None:
        """Beside the next snapshot."""
        with suppress(StorageError):
            await retention.collect(manifest)

    async def _start(self) -> tuple[Manifest, dict[int, int]]:
        while True:
            try:
                manifest = await claim(self.storage, FLOW, created=0.0)
                state: dict[int, int] = {}
                self.leader = max(self.leader, manifest.incarnation)
                allowed = {self.acknowledged, *self.tried}
                for file in manifest.files:
                    data = await fetch_part(self.storage, FLOW, file)
                    state |= {shard: int(words[0]) for _, shard, words in live_pieces(file, data)}
            except StorageError:
                continue
            assert manifest.time in allowed, f"{manifest.time} is none of {allowed}"
            expected = {shard: value for shard, value in self.states[manifest.time].items() if value}
            assert state == expected, f"{state} is not {expected}"
            return manifest, state

    async def _snapshot(self, before: Manifest, state: dict[int, int], changed: set[int]) -> Manifest:
        time = len(self.states)
        self.states[time] = dict(state)
        parts = _parts(state, changed)
        if self.variant.files_first:
            files = [await self._store(part, before.number + 1) for part in parts]
        else:
            files = [part.saved(before.number + 1, 0) for part in parts]
        manifest = follow(
            before, time=time, created=0.0, workers=1, graph="", operators=OPERATORS, files=files, shares={}, tokens={}
        )  # fmt: skip
        self.tried.add(time)
        manifest = await self.variant.commit(self.storage, manifest)
        assert self.leader == manifest.incarnation, "a run that another has followed has committed a snapshot"
        self.acknowledged = time
        self.tried.clear()
        self.committed += 1
        if not self.variant.files_first:
            for part in parts:
                await self._store(part, before.number + 1)
        return manifest

    async def _store(self, part: FilledPart, number: int) -> SavedFile:
        return await store_part(self.storage, FLOW, part, number, 0, PartBuffers(1 << 14))


def _parts(state: dict[int, int], changed: set[int]) -> list[FilledPart]:
    writer = PartWriter(PartBuffers(1 << 14))
    parts = []
    for shard in sorted(changed):
        value = state.get(shard, 0)
        parts += writer.add("a", shard, [np.array([value], np.uint64)] if value else [])
    return parts + writer.finish()


def play(seed: int, variant: Variant | None = None) -> World:
    """A world from its beginning to its end; AssertionError or DataflowError if something went wrong."""
    world = World(seed, variant or Variant())
    trio.run(world.live, clock=trio.testing.MockClock(autojump_threshold=0))
    return world
