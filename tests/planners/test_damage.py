"""Damaged files, at random: what is read is what was written, or a BadRequest names the file. Nothing else ever raises.

Truncations, flipped bits, bytes that are zeroed, exchanged or inserted; and in JSON members that are missing, of
another type, or huge, with a checksum that fits: whoever damages a file on purpose can compute one.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planners.cli.files import read_request
from planners.cli.replay import observations, read_log
from planners.errors import BadRequest
from planners.model import Intervals
from planners.mtm import tables as stored
from planners.mtm.choice import Tables, mtm_choice
from planners.mtm.projection import project
from planners.mtm.table_files import seal_of
from tests.planners.test_mtm_projection import EXAMPLE


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The same bytes with one damage."""
    found, at, length = bytearray(data), rng.randrange(len(data)), rng.randrange(1, 64)
    match rng.choice(["cut", "flip", "flip", "flip", "zero", "exchange", "insert", "huge"]):
        case "cut":
            del found[at:]
        case "flip":
            found[at] ^= 1 << rng.randrange(8)
        case "zero":
            found[at : at + length] = bytes(len(found[at : at + length]))
        case "exchange":
            other = rng.randrange(len(data))
            found[at], found[other] = found[other], found[at]
        case "insert":
            found[at:at] = rng.randbytes(length)
        case "huge":
            found[at : at + 4] = b"\xff\xff\xff\x7f"  # where that is a length, it is 2 GiB
    return bytes(found)


ODD: list[Any] = [
    None, True, "x", "", [], {}, [[]], [None], ["x"], [1, [2]], {"a": 1}, -1, 0.5, 10**30, -(10**30), 1e308, 2**63,
    2**31, [10**30], [1e308, 1e308], "NaN", [0], [[0.5], [1]], [True],
]  # fmt: skip


def odd(document: Any, rng: random.Random) -> Any:
    """The same JSON with one member that is missing, of another type or too many."""
    found = json.loads(json.dumps(document))
    place: Any = found
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and len(place[key]) and rng.random() < 0.7:
            place = place[key]
            continue
        match rng.choice(["drop", "odd", "odd", "add"]):
            case "drop":
                del place[key]
            case "odd":
                place[key] = rng.choice(ODD)
            case "add" if isinstance(place, list):
                place.append(rng.choice(ODD))
            case "add":
                place["more"] = 1
        return found


def outcome(read: Callable[[], Any], path: Path) -> Any:
    """What was read, or "refused": then by a message that names the file."""
    try:
        return read()
    except BadRequest as error:
        told = str(error)
    assert str(path) in told and len(told) < 1_000, told
    return "refused"


# ------------------------------------------------------------------------------------------------------------- tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of several row groups."""
    path = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "ROW_GROUP", 40)
        stored.write(path, project(EXAMPLE, 1e-12))
    return path


def content(folder: Path) -> Any:
    tables = Tables.open(folder)
    rows = {nodes: [group.read() for group in tables.rows(nodes)] for nodes in tables.problem.counts}
    leasts = {nodes: [group.least for group in tables.rows(nodes)] for nodes in tables.problem.counts}
    listed = {nodes: [(cuts.tolist(), costs.tolist()) for cuts, costs in some] for nodes, some in rows.items()}
    return tables.problem.parameters(), tables.error, leasts, listed


def test_damaged_tables_are_refused_or_as_they_were(folder: Path) -> None:
    expected, seen = content(folder), Counter[str]()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 4
    for seed in range(300):
        rng = random.Random(seed)
        path = rng.choice(files)
        whole = path.read_bytes()
        path.write_bytes(damaged(whole, rng))
        try:
            found = outcome(lambda: content(folder), folder)
            assert found in ("refused", expected), (seed, path)
        except Exception as error:
            error.add_note(f"seed {seed}, {path.name}")
            raise
        finally:
            path.write_bytes(whole)
        seen["refused" if found == "refused" else "equal"] += 1
    assert seen["refused"] > 250 and seen["equal"] > 3, seen


def test_what_stands_beside_tables_may_be_anything(folder: Path) -> None:
    """With a checksum that fits: it is refused, or makes sense."""
    path = folder / "parameters.json"
    whole = path.read_text()
    seen = Counter[str]()
    try:
        for seed in range(300):
            document = odd(json.loads(whole), random.Random(seed))
            if seed % 2:
                document["checksum"] = stored.checksum(document)
            path.write_text(json.dumps(document))
            try:
                seen["refused" if outcome(lambda: content(folder), folder) == "refused" else "read"] += 1
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    finally:
        path.write_text(whole)
    assert seen["refused"] > 200 and seen["read"] > 3, seen


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"cuts": [[0, 5, 10]], "cost": [1]}, "not a table of projected costs"),
        ({"cuts": [[0.0, 5.0, 10.0]], "cost": [1.0]}, "not a table of projected costs"),
        ({"cuts": [["0", "5", "10"]], "cost": [1.0]}, "not a table of projected costs"),
        ({"cost": [1.0]}, "not a table of projected costs"),
        ({"cuts": [[0, 5, 10], [0, 5]], "cost": [1.0, 1.0]}, "without 3 cuts"),
        ({"cuts": [[0, 5], [0, 5, 5, 10]], "cost": [1.0, 1.0]}, "without 3 cuts"),
        ({"cuts": [[0, 5, 10], None], "cost": [1.0, 1.0]}, "without a cost, or without 3 cuts"),
        ({"cuts": [[0, None, 10]], "cost": [1.0]}, "without a cost, or without 3 cuts"),
        ({"cuts": [[0, 5, 10]], "cost": [None]}, "without a cost"),
        ({"cuts": [[0, 5, 10]], "cost": [float("nan")]}, "rows that cannot be"),
        ({"cuts": [[0, 5, 10]], "cost": [float("inf")]}, "rows that cannot be"),
        ({"cuts": [[0, 11, 10]], "cost": [1.0]}, "rows that cannot be"),
        ({"cuts": [[0, -1, 10]], "cost": [1.0]}, "rows that cannot be"),
        ({"cuts": [[0, 5, 9]], "cost": [1.0]}, "rows that cannot be"),
        ({"cuts": [[1, 5, 10]], "cost": [1.0]}, "rows that cannot be"),
    ],
)
def test_files_that_are_whole_and_make_no_sense(columns: Any, complaint: str, folder: Path, tmp_path: Path) -> None:
    """Written by another program, and sealed: types and values are checked before anything is planned with them."""
    made = json.loads((folder / "parameters.json").read_text())
    for path in folder.rglob("*.parquet"):
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    path = tmp_path / "costs" / "nodes=2" / "part-0.parquet"
    kinds = {"cuts": pa.list_(pa.int16()), "cost": pa.float64()} if complaint[:3] != "not" else {}
    pq.write_table(pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()}), path)
    made["files"]["nodes=2/part-0.parquet"] = seal_of(path).as_json()
    made["partitionings"]["2"] = len(columns["cost"])
    made["checksum"] = stored.checksum(made)
    (tmp_path / "parameters.json").write_text(json.dumps(made))
    with pytest.raises(BadRequest, match=f"{path}.*{complaint}.*anew"):
        mtm_choice(Intervals([0, 4, 10]), nodes=2, tables=Tables.open(tmp_path))


def test_files_that_were_not_written_or_are_missing_are_named(folder: Path) -> None:
    there = folder / "costs" / "nodes=3" / "part-0.parquet"
    more = there.with_name("part-1.parquet")
    more.write_bytes(there.read_bytes())
    try:
        with pytest.raises(BadRequest, match=r"other files than were written, nodes=3/part-1\.parquet"):
            Tables.open(folder)
    finally:
        more.unlink()


# -------------------------------------------------------------------------------------------------- requests and logs


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_damaged_requests(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"now.{suffix}"
    document = {"sizes": [5, 6, 9, 1.5], "loads": [8, 4, 7, 9], "cuts": [0, 2, 4], "nodes": [1, 0]}
    if suffix == "json":
        path.write_text(json.dumps(document))
    else:
        pq.write_table(pa.table({"size": [5.0, 6, 9, 1], "load": [8, 4, 7, 9], "node": [1, 1, 0, 0]}), path)
    whole = path.read_bytes()
    for seed in range(200):
        rng = random.Random(seed)
        both = suffix == "json" and seed % 2
        path.write_bytes(json.dumps(odd(document, rng)).encode() if both else damaged(whole, rng))
        try:
            found = outcome(lambda: read_request(str(path)), path)
            assert found == "refused" or found[0].tasks == len(found[1]) < 100
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_damaged_logs(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{suffix}"
    rows = [(i, b % 2, b, 10, 64, 5) for i in range(2) for b in range(4)]
    names = ("interval", "worker", "bin", "records", "bytes", "cost")
    document = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    path.write_text(json.dumps(document)) if suffix == "json" else pq.write_table(pa.table(document), path)
    whole = path.read_bytes()
    for seed in range(200):
        rng = random.Random(seed)
        both = suffix == "json" and seed % 2
        path.write_bytes(json.dumps(odd(document, rng)).encode() if both else damaged(whole, rng))
        try:
            found = outcome(lambda: read_log(str(path)), path)
            if found != "refused":
                for seen in observations(found, None, "records"):
                    assert np.isfinite(seen.cost).all()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
