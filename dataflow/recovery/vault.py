"""The snapshots of one dataflow as its keepers see them: where they go on from, how parts and manifests are put."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import trio

from dataflow.build.cuts import FOREVER
from dataflow.build.hooks import Words
from dataflow.compiled import ahead
from dataflow.recovery.backstage import start_backstage
from dataflow.recovery.catalogue import claim, commit
from dataflow.recovery.format import decode_manifest
from dataflow.recovery.manifest import Manifest, SavedFile, SavedOperator, follow, stale_shards
from dataflow.recovery.opening import open_storage
from dataflow.recovery.part_files import (
    FilledPart,
    PartBuffers,
    PartWriter,
    fetch_part,
    live_pieces,
    load_format,
    rows_of,
    store_part,
)
from dataflow.recovery.parts import SnapshotOutcome, SnapshotPart
from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import Resume
from dataflow.recovery.retention import Retention
from dataflow.recovery.storage import Storage, StorageError, Threaded
from dataflow.time.order import Time

ahead.expect(__name__, "dataflow.recovery.keeper", "pyarrow.ipc")


class Vault:
    """What one worker knows of a dataflow's snapshots. Worker 0's also makes the manifests."""

    def __init__(self, resume: Resume, dataflow: str, worker: int, workers: int) -> None:
        self.policy: Recovery = resume.recovery
        self.storage: Storage = open_storage(self.policy.where)
        self.title = self.storage.title
        self.worker = worker
        self.dataflow = dataflow
        self.incarnation = resume.incarnation
        self._workers = workers
        self._buffers = PartBuffers()
        load_format()  # now: nobody waits for records yet
        if isinstance(self.storage, Threaded):
            start_backstage(self._buffers.get_ready)
        self._retention = Retention(self.storage, dataflow, self.policy.keep)
        encoded = resume.manifests.get(dataflow)
        self._last: Manifest | None = None if encoded is None else decode_manifest(encoded, f"snapshot of {dataflow!r}")
        self.number = 1 if self._last is None else self._last.number  # of the last manifest; a claim of nothing has 1

    @property
    def manifest(self) -> Manifest | None:
        """The snapshot to go on from, if there is one."""
        return None if self._last is None or self._last.time is None else self._last

    @property
    def resume_at(self) -> Time:
        """The time from which everything is to be done."""
        manifest = self.manifest
        return 0 if manifest is None else manifest.time

    @property
    def drop(self) -> Collection[str]:
        """Operators whose state may be left behind."""
        return self.policy.drop

    async def read(self, file: SavedFile) -> Iterator[tuple[str, int, Words]]:
        """The live pieces of a file, whose checksum is right: (operator, shard, words)."""
        data = await fetch_part(self.storage, self.dataflow, file)
        return iter(live_pieces(file, data))

    def writer(self) -> VaultWriter:
        """Writes the part files of the next snapshot."""
        return VaultWriter(self.storage, self.dataflow, self.number + 1, self.worker, self._buffers)

    def learn(self, outcome: SnapshotOutcome) -> None:
        """Takes note of a manifest that worker 0 has made."""
        if outcome.number is not None:
            self.number = outcome.number

    async def begin(self) -> None:
        """Claims the storage for a dataflow of which nobody knew before it was built. For worker 0."""
        if self._last is None:
            self._last = await claim(self.storage, self.dataflow, created=time.time(), workers=self._workers)
            self.number = self._last.number

    async def conclude(
        self,
        parts: list[SnapshotPart],
        operators: Mapping[str, SavedOperator],
        graph: str,
        members: tuple[int, ...],
    ) -> SnapshotOutcome:
        """Makes the manifest of a snapshot from all workers' parts, and puts it: the commit point."""
        cut = parts[0].cut
        failures = [part.failure for part in parts if part.failure]
        assert self._last is not None
        resume_at: Time = self._final_time(parts) if cut == FOREVER else cut
        if failures:
            return SnapshotOutcome(cut, resume_at, None, "; ".join(failures))
        manifest = follow(
            self._last,
            time=resume_at,
            created=time.time(),
            workers=len(members),
            members=members,
            graph=graph,
            operators=operators,
            files=[file for part in parts for file in part.files],
            shares=_by_participant({part.worker: part.shares for part in parts}),
            tokens=_by_participant({part.worker: part.tokens for part in parts}),
            final=cut == FOREVER,
        )
        try:
            self._last = await commit(self.storage, manifest)
        except StorageError as error:
            return SnapshotOutcome(cut, resume_at, None, str(error))
        await self._collect()
        stale = {name: shards.tolist() for name, shards in stale_shards(self._last).items()}
        return SnapshotOutcome(cut, resume_at, self._last.number, stale=stale)

    async def _collect(self) -> None:
        """Deletes what no kept manifest names. What cannot be deleted now is tried again after the next snapshot."""
        assert self._last is not None
        try:
            await self._retention.collect(self._last)
        except StorageError as error:
            print(f"dataflow: old snapshots in {self.title} could not be deleted: {error}", file=sys.stderr)

    def _final_time(self, parts: Sequence[SnapshotPart]) -> Time:
        """After everything that anybody saw, and never before where this run began: it may have had nothing to do."""
        return max([self.resume_at, *(part.seen + 1 for part in parts if part.seen is not None)])


class VaultWriter:
    """Puts shards into part files, and these into the storage, while the stream goes on."""

    def __init__(self, storage: Storage, dataflow: str, number: int, worker: int, buffers: PartBuffers) -> None:
        self._writer = PartWriter(buffers)
        self._put = partial(store_part, storage, dataflow, number=number, worker=worker, buffers=buffers)
        self._saved: list[SavedFile] = []

    def place(self, count: int) -> Words:
        """Memory for so many words of a copy that will be added next."""
        return self._writer.place(count)

    async def add(self, operator: str, shard: int, pieces: Sequence[Words]) -> None:
        """Adds a shard. About a megabyte at a time is written, and others have their turn in between."""
        for piece in rows_of(pieces):
            if self._writer.gather(operator, shard, piece):
                await self._store(self._writer.write)
        self._writer.end_shard()

    async def finish(self) -> list[SavedFile]:
        """Everything that was added is durable; where."""
        await self._store(self._writer.finish)
        return self._saved

    async def _store(self, write: Callable[[], list[FilledPart]]) -> None:
        for part in write():
            self._saved.append(await self._put(part))
        await trio.lowlevel.checkpoint()


def _by_participant(by_worker: Mapping[int, Mapping[str, bytes]]) -> dict[str, dict[int, bytes]]:
    names = dict.fromkeys(name for shares in by_worker.values() for name in shares)
    return {name: {worker: shares[name] for worker, shares in by_worker.items() if name in shares} for name in names}
