"""`python -m dataflow snapshots`: what people see."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import trio

from dataflow.__main__ import main
from dataflow.comm import codec
from dataflow.recovery.catalogue import claim, commit, manifest_name
from dataflow.recovery.local import LocalStorage
from dataflow.recovery.manifest import Manifest, SavedOperator, follow
from dataflow.recovery.part_files import PartBuffers, PartWriter, store_part
from dataflow.state.durable import DurableStore
from dataflow.state.pieces import pack
from dataflow.state.stores.portions import Address, depart
from tests.recovery.test_manifest import sealed
from tests.state.kinds import KINDS
from tests.state.test_reading import grown

FLOW = "dataflow-0"


@dataclass
class Account:
    """A class of a program's own."""

    owner: str
    cents: int


async def fill(folder: Path) -> Manifest:
    """Two snapshots: of a store in rows, of folds that post-date, and of bank accounts."""
    storage = LocalStorage(folder)
    last = await claim(storage, FLOW, created=time.time() - 300)
    stores = {"rows": grown(KINDS[0], 4, 1), "folds": grown(KINDS[3], 4, 1)}
    operators = {name: SavedOperator(dict(store.describe()), store.bins) for name, store in stores.items()}
    operators["accounts"] = SavedOperator({"store": "rows", "shards": "2"}, 2)
    for at in (10, 20):
        writer, parts = PartWriter(), []
        for name, store in stores.items():
            for bin in store.occupied().tolist():
                parts += writer.add(name, bin, list(DurableStore(store).copy(bin, 1 << 10)))
        held = {"alice\x1b[2J": Account("alice", at)}
        parts += writer.add("accounts", 1, [pack(piece) for piece in depart(Address(1), held, {}, 100)])
        pinned = depart(Address(0, (777,), apart=True), {777: 12345}, {}, 100)
        shares = {"lines": {0: codec.encode(7)}}
        shares["rows"] = {0: codec.encode([None, [pack(piece).tobytes() for piece in pinned]])}
        files = [
            await store_part(storage, FLOW, part, last.number + 1, 0, PartBuffers()) for part in parts + writer.finish()
        ]
        last = await commit(
            storage,
            follow(
                last, time=at, created=time.time(), workers=2, graph="", operators=operators, files=files,
                shares=shares, tokens={"sqlite": {0: codec.encode(8)}}, final=at == 20,
            ),
        )  # fmt: skip
    return last


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    trio.run(fill, tmp_path / "state")
    return tmp_path / "state"


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["snapshots", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_list(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, folder)
    title, heads, last, first, claimed = out.splitlines()
    assert status == 0 and title == f"dataflow-0 in {folder}"
    assert heads.split(maxsplit=5) == ["snapshot", "time", "age", "size", "workers", "what is in it"]
    assert last.split()[:2] == ["3", "20"] and first.split()[:2] == ["2", "10"] and claimed.split()[:2] == ["1", "-"]
    assert "the end of a run; rows: 4 of 4 shards" in last and "the end" not in first
    assert last.endswith("accounts: 1 of 2 shards, 152 B; positions and values: lines; output: sqlite")
    assert claimed.split()[2:5] == ["5", "min", "0"] and claimed.endswith("1  a run began here, from the beginning")


def test_everything_is_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, folder, "--verify")
    assert status == 0 and out.count("  verified; ") == 3


def test_damage_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted((folder / FLOW).glob("part-*"))
    with files[-1].open("r+b") as file:
        file.seek(700)
        file.write(b"?")
    (folder / FLOW / "manifest-0000000004").write_bytes(b"half")
    (folder / FLOW / "manifest-0000000005").write_bytes(sealed({"format": 77}))
    status, out, _ = command(capsys, folder)
    assert status == 1 and out.count("cannot be read") == 2 and "is cut off" in out and "has format 77" in out
    status, out, _ = command(capsys, folder, "--verify")
    assert status == 1 and f"damaged: snapshot 3: {files[-1].name} in {folder} was altered" in out
    assert out.count("  verified; ") == 2
    status, _, err = command(capsys, folder, "--inspect", "rows")
    assert status == 1 and "was altered" in err
    files[-1].unlink()
    status, out, _ = command(capsys, folder, "--verify", "--snapshot", 3)
    assert status == 1 and "is missing" in out and "snapshot 2" not in out


def test_state_is_shown_as_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, folder, "--inspect", "folds", "--limit", 3)
    lines = out.splitlines()
    assert status == 0 and lines[0] == "folds in dataflow-0, snapshot 3 at 20"
    assert lines[2].split() == ["shard", "key", "total"]
    store = grown(KINDS[3], 4, 1)
    entries = {key: state for bin in range(4) for key, state in store.view(bin).entries.items()}
    assert lines[1] == f"{len(entries)} keys"
    for line in lines[3:6]:
        _, key, total = line.split()
        assert entries[int(key)] == {"total": int(total)}
    assert lines[6] == f"... and {len(entries) - 3} more (--limit 0 shows all)"
    assert lines[9].split() == ["shard", "until", "record"] and "'back': " in lines[10]
    status, out, _ = command(capsys, folder, "--inspect", "rows", "--limit", 0, "--snapshot", 2)
    assert status == 0 and out.startswith("rows in dataflow-0, snapshot 2 at 10\n") and "more" not in out
    assert "\npinned  777  12345\n" in out


def test_objects_of_a_class_need_their_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, folder, "--inspect", "accounts", "--import", __name__)
    assert status == 0 and "Account(owner='alice', cents=20)" in out
    assert "alice?[2J" in out and "\x1b" not in out  # nothing that a terminal would obey
    status, _, err = command(capsys, folder, "--inspect", "accounts", "--import", "no_such_module")
    assert status == 2 and "--import no_such_module: No module named" in err


def test_savepoints_are_made_and_deleted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, folder, "--save", "before change")
    assert (status, out) == (0, "dataflow-0: snapshot 3, at 20, is kept as before change\n")
    status, _, err = command(capsys, folder, "--save", "before change")
    assert status == 1 and "already" in err
    assert command(capsys, folder, "--snapshot", "before change")[1].count("the end of a run") == 1
    assert command(capsys, folder, "--forget", "before change")[0] == 0
    status, _, err = command(capsys, folder, "--forget", "before change")
    assert status == 2 and "there is no savepoint 'before change'" in err


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--dataflow", "x"], "there is no dataflow 'x' in .*; there are: dataflow-0"),
        (["--snapshot", "12"], "there is no snapshot '12'"),
        (["--inspect", "total"], "no snapshot has an operator 'total'; there are: accounts, folds, rows"),
    ],
)
def test_what_is_not_there_is_told(
    arguments: list[str], match: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = command(capsys, folder, *arguments)
    assert status == 2 and re.search(match, err)


def test_a_place_without_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = command(capsys, tmp_path / "nowhere")
    assert status == 2 and "there are no snapshots in" in err
    status, _, err = command(capsys, "gopher://x")
    assert status == 2 and "snapshots cannot be kept at gopher://x" in err


def test_state_of_a_store_that_is_not_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def alter() -> None:
        storage = LocalStorage(folder)
        last = await claim(storage, FLOW, created=0.0)
        operators = {"new": SavedOperator({"store": "TreeStore", "shards": "4"}, 4)}
        writer = PartWriter()
        writer.add("new", 0, [np.arange(3, dtype=np.uint64)])
        files = [await store_part(storage, FLOW, part, 5, 0, PartBuffers()) for part in writer.finish()]
        await commit(
            storage,
            follow(
                last, time=30, created=0.0, workers=1, graph="", operators=operators, files=files, shares={}, tokens={}
            ),
        )  # fmt: skip

    trio.run(alter)
    status, _, err = command(capsys, folder, "--inspect", "new")
    assert status == 1 and "knows no store 'TreeStore'" in err
    assert manifest_name(FLOW, 5) == f"{FLOW}/manifest-0000000005"
