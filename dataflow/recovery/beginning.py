"""Where a life begins: snapshots are chosen and claimed, before any worker builds a dataflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import trio

from dataflow.recovery.catalogue import (
    choose,
    claim,
    copy_files,
    list_dataflows,
    list_savepoints,
    read_savepoint,
    what_comes_again,
)
from dataflow.recovery.format import encode_manifest
from dataflow.recovery.manifest import Manifest, SnapshotDamaged
from dataflow.recovery.opening import open_storage
from dataflow.recovery.part_files import fetch_part
from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import Resume
from dataflow.recovery.storage import NotThere, Storage, StorageError

_PAUSE, _LONGEST = 0.5, 30.0  # seconds, before the storage is tried again


@dataclass(frozen=True, slots=True)
class Beginning:
    """What workers are told, and what people are told about it."""

    resume: Resume
    title: str  # "snapshot 12 at time 700"


class Beginnings:
    """Chooses and claims for one life of a run after the other."""

    def __init__(
        self, recovery: Recovery, workers: int, tell: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        """`tell`: what people should know about snapshots that cannot be used. `clock`: the time of day."""
        self._clock = clock
        self._recovery = recovery
        self.workers = workers
        self._tell = tell
        self._storage: Storage = open_storage(recovery.where)
        self._claimed: dict[str, Manifest] = {}  # by dataflow, what the last life began with
        self._first = True
        self._failed = 0  # tries in a row, because the storage could not be reached
        self._since: float | None = None  # when the first life was begun, or the failure seen that the next one follows
        self._lives = 0

    def failure_seen(self) -> None:
        """A life has failed: from now on the run recovers. Says when, for those who look."""
        if self._lives:
            self._since, self._lives = self._clock(), 0

    async def choose(self, older: bool) -> Beginning:
        """Chooses snapshots and claims the storage. `older`: those of the last life are damaged, so ones before.

        After a StorageError the next try waits a while, the longer the more there were.
        """
        if self._since is None:
            self._since = self._clock()  # not before: a simulation's clock runs with its loop
        if self._failed:
            await trio.sleep(min(_LONGEST, _PAUSE * 2.0 ** (self._failed - 1)))
        try:
            beginning = await self._choose(older)
        except StorageError:
            self._failed += 1
            raise
        self._failed = 0
        return beginning

    async def _choose(self, older: bool) -> Beginning:
        before = await self._damaged() if older else {}
        starts = await self._savepoints() if self._first else {}
        claimed = {}
        for dataflow in sorted({*await list_dataflows(self._storage), *starts}):
            claimed[dataflow] = await claim(
                self._storage,
                dataflow,
                created=self._clock(),
                workers=self.workers,
                fresh=self._first and self._recovery.fresh,
                start=starts.get(dataflow),
                before=before.get(dataflow),
                tell=self._tell,
            )
        again = not self._first or any(manifest.time is not None for manifest in claimed.values())
        self._first, self._claimed = False, claimed
        self._lives += 1
        incarnation = max((manifest.incarnation for manifest in claimed.values()), default=0)
        manifests = {dataflow: encode_manifest(manifest) for dataflow, manifest in claimed.items()}
        title = _title(claimed) + "".join(what_comes_again(claimed[dataflow]) for dataflow in before)
        assert self._since is not None
        resume = Resume(self._recovery, incarnation, manifests, self._since, title if again else "")
        return Beginning(resume, title)

    async def _damaged(self) -> dict[str, int]:
        """By dataflow whose snapshot cannot be used, the number of that snapshot."""
        numbers = {
            dataflow: manifest.previous
            for dataflow, manifest in self._claimed.items()
            if manifest.previous is not None and manifest.time is not None
        }
        if len(numbers) > 1:
            bad = {dataflow for dataflow in numbers if not await self._readable(self._claimed[dataflow])}
            return {dataflow: number for dataflow, number in numbers.items() if not bad or dataflow in bad}
        return numbers

    async def _readable(self, manifest: Manifest) -> bool:
        for file in manifest.files:
            try:
                await fetch_part(self._storage, manifest.dataflow, file)
            except (SnapshotDamaged, NotThere):
                return False
        return True

    async def _savepoints(self) -> dict[str, Manifest]:
        """By dataflow, the savepoint to start from, its files copied here; none for those that did so before."""
        if not self._recovery.start_from:
            return {}
        where, _, name = self._recovery.start_from.rpartition("#")
        source = open_storage(where) if where else self._storage
        starts = {}
        for dataflow in await list_dataflows(source):
            if name in await list_savepoints(source, dataflow):
                start = await read_savepoint(source, dataflow, name)
                here = await choose(self._storage, dataflow)
                if here is not None and here.origin == start.origin:
                    continue
                if where:
                    await copy_files(source, self._storage, start, dataflow)
                starts[dataflow] = start
        if not starts and not await self._began_from(name):
            raise NotThere(f"there is no savepoint {name!r} in {source.title}")
        return starts

    async def _began_from(self, name: str) -> bool:
        for dataflow in await list_dataflows(self._storage):
            here = await choose(self._storage, dataflow)
            if here is not None and here.origin == name:
                return True
        return False


def _title(claimed: dict[str, Manifest]) -> str:
    """What people are told: where a run goes on."""
    found = [manifest for manifest in claimed.values() if manifest.time is not None]
    if not found:
        return "the beginning"
    named = len(claimed) > 1
    return ", ".join(
        f"snapshot {manifest.previous} at time {manifest.time}" + (f" of {manifest.dataflow!r}" if named else "")
        for manifest in found
    )
