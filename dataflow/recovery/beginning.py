"""How a run begins: from what the user says to the manifest that it goes on from."""

from __future__ import annotations

from dataflow.recovery.catalogue import Tell, choose, claim, copy_files, ignore, read_savepoint
from dataflow.recovery.manifest import Manifest
from dataflow.recovery.opening import open_storage
from dataflow.recovery.policy import Recovery
from dataflow.recovery.storage import Storage


async def begin(
    recovery: Recovery,
    dataflow: str,
    *,
    created: float,
    workers: int,
    storage: Storage | None = None,
    restarted: bool = False,
    before: int | None = None,
    tell: Tell = ignore,
) -> Manifest:
    """Claims the place of a policy for one dataflow, and says what to go on from (from the beginning, if its time is
    None). Every earlier run is fenced.

    `restarted`: this run has begun before, so that it goes on from its own snapshots even if the user asked for a fresh
    start. `before`: a worker has found that this snapshot is damaged, so an earlier one is needed. `storage`: that of
    the policy, if it is open already.
    """
    storage = open_storage(recovery.where) if storage is None else storage
    fresh = recovery.fresh and not restarted
    start = None
    if recovery.start_from and not restarted and before is None:
        start = await _savepoint(recovery.start_from, storage, dataflow, tell)
    return await claim(
        storage, dataflow, created=created, workers=workers, fresh=fresh, start=start, before=before, tell=tell
    )


async def _savepoint(start_from: str, storage: Storage, dataflow: str, tell: Tell) -> Manifest | None:
    """The savepoint to start from; None if the snapshots here came from it already: the same command goes on."""
    place, separator, name = start_from.rpartition("#")
    newest = await choose(storage, dataflow, tell=tell)
    if newest is not None and newest.origin == name:
        return None
    source = open_storage(place) if separator else storage
    manifest = await read_savepoint(source, dataflow, name)
    if separator:
        await copy_files(source, storage, manifest, dataflow)
    return manifest
