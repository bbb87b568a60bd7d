"""The manifests in a storage: choosing one to go on from, claiming, committing, and savepoints.

Numbers never come back: a run claims the storage by putting a manifest of the next number, and each of its snapshots
takes the number after. Both are put only if there is none of that number. The *incarnation* of a run is the number of
its claim, so no two runs share one. `dataflow.recovery.retention` deletes what is not needed any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from dataflow.errors import DataflowError
from dataflow.recovery.format import decode_manifest, encode_manifest
from dataflow.recovery.manifest import Manifest, SnapshotDamaged, SnapshotTooNew, dataflow_in, folder_of
from dataflow.recovery.part_files import fetch_part
from dataflow.recovery.storage import AlreadyThere, NotThere, Storage, StorageError

Tell = Callable[[str], None]

_TRIES = 20  # claims that others may make before ours, while we try


class Fenced(DataflowError):
    """Another run has claimed the storage since: this one must not write any more."""


def manifest_name(dataflow: str, number: int) -> str:
    """The name of a manifest in a storage."""
    return f"{folder_of(dataflow)}/manifest-{number:010d}"


def savepoint_name(dataflow: str, savepoint: str) -> str:
    """The name of a savepoint's manifest."""
    return f"{folder_of(dataflow)}/savepoint-{folder_of(savepoint)}"


async def list_dataflows(storage: Storage) -> list[str]:
    """The names of the dataflows that have something in a storage."""
    folders = {name.partition("/")[0] for name in await storage.names("") if "/" in name}
    return sorted(map(dataflow_in, folders))


async def list_numbers(storage: Storage, dataflow: str) -> list[int]:
    """The numbers of all manifests, ascending; whether they can be read is another matter."""
    start = f"{folder_of(dataflow)}/manifest-"
    found = (re.fullmatch("[0-9]{10,18}", name.removeprefix(start)) for name in await storage.names(start))
    return sorted(int(number[0]) for number in found if number)


async def list_savepoints(storage: Storage, dataflow: str) -> list[str]:
    """The names of all savepoints."""
    start = f"{folder_of(dataflow)}/savepoint-"
    return sorted(dataflow_in(name.removeprefix(start)) for name in await storage.names(start))


async def read_manifest(storage: Storage, dataflow: str, which: int | str) -> Manifest:
    """A manifest by its number, or a savepoint by its name. NotThere if there is none, SnapshotDamaged if it cannot be
    right."""
    name = manifest_name(dataflow, which) if isinstance(which, int) else savepoint_name(dataflow, which)
    title = f"{name} in {storage.title}"
    manifest = decode_manifest(await storage.get(name), title)
    if manifest.dataflow != dataflow or (isinstance(which, int) and manifest.number != which):
        raise SnapshotDamaged(f"{title} is that of snapshot {manifest.number} of {manifest.dataflow!r}")
    return manifest


def ignore(text: str) -> None:
    """Tells nobody."""


def what_comes_again(manifest: Manifest) -> str:
    """What people are told of output when a run goes back beyond a snapshot whose output has been shown."""
    return f"; what came out since then comes out again, in {', '.join(manifest.tokens)}" if manifest.tokens else ""


async def choose(storage: Storage, dataflow: str, *, before: int | None = None, tell: Tell = ignore) -> Manifest | None:
    """The newest manifest that can be read (with a number less than `before`); None if there are none at all.

    `tell` learns of those that cannot be read. If none can, that is SnapshotDamaged: nobody starts from the beginning
    because of it. Nor does anybody go back because the newest is of a later format: that is SnapshotTooNew.
    """
    numbers = [number for number in await list_numbers(storage, dataflow) if before is None or number < before]
    troubles: list[str] = []
    for number in reversed(numbers):
        try:
            manifest = await read_manifest(storage, dataflow, number)
        except SnapshotTooNew:
            raise
        except (SnapshotDamaged, NotThere) as error:
            troubles.append(str(error))
            continue
        if troubles:
            again = what_comes_again(manifest)
            tell(f"{'; '.join(troubles)}: going on from snapshot {number}, which was made before{again}")
        return manifest
    if troubles or (before is not None and await list_numbers(storage, dataflow)):
        why = "; ".join(troubles) or f"there is none before {before}"
        raise SnapshotDamaged(
            f"no snapshot of {dataflow!r} in {storage.title} can be used: {why}. To give its state up and start from "
            "the beginning, say so (fresh=True, --fresh)"
        )
    return None


async def claim(
    storage: Storage,
    dataflow: str,
    *,
    created: float,
    workers: int = 1,
    fresh: bool = False,
    start: Manifest | None = None,
    before: int | None = None,
    tell: Tell = ignore,
) -> Manifest:
    """Claims a storage for a new run: puts a manifest of the next number, with the content of the one that is chosen,
    or of `start`, or with none if it is to start `fresh`. Every earlier run is fenced when this returns.

    `created`: the wall clock. `before`: see `choose`.
    """
    for _ in range(_TRIES):
        numbers = await list_numbers(storage, dataflow)
        content = start
        if content is None and not fresh:
            content = await choose(storage, dataflow, before=before, tell=tell)
        number = numbers[-1] + 1 if numbers else 1
        if content is None:
            claimed = Manifest(dataflow, number, number, None, created, workers)
        else:
            repeats = content.previous if content.is_claim else content.number
            claimed = replace(
                content, dataflow=dataflow, number=number, incarnation=number, created=created, previous=repeats
            )
        try:
            await storage.put(manifest_name(dataflow, number), encode_manifest(claimed), if_absent=True)
        except AlreadyThere:  # another run claims, or one that is fenced only now commits
            continue
        if (await list_numbers(storage, dataflow))[-1] == number:
            return claimed
        await storage.delete(manifest_name(dataflow, number))  # it had been deleted before: see `commit`
    raise StorageError(f"{storage.title} is claimed by others all the time: is this program running several times?")


async def commit(storage: Storage, manifest: Manifest) -> Manifest:
    """Puts a manifest: the commit point of a snapshot. All its files must be durable already (M1).

    Returns the manifest as it is now in the storage, its number included. Fenced if another run has claimed the
    storage. If an earlier attempt of this same run has taken the number, whose outcome was unknown, it takes the next.
    StorageError means that it may be there or not; then try again, with this manifest or with a later one.
    """
    while True:
        name, data = manifest_name(manifest.dataflow, manifest.number), encode_manifest(manifest)
        try:
            await storage.put(name, data, if_absent=True)
        except AlreadyThere:
            if not await _same_run(storage, manifest):
                raise _fenced(storage, manifest) from None
            if await storage.get(name) != data:
                manifest = replace(manifest, number=manifest.number + 1)
                continue
            put = False
        else:
            put = True
        if (await list_numbers(storage, manifest.dataflow))[-1] == manifest.number:
            return manifest
        if put:  # the number was free because a later run has gone on for so long that it has deleted it
            await storage.delete(name)
        raise _fenced(storage, manifest)


async def _same_run(storage: Storage, manifest: Manifest) -> bool:
    """Whether the manifest in the storage that has this one's number is of the same run."""
    try:
        there = await read_manifest(storage, manifest.dataflow, manifest.number)
    except (SnapshotDamaged, NotThere):
        return False
    return there.incarnation == manifest.incarnation


def _fenced(storage: Storage, manifest: Manifest) -> Fenced:
    return Fenced(
        f"another run of {manifest.dataflow!r} has taken {storage.title} over, so snapshot {manifest.number} of this "
        "one does not count, and it must end: run the program once only, or give each run a place of its own"
    )


# Savepoints


async def name_savepoint(storage: Storage, manifest: Manifest, savepoint: str) -> None:
    """Keeps a snapshot under a name until it is deleted by that name. AlreadyThere if there is one of that name,
    StorageError if the snapshot has been deleted meanwhile."""
    if not savepoint:
        raise ValueError("a savepoint needs a name")
    name = savepoint_name(manifest.dataflow, savepoint)
    await storage.put(name, encode_manifest(manifest), if_absent=True)
    # Retention deletes manifests, then looks for savepoints, then deletes files. So if the manifest is there now, the
    # savepoint will be seen before a file of it is deleted.
    if manifest.number not in await list_numbers(storage, manifest.dataflow):
        await storage.delete(name)
        raise StorageError(
            f"snapshot {manifest.number} was deleted before it was kept as {savepoint!r}: try a later one"
        )


async def delete_savepoint(storage: Storage, dataflow: str, savepoint: str) -> None:
    """Forgets a savepoint, if there is one. Its files go when the next snapshot is made."""
    await storage.delete(savepoint_name(dataflow, savepoint))


async def read_savepoint(storage: Storage, dataflow: str, savepoint: str) -> Manifest:
    """The manifest of a savepoint, to start from (`claim(start=)`), with its name as the origin of what follows."""
    try:
        manifest = await read_manifest(storage, dataflow, savepoint)
    except NotThere:
        known = ", ".join(await list_savepoints(storage, dataflow)) or "none"
        raise NotThere(
            f"there is no savepoint {savepoint!r} of {dataflow!r} in {storage.title}; there are: {known}"
        ) from None
    return replace(manifest, origin=savepoint)


async def copy_files(source: Storage, target: Storage, manifest: Manifest, dataflow: str) -> None:
    """Copies the files of a snapshot to another storage, under the name that the dataflow has there; each is verified.
    Then it can be claimed there."""
    for file in manifest.files:
        data = await fetch_part(source, manifest.dataflow, file)
        await target.put(f"{folder_of(dataflow)}/{file.name}", data)
