"""Runs, crashes and zombies in a storage that fails; broken variants must be caught."""

from __future__ import annotations

import pytest

from dataflow.errors import DataflowError
from dataflow.recovery import retention
from dataflow.recovery.catalogue import commit, manifest_name
from dataflow.recovery.faulty import Faulty
from dataflow.recovery.format import encode_manifest
from dataflow.recovery.manifest import Manifest
from dataflow.recovery.storage import AlreadyThere
from tests.recovery.lives import Variant, play

CASES = 40


def caught(variant: Variant, cases: int = CASES) -> bool:
    """Whether some seed shows that a variant is broken."""
    for seed in range(cases):
        try:
            play(seed, variant)
        except (AssertionError, DataflowError, ExceptionGroup):
            return True
    return False


def test_no_run_finds_anything_but_the_last_snapshot() -> None:
    worlds = [play(seed) for seed in range(CASES)]
    assert sum(world.committed for world in worlds) > 300
    assert sum(world.fenced for world in worlds) > 10


def test_a_storage_that_does_not_sync_is_caught() -> None:
    assert caught(Variant(syncs=False))


def test_a_manifest_before_its_files_is_caught() -> None:
    assert caught(Variant(files_first=False))


def test_changes_that_an_abandoned_snapshot_forgets_are_caught() -> None:
    assert caught(Variant(remembers_changes=False))


def test_a_commit_that_overwrites_is_caught() -> None:
    async def overwrite(storage: Faulty, manifest: Manifest) -> Manifest:
        await storage.put(manifest_name(manifest.dataflow, manifest.number), encode_manifest(manifest))
        return manifest

    assert caught(Variant(commit=overwrite))


def test_a_commit_that_takes_any_manifest_there_for_its_own_is_caught() -> None:
    async def believe(storage: Faulty, manifest: Manifest) -> Manifest:
        try:
            return await commit(storage, manifest)
        except DataflowError as error:
            if not isinstance(error, AlreadyThere) and "has taken" not in str(error):
                raise
            return manifest

    assert caught(Variant(commit=believe))


def test_a_commit_that_does_not_look_for_later_numbers_is_caught() -> None:
    async def put_only(storage: Faulty, manifest: Manifest) -> Manifest:
        await storage.put(manifest_name(manifest.dataflow, manifest.number), encode_manifest(manifest), if_absent=True)
        return manifest

    assert caught(Variant(commit=put_only), 2 * CASES)


def test_deleting_files_of_a_snapshot_that_is_being_made_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_number_of", lambda name: 0)
    assert caught(Variant())
