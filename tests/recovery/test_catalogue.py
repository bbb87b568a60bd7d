"""Choosing, claiming, committing, fencing, savepoints and retention; and a random test of all of it with crashes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest
import trio
import trio.testing

from dataflow.recovery.beginning import Beginnings
from dataflow.recovery.catalogue import (
    Fenced,
    choose,
    claim,
    commit,
    copy_files,
    delete_savepoint,
    ignore,
    list_dataflows,
    list_numbers,
    list_savepoints,
    manifest_name,
    name_savepoint,
    read_manifest,
    read_savepoint,
)
from dataflow.recovery.format import decode_manifest, encode_manifest
from dataflow.recovery.manifest import Manifest, SavedOperator, SnapshotDamaged, SnapshotTooNew, follow
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.part_files import PartBuffers, PartWriter, fetch_part, live_pieces, store_part
from dataflow.recovery.policy import Recovery
from dataflow.recovery.retention import Retention
from dataflow.recovery.storage import AlreadyThere, NotThere, Storage, StorageError
from tests.recovery.test_manifest import sealed

FLOW = "dataflow-0"
OPERATORS = {"a": SavedOperator({"store": "rows"}, 4)}


def run(check: Callable[[MemoryStorage], Awaitable[None]]) -> None:
    trio.run(check, MemoryStorage("memory://test"))


async def snapshot(storage: Storage, before: Manifest, state: dict[int, int], time: int) -> Manifest:
    """Commits a snapshot in which these shards have these numbers."""
    writer, buffers = PartWriter(PartBuffers(1 << 16)), PartBuffers(1 << 16)
    parts = [
        part
        for shard, value in state.items()
        for part in writer.add("a", shard, [np.array([value], np.uint64)] if value else [])
    ]
    files = [await store_part(storage, FLOW, part, before.number + 1, 0, buffers) for part in parts + writer.finish()]
    return await commit(
        storage,
        follow(
            before, time=time, created=0.0, workers=1, graph="", operators=OPERATORS, files=files, shares={}, tokens={}
        ),
    )


async def state_of(storage: Storage, manifest: Manifest) -> dict[int, int]:
    """What a run that goes on from a manifest finds."""
    found = {}
    for file in manifest.files:
        for _, shard, words in live_pieces(file, await fetch_part(storage, manifest.dataflow, file)):
            found[shard] = int(words[0])
    return found


def test_the_first_run_claims_and_starts_from_the_beginning() -> None:
    async def check(storage: MemoryStorage) -> None:
        assert await choose(storage, FLOW) is None
        first = await claim(storage, FLOW, created=1.0, workers=2)
        assert (first.number, first.incarnation, first.time, first.files) == (1, 1, None, ())
        second = await claim(storage, FLOW, created=1.0)
        assert (second.number, second.incarnation, second.time, second.previous) == (2, 2, None, None)

    run(check)


def test_a_run_goes_on_from_the_last_snapshot() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await claim(storage, FLOW, created=1.0)
        last = await snapshot(storage, last, {0: 5, 1: 6}, 10)
        last = await snapshot(storage, last, {1: 7}, 20)
        again = await claim(storage, FLOW, created=2.0)
        assert (again.number, again.incarnation, again.previous, again.time) == (4, 4, 3, 20)
        assert await state_of(storage, again) == {0: 5, 1: 7}
        assert await list_dataflows(storage) == [FLOW]
        fresh = await claim(storage, FLOW, created=2.0, fresh=True)
        assert (fresh.number, fresh.time, fresh.files) == (5, None, ())

    run(check)


def test_claims_name_the_snapshot_that_they_repeat() -> None:
    """So that if it turns out to be damaged, the one before it is taken, and not another claim of the same."""

    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        await snapshot(storage, last, {0: 6}, 20)
        for number in (4, 5, 6):
            again = await claim(storage, FLOW, created=2.0)
            assert (again.number, again.previous, again.time, again.is_claim) == (number, 3, 20, True)
        before = await claim(storage, FLOW, created=2.0, before=again.previous)
        assert (before.previous, before.time) == (2, 10)

    run(check)


def test_a_zombie_is_fenced() -> None:
    async def check(storage: MemoryStorage) -> None:
        zombie = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        alive = await claim(storage, FLOW, created=2.0)
        with pytest.raises(Fenced, match="another run of 'dataflow-0' has taken memory://test over"):
            await snapshot(storage, zombie, {0: 6}, 20)
        alive = await snapshot(storage, alive, {0: 7}, 20)
        assert await state_of(storage, alive) == {0: 7}

    run(check)


def test_a_zombie_that_wakes_when_its_number_is_free_again_is_fenced() -> None:
    """Retention has deleted the claim that took its number."""

    async def check(storage: MemoryStorage) -> None:
        zombie = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        alive = await claim(storage, FLOW, created=2.0)
        for time in range(20, 60, 10):
            alive = await snapshot(storage, alive, {0: time}, time)
            await Retention(storage, FLOW, 1).collect(alive)
        assert await list_numbers(storage, FLOW) == [alive.number]
        with pytest.raises(Fenced):
            await snapshot(storage, zombie, {0: 6}, 20)
        assert await list_numbers(storage, FLOW) == [alive.number]  # it has left nothing
        await Retention(storage, FLOW, 1).collect(zombie)  # nor does it delete anything
        assert await state_of(storage, alive) == {0: 50}

    run(check)


def test_a_commit_whose_answer_was_lost_is_recognised() -> None:
    async def check(storage: MemoryStorage) -> None:
        first = await claim(storage, FLOW, created=1.0)
        manifest = replace(first, number=2, time=10)
        assert (await commit(storage, manifest)).number == 2
        assert (await commit(storage, manifest)).number == 2  # the same one again
        later = replace(first, number=2, time=20)  # the run believes that 2 failed
        assert (await commit(storage, later)).number == 3
        await claim(storage, FLOW, created=1.0)
        with pytest.raises(Fenced):
            await commit(storage, later)
        assert await list_numbers(storage, FLOW) == [1, 2, 3, 4]

    run(check)


def test_a_damaged_manifest_is_told_and_the_one_before_used() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        last = await snapshot(storage, last, {0: 6}, 20)
        blobs = storage.blobs
        blobs[manifest_name(FLOW, 3)] = blobs[manifest_name(FLOW, 3)][:-1]
        told: list[str] = []
        chosen = await claim(storage, FLOW, created=2.0, tell=told.append)
        assert (chosen.number, chosen.previous, chosen.time) == (4, 2, 10)
        assert await state_of(storage, chosen) == {0: 5}
        (text,) = told
        assert "manifest-0000000003 in memory://test is cut off" in text and "going on from snapshot 2" in text
        before = await choose(storage, FLOW, before=2)
        assert before is not None and before.number == 1  # a worker found that a file of 2 is damaged

    run(check)


def test_who_goes_back_says_which_output_comes_again() -> None:
    async def check(storage: MemoryStorage) -> None:
        first = await claim(storage, FLOW, created=1.0)
        await commit(storage, replace(first, number=2, time=10, tokens={"rows": {0: b""}, "totals": {1: b""}}))
        storage.blobs[manifest_name(FLOW, 3)] = b"torn"
        told: list[str] = []
        await claim(storage, FLOW, created=2.0, tell=told.append)
        (text,) = told
        assert text.endswith("which was made before; what came out since then comes out again, in rows, totals")

    run(check)


def test_nobody_starts_from_the_beginning_because_everything_is_damaged() -> None:
    async def check(storage: MemoryStorage) -> None:
        await claim(storage, FLOW, created=1.0)
        storage.blobs[manifest_name(FLOW, 1)] = b"?"
        with pytest.raises(SnapshotDamaged, match=r"no snapshot of 'dataflow-0' .* say so \(fresh=True, --fresh\)"):
            await claim(storage, FLOW, created=2.0)
        with pytest.raises(SnapshotDamaged, match="there is none before 1"):
            await choose(storage, FLOW, before=1)
        assert (await claim(storage, FLOW, created=2.0, fresh=True)).number == 2

    run(check)


def test_nobody_goes_back_because_the_newest_is_of_a_later_format() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        storage.blobs[manifest_name(FLOW, 3)] = sealed({"format": 2})
        with pytest.raises(SnapshotTooNew):
            await choose(storage, FLOW)
        storage.blobs[manifest_name(FLOW, 4)] = storage.blobs.pop(manifest_name(FLOW, 2))
        assert await Retention(storage, FLOW, 1).collect(replace(last, number=4)) == 0

    run(check)


def test_a_manifest_in_the_place_of_another_is_refused() -> None:
    async def check(storage: MemoryStorage) -> None:
        first = await claim(storage, FLOW, created=1.0)
        storage.blobs[manifest_name(FLOW, 2)] = encode_manifest(first)
        with pytest.raises(SnapshotDamaged, match="is that of snapshot 1 of 'dataflow-0'"):
            await read_manifest(storage, FLOW, 2)

    run(check)


def test_savepoints_are_kept_until_they_are_deleted() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5, 1: 1}, 10)
        await name_savepoint(storage, last, "before the change")
        with pytest.raises(AlreadyThere):
            await name_savepoint(storage, last, "before the change")
        for time in range(20, 70, 10):
            last = await snapshot(storage, last, {0: time}, time)
            await Retention(storage, FLOW, 2).collect(last)
        assert await list_savepoints(storage, FLOW) == ["before the change"]
        saved = await read_savepoint(storage, FLOW, "before the change")
        assert await state_of(storage, saved) == {0: 5, 1: 1}
        with pytest.raises(
            NotThere, match=r"there is no savepoint 'x' of 'dataflow-0' .* there are: before the change"
        ):
            await read_savepoint(storage, FLOW, "x")
        begun = await claim(storage, FLOW, created=2.0, start=saved)
        assert (begun.time, begun.origin, begun.number) == (10, "before the change", 8)
        after = await snapshot(storage, begun, {0: 9}, 20)
        assert after.origin == "before the change"
        await delete_savepoint(storage, FLOW, "before the change")
        files = len(storage.blobs)
        await Retention(storage, FLOW, 1).collect(await snapshot(storage, after, {0: 10, 1: 11}, 30))
        assert len(storage.blobs) < files and len(storage.blobs) == 2

    run(check)


def test_a_savepoint_of_a_snapshot_that_has_just_gone_is_refused() -> None:
    async def check(storage: MemoryStorage) -> None:
        first = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        last = await snapshot(storage, first, {0: 6}, 20)
        await Retention(storage, FLOW, 1).collect(last)
        with pytest.raises(StorageError, match="try a later one"):
            await name_savepoint(storage, first, "late")
        assert await list_savepoints(storage, FLOW) == []

    run(check)


def test_a_changed_program_starts_from_a_savepoint_beside_the_old_one() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        await name_savepoint(storage, last, "s")
        other = MemoryStorage("memory://other")
        saved = await read_savepoint(storage, FLOW, "s")
        await copy_files(storage, other, saved, FLOW)
        begun = await claim(other, FLOW, created=2.0, start=saved)
        assert await state_of(other, begun) == {0: 5}
        assert (await snapshot(storage, last, {0: 6}, 20)).number == 3  # the old one goes on

    run(check)


def test_retention_keeps_snapshots_and_not_claims() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await claim(storage, FLOW, created=1.0)
        for time in range(10, 60, 10):
            last = await snapshot(storage, last, {0: time, 1: 1 if time == 10 else time}, time)
        for _ in range(5):  # crashes before a snapshot was made
            last = await claim(storage, FLOW, created=1.0)
        deleted = await Retention(storage, FLOW, 3).collect(last)
        assert await list_numbers(storage, FLOW) == [4, 5, 6, 11]
        assert deleted == 7 + 2
        for number in (4, 5, 6, 11):
            manifest = await read_manifest(storage, FLOW, number)
            assert await state_of(storage, manifest) == dict.fromkeys((0, 1), manifest.time)

    run(check)


def test_retention_spares_what_is_being_made() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        writer, buffers = PartWriter(), PartBuffers()
        writer.add("a", 0, [np.array([6], np.uint64)])
        (part,) = writer.finish()
        made = await store_part(storage, FLOW, part, last.number + 1, 0, buffers)
        writer.add("a", 0, [np.array([4], np.uint64)])
        (part,) = writer.finish()
        left_over = await store_part(storage, FLOW, part, last.number, 0, buffers)
        assert await Retention(storage, FLOW, 1).collect(last) == 2  # the claim, and what was left over
        assert f"{FLOW}/{made.name}" in storage.blobs and f"{FLOW}/{left_over.name}" not in storage.blobs

    run(check)


async def begun(beginnings: Beginnings, older: bool = False) -> Manifest:
    """What a life begins with."""
    data = (await beginnings.choose(older)).resume.manifests[FLOW]
    assert data is not None
    return decode_manifest(data)


def test_a_run_begins_as_its_user_says() -> None:
    async def check(storage: MemoryStorage) -> None:
        await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        beginnings = Beginnings(Recovery(storage, fresh=True), 1, ignore)
        fresh = await begun(beginnings)
        assert fresh.time is None
        await snapshot(storage, fresh, {0: 7}, 20)
        assert (await begun(beginnings)).time == 20  # a worker failed: what this run has saved counts
        assert (await begun(beginnings, older=True)).time is None  # that snapshot turned out to be damaged

    run(check)


def test_the_same_command_starts_from_a_savepoint_once() -> None:
    async def check(storage: MemoryStorage) -> None:
        last = await snapshot(storage, await claim(storage, FLOW, created=1.0), {0: 5}, 10)
        await name_savepoint(storage, last, "s")
        await snapshot(storage, last, {0: 6}, 20)
        for where, start in ((storage, "s"), (MemoryStorage(), "memory://old#s")):
            if where is not storage:
                MemoryStorage.named("old").blobs = storage.blobs
            recovery = Recovery(where, start_from=start)
            first = await begun(Beginnings(recovery, 1, ignore))
            assert (first.time, await state_of(where, first)) == (10, {0: 5})
            await snapshot(where, first, {0: 8}, 15)
            again = await begun(Beginnings(recovery, 1, ignore))
            assert (again.time, await state_of(where, again)) == (15, {0: 8})

    run(check)
