"""Deletes snapshots and files that are not needed any more.

Kept are the newest manifest, the newest `keep` snapshots (claims repeat a snapshot, and are not counted), all
savepoints, and every file that one of those names. A file that none of them names is deleted if its name says that it
was written for the newest manifest or one before: what is written for a later one belongs to a snapshot that is being
made, perhaps by a run that has fenced this one (M4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dataflow.recovery.catalogue import list_numbers, list_savepoints, manifest_name, read_manifest
from dataflow.recovery.manifest import Manifest, SnapshotDamaged, SnapshotTooNew, folder_of
from dataflow.recovery.storage import NotThere, Storage


@dataclass(frozen=True, slots=True)
class _Known:
    """What must be remembered of a manifest, so that it is read once."""

    is_claim: bool
    files: frozenset[str]


class Retention:
    """Deletes what is not needed any more, each time that a snapshot was committed."""

    def __init__(self, storage: Storage, dataflow: str, keep: int) -> None:
        self._storage = storage
        self._dataflow = dataflow
        self._keep = keep
        self._known: dict[int, _Known] = {}

    async def collect(self, newest: Manifest) -> int:
        """Deletes what is left over, now that `newest` is committed; how many blobs. Does nothing if a later run has
        claimed the storage. First manifests, then files: no manifest ever names a file that is not there."""
        numbers = await list_numbers(self._storage, self._dataflow)
        if not numbers or numbers[-1] != newest.number:
            return 0
        self._known = {number: known for number, known in self._known.items() if number in numbers}
        self._known[newest.number] = _known(newest)
        try:
            kept = await self._kept(numbers)
            old = [number for number in numbers if number not in kept]
            for number in old:
                await self._storage.delete(manifest_name(self._dataflow, number))
            named = set().union(*(known.files for known in kept.values()))
            named |= await self._named_by_savepoints()
        except SnapshotTooNew:  # a newer version of this library has been here: what it needs, we cannot know
            return 0
        files = await self._storage.names(f"{folder_of(self._dataflow)}/part-")
        unnamed = [name for name in files if name.rpartition("/")[2] not in named]
        left_over = [name for name in unnamed if _number_of(name) <= newest.number]
        for name in left_over:
            await self._storage.delete(name)
        return len(old) + len(left_over)

    async def _kept(self, numbers: list[int]) -> dict[int, _Known]:
        """The manifests to keep, by number. Those that cannot be read go when all that are kept are newer."""
        kept: dict[int, _Known] = {}
        unreadable = []
        snapshots = 0
        for number in reversed(numbers):
            known = await self._look(number)
            if known is None:
                unreadable.append(number)
            elif number == numbers[-1] or (not known.is_claim and snapshots < self._keep):
                kept[number] = known
                snapshots += not known.is_claim
        return kept | {number: _Known(False, frozenset()) for number in unreadable if number > min(kept)}

    async def _look(self, number: int) -> _Known | None:
        if number not in self._known:
            try:
                self._known[number] = _known(await read_manifest(self._storage, self._dataflow, number))
            except SnapshotTooNew:
                raise
            except (SnapshotDamaged, NotThere):
                return None
        return self._known[number]

    async def _named_by_savepoints(self) -> set[str]:
        """Read each time: a savepoint of the same name may be another one by now."""
        named: set[str] = set()
        for savepoint in await list_savepoints(self._storage, self._dataflow):
            try:
                manifest = await read_manifest(self._storage, self._dataflow, savepoint)
            except SnapshotTooNew:
                raise
            except (SnapshotDamaged, NotThere):
                continue
            named.update(file.name for file in manifest.files)
        return named


def _known(manifest: Manifest) -> _Known:
    return _Known(manifest.is_claim, frozenset(file.name for file in manifest.files))


def _number_of(name: str) -> float:
    """The snapshot that a part file was written for; one that never comes, if its name does not say."""
    found = re.search(r"/part-([0-9]{10,18})-[0-9a-f]{64}\.arrow\Z", name)
    return int(found[1]) if found else float("inf")
