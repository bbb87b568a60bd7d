"""Parquet files: what is written is what was generated, and half a job leaves nothing."""

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nexmark.events import files
from nexmark.events.config import Config
from nexmark.events.generator import COLUMNS, Generator
from nexmark.events.rows import rows


@pytest.mark.parametrize("payload", ["none", "full"])
@pytest.mark.parametrize("slice_of", [1, 70, 10**6])
def test_what_is_written_is_what_was_generated(tmp_path: Path, payload: str, slice_of: int) -> None:
    generator = Generator(Config(seed=6, group=10), payload=payload)  # type: ignore[arg-type]
    counts = files.write(tmp_path, generator, 203, slice_of)
    for kind, table in generator.events(range(203)).items():
        assert pq.read_table(tmp_path / f"{kind}.parquet").to_pylist() == rows(table)
        assert counts[kind] == len(rows(table))
    for kind, table in files.read(tmp_path).items():
        for name, column in Generator(generator.config).events(range(203))[kind].items():
            assert np.array_equal(table[name], column) and table[name].dtype == column.dtype


def test_no_events_are_files_without_rows(tmp_path: Path) -> None:
    assert files.write(tmp_path, Generator(), 0) == {"person": 0, "auction": 0, "bid": 0}
    for kind, table in files.read(tmp_path).items():
        assert {name: len(column) for name, column in table.items()} == dict.fromkeys(COLUMNS[kind], 0)


def test_numbers_are_int64_and_files_say_how_they_came_about(tmp_path: Path) -> None:
    files.write(tmp_path, Generator(Config(seed=8)), 100)
    schema = pq.read_schema(tmp_path / "bid.parquet")
    assert set(schema.types) == {pa.int64()}
    about = json.loads(schema.metadata[b"nexmark"])
    assert about.pop("events") == 100
    assert Config(**about) == Config(seed=8)


def test_what_is_stopped_half_way_leaves_nothing_and_spares_what_was_there(tmp_path: Path) -> None:
    files.write(tmp_path, Generator(), 50)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write(tmp_path, Generator(), 1000, slice_of=100, advance=stop)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_that_are_not_as_expected_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no person\.parquet and no auction.* python -m nexmark generate"):
        files.read(tmp_path)
    pq.write_table(pa.table({"event": [1], "state": ["TX"]}), tmp_path / "person.parquet")
    with pytest.raises(ValueError, match="has no column 'id'; it has event, state"):
        files.read(tmp_path, {"person": ["event", "id"]})
    with pytest.raises(ValueError, match="words in column 'state' that the generator does not use"):
        files.read(tmp_path, {"person": ["state"]})
    assert files.read(tmp_path, {"person": ["event"]})["person"]["event"].tolist() == [1]


def test_damaged_files_raise_one_kind_of_error_that_names_them(tmp_path: Path) -> None:
    files.write(tmp_path, Generator(Config(seed=6)), 300)
    refused = 0
    for seed in range(200):
        rng = random.Random(seed)
        path = tmp_path / f"{rng.choice(['person', 'auction', 'bid'])}.parquet"
        whole = path.read_bytes()
        data, at = bytearray(whole), rng.randrange(len(whole))
        if rng.random() < 0.3:
            del data[at:]
        else:
            data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        told = ""
        try:
            files.read(tmp_path)
            files.count(tmp_path)
        except ValueError as error:
            assert type(error) is ValueError, (seed, error)  # noqa: PT017
            told = str(error)
        finally:
            path.write_bytes(whole)
        assert not told or str(path) in told, (seed, told)
        refused += bool(told)
    assert refused > 100


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array([1.5, 2.0]), pa.array([[1], [2]])])
def test_columns_of_another_type_are_refused(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"auction": column}), tmp_path / "bid.parquet")
    with pytest.raises(ValueError, match=r"column 'auction' of .*bid\.parquet has empty places, or holds"):
        files.read(tmp_path, {"bid": ["auction"]})
