"""Snapshots that earlier versions wrote can be read, down to the state in them.

`formats/snapshot-1` was written by `python -m tests.recovery.test_formats`, and stays as it is. A later version of the
format, or of how a store lays out its pieces, adds a folder of its own; it does not write this one anew.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import trio

from dataflow.__main__ import main
from dataflow.comm import codec
from dataflow.recovery.catalogue import claim, commit, name_savepoint
from dataflow.recovery.local import LocalStorage
from dataflow.recovery.manifest import SavedOperator, follow
from dataflow.recovery.part_files import PartBuffers, PartWriter, store_part
from dataflow.state.pieces import pack
from tests.state.kinds import KEYS, KINDS, PINNING
from tests.state.test_reading import grown

FORMATS = Path(__file__).parent / "formats"
STORES = {f"{kind.name}": kind for kind in [*KINDS, *PINNING[1:]]}
SAVED = sorted(path.stem for path in (FORMATS / "shown-1").glob("*.txt"))  # stores that there were then


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A copy that only we can write to, whatever the checkout looks like."""
    copy = tmp_path / "state"
    shutil.copytree(FORMATS / "snapshot-1", copy)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return copy


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["snapshots", *arguments]) == 0
    return capsys.readouterr().out


def test_a_snapshot_of_format_1_is_whole(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = command(capsys, str(snapshot), "--verify").splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["3", "20"], ["2", "10"], ["1", "-"], ["keep", "10"]]
    assert all("verified; " in line for line in lines[2:])


@pytest.mark.parametrize("name", SAVED)
def test_the_state_in_a_snapshot_of_format_1_is_as_it_was(
    name: str, snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = command(capsys, str(snapshot), "--inspect", name, "--limit", "0")
    assert shown == (FORMATS / "shown-1" / f"{name}.txt").read_text()


async def write(folder: Path) -> None:
    """Two snapshots of every kind of store, the second with fewer files' worth of changes, and a savepoint."""
    storage = LocalStorage(folder)
    last = await claim(storage, "dataflow 0", created=1_795_000_000.0)
    stores = {name: grown(kind, 4, 1) for name, kind in STORES.items()}
    operators = {name: SavedOperator(dict(store.describe()), store.bins) for name, store in stores.items()}
    for name, store in stores.items():
        for key in range(0, KEYS, 5) if name == "rows" or name.startswith("pinning") else ():
            for piece in list(store.take_key(key, False, True, 1 << 10)):
                store.put(piece)
    shares = {
        name: {0: codec.encode([None, [pack(piece).tobytes() for piece in store.copy_apart(1 << 10)]])}
        for name, store in stores.items()
    }
    for time in (10, 20):
        writer, parts = PartWriter(PartBuffers(1 << 16)), []
        for name, store in stores.items():
            for bin in store.occupied().tolist()[: None if time == 10 else 2]:
                parts += writer.add(name, bin, [pack(piece) for piece in store.copy_bin(bin, 1 << 10)])
        files = [
            await store_part(storage, "dataflow 0", part, last.number + 1, 0, PartBuffers())
            for part in parts + writer.finish()
        ]
        manifest = follow(
            last, time=time, created=1_795_000_000.0, workers=1, graph="", operators=operators, files=files,
            shares={**shares, "lines": {0: codec.encode({"a.txt": 7})}}, tokens={"sink": {0: codec.encode("t")}},
        )  # fmt: skip
        last = await commit(storage, manifest)
        if time == 10:
            await name_savepoint(storage, last, "keep")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    trio.run(write, target / "snapshot-1")
