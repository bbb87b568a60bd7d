"""A snapshot that was altered after it was made is not used: the one before it is. What was shown since is shown again
then, so only sinks in which a row replaces the one before are as if nothing had happened."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.crashes import meaning
from tests.crashes.disk import Disk
from tests.crashes.driving import Case, Life, Plan
from tests.crashes.generating import random_program
from tests.crashes.outside import Outside
from tests.engine.harness import failsafe

ENOUGH = 12


def snapshots(disk: Disk) -> dict[int, str]:
    """By number, the names of manifests that are snapshots."""
    found = {}
    for name, blob in disk.blobs.items():
        if "manifest" in name:
            plain = json.loads(blob.partition(b"\n")[0])
            if plain["time"] is not None:
                found[plain["number"]] = name
    return found


@pytest.mark.parametrize("what", ["the manifest", "a file"])
def test_the_snapshot_before_is_used(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outside, "check", lambda self, sink: None)  # rows come twice,
    monkeypatch.setattr(Outside, "_require_whole", lambda self, sink, number: None)  # some with another token
    tried = 0
    with failsafe(120):
        for seed in range(10_000):
            program = random_program(seed)
            if {output.kind for output in program.outputs} != {"keyed"} or program.untimed:
                continue
            tried += damaged(seed, what)
            if tried == ENOUGH:
                return


def damaged(seed: int, what: str) -> bool:
    """Runs a program until it has two snapshots, damages the second, and lets it end; False if it has not got two."""
    chance = Random(seed)
    lives = (Life(2, seed, event=("committed", 3)), Life(chance.choice((1, 2, 3)), seed + 1))
    case = Case([random_program(seed)], Plan(lives, 0.0, keep=3), seed)
    (outside,) = case.outsides
    if case._live(lives[0]) or len(numbers := sorted(snapshots(case.disk))) < 2:
        return False
    name = snapshots(case.disk)[numbers[-1]]
    if what == "a file":
        files = {number: set(files_of(case.disk, snapshots(case.disk)[number])) for number in numbers}
        own = sorted(files[numbers[-1]] - files[numbers[-2]])
        if not own:
            return False
        name = name.partition("/")[0] + "/" + chance.choice(own)
    blob = bytearray(case.disk.blobs[name])
    blob[chance.randrange(len(blob))] ^= 1
    case.disk.blobs[name] = bytes(blob)
    outside.acknowledged.clear()  # these sources forget nothing
    assert case._live(lives[1])
    for number, shown in enumerate(outside.sinks):
        assert shown.by_key == meaning.last(outside.expected[number]), f"seed {seed}\n{outside.program}"
    return True


def files_of(disk: Disk, manifest: str) -> list[str]:
    """The files that a manifest names."""
    return [file["name"] for file in json.loads(disk.blobs[manifest].partition(b"\n")[0])["files"]]
