"""Part files: what goes in comes out, in files of bounded size; what is torn is found."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pyarrow as pa
import pytest
import trio

from dataflow.recovery.faulty import Faulty
from dataflow.recovery.local import LocalStorage
from dataflow.recovery.manifest import SavedFile, SnapshotDamaged, merge_files
from dataflow.recovery.memory import MemoryStorage
from dataflow.recovery.part_files import (
    FilledPart,
    PartBuffers,
    PartWriter,
    fetch_part,
    live_pieces,
    read_directory,
    read_part,
    store_part,
)
from tests.recovery.samples import words

Pieces = list[tuple[str, int, list[np.ndarray]]]


def write(pieces: Pieces, limit: int = 1 << 22) -> list[FilledPart]:
    writer = PartWriter(PartBuffers(limit))
    return [part for operator, shard, some in pieces for part in writer.add(operator, shard, some)] + writer.finish()


def random_pieces(chance: random.Random, longest: int) -> Pieces:
    return [
        (
            chance.choice(["totals", "counts é"]),
            shard,
            [words(chance, chance.randrange(1, longest)) for _ in range(chance.randrange(4))],
        )
        for shard in range(-1, chance.randrange(60))
    ]


@pytest.mark.parametrize("seed", range(12))
def test_what_goes_in_comes_out_in_files_of_bounded_size(seed: int) -> None:
    chance = random.Random(seed)
    limit = 1 << 17
    pieces = random_pieces(chance, chance.choice([2, 100, 5000, 40_000]))
    parts = write(pieces, limit)
    expected = [(operator, shard, piece.tolist()) for operator, shard, some in pieces for piece in some]
    found = [(operator, shard, piece.tolist()) for part in parts for operator, shard, piece in read_part(part.data)]
    assert found == expected
    for part in parts:
        longest = max((len(piece) for _, _, piece in read_part(part.data)), default=0)
        assert len(part.data) <= limit or 8 * longest > limit // 2  # a large piece has a file of its own
        directory = read_directory(part.data)
        assert {k: v.as_dict() for k, v in directory.items()} == {k: v.as_dict() for k, v in part.live.items()}
    named = {(operator, shard) for part in parts for operator, saved in part.live.items() for shard in saved.as_dict()}
    assert named == {(operator, shard) for operator, shard, _ in pieces}  # the empty ones among them


def test_nothing_gives_no_file() -> None:
    assert write([]) == []


def test_a_piece_that_is_larger_than_a_file_may_be_is_alone() -> None:
    big = np.arange(1 << 16, dtype=np.uint64)
    small = np.arange(10, dtype=np.uint64)
    parts = write([("a", 0, [small]), ("a", 1, [big, small]), ("a", 2, [])], limit=1 << 17)
    assert [sorted(part.live["a"].as_dict().items()) for part in parts] == [
        [(0, 10)], [(1, 65536)], [(1, 10), (2, 0)],
    ]  # fmt: skip


def test_the_same_content_gives_the_same_bytes_and_name() -> None:
    chance = random.Random(5)
    pieces = random_pieces(chance, 500)
    (one,), (two,) = write(pieces), write(pieces)
    two.buffer[len(two.data) :] = 255  # what lies behind is no part of it
    assert one.saved(3, 0).name == two.saved(3, 1).name
    assert one.saved(3, 0).name == f"part-0000000003-{hashlib.sha256(one.data).hexdigest()}.arrow"


def test_a_part_file_is_an_ordinary_arrow_file() -> None:
    (part,) = write([("totals", 4, [np.arange(3, dtype=np.uint64)]), ("totals", 5, [])])
    table = pa.ipc.open_file(pa.py_buffer(part.data)).read_all()
    assert table.to_pylist() == [
        {"operator": "totals", "shard": 4, "piece": [0, 1, 2]},
        {"operator": "totals", "shard": 5, "piece": []},
    ]


def test_pieces_are_views_of_the_file() -> None:
    (part,) = write([("a", 0, [np.arange(1000, dtype=np.uint64)])])
    data = bytes(part.data)
    ((_, _, piece),) = read_part(data)
    assert np.shares_memory(piece, np.frombuffer(data, np.uint8))


def test_memory_is_used_again() -> None:
    buffers = PartBuffers(1 << 16)
    piece = np.zeros(4000, np.uint64)

    async def check() -> None:
        seen = set()
        for shard in range(6):
            writer = PartWriter(buffers)
            for part in writer.add("a", shard, [piece]) + writer.finish():
                seen.add(part.buffer.ctypes.data)
                await store_part(MemoryStorage(), "d", part, 1, 0, buffers)
        assert len(seen) == 1

    trio.run(check)


def stored(pieces: Pieces) -> tuple[MemoryStorage, SavedFile]:
    storage = MemoryStorage()

    async def store() -> SavedFile:
        (part,) = write(pieces)
        return await store_part(storage, "flow", part, 2, 1, PartBuffers())

    return storage, trio.run(store)


def test_only_live_pieces_are_read() -> None:
    storage, file = stored([("a", shard, [np.full(shard + 1, shard, np.uint64)] * 2) for shard in range(4)])
    newer = SavedFile("newer", 0, "0" * 64, 3, 0, 0, {"a": file.live["a"].only(file.live["a"].shards == 2)})
    live, _ = merge_files([file], [newer])

    async def check() -> None:
        data = await fetch_part(storage, "flow", live)
        assert [(shard, len(piece)) for _, shard, piece in live_pieces(live, data)] == [
            (0, 1), (0, 1), (1, 2), (1, 2), (3, 4), (3, 4),
        ]  # fmt: skip
        with pytest.raises(SnapshotDamaged, match="has other state than the manifest says, of 'a' 2"):
            list(live_pieces(newer, b"".join([bytes(part.data) for part in write([("a", 1, [])])])))

    trio.run(check)


@pytest.mark.parametrize("seed", range(20))
def test_a_file_that_is_missing_torn_or_altered_is_found(seed: int) -> None:
    storage, file = stored([("a", 0, [np.arange(100, dtype=np.uint64)])])
    faulty = Faulty(seed)
    faulty.blobs = storage.blobs
    faulty.damage(f"flow/{file.name}")

    async def check() -> None:
        with pytest.raises(SnapshotDamaged, match=file.name):
            await fetch_part(faulty, "flow", file)

    trio.run(check)


def test_bytes_that_are_no_part_file_are_refused() -> None:
    (part,) = write([("a", 0, [np.arange(1000, dtype=np.uint64)]), ("b", 1, [])])
    whole = bytes(part.data)
    chance = random.Random(0)
    table = pa.table({"x": [1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(SnapshotDamaged, match="has other columns"):
        list(read_part(sink.getvalue().to_pybytes()))
    for data in [b"", b"ARROW1", *(whole[: chance.randrange(len(whole))] for _ in range(50))]:
        with pytest.raises(SnapshotDamaged, match="is no part file"):
            list(read_part(data))


def test_real_storages_hash_in_a_thread(tmp_path: object) -> None:
    """And give the same result; in memory nobody may use one, because simulations must be repeatable."""
    (part,) = write([("a", 0, [np.arange(1000, dtype=np.uint64)])])

    async def check() -> None:
        storage = LocalStorage(str(tmp_path))
        file = await store_part(storage, "flow", part, 2, 1, PartBuffers())
        assert await fetch_part(storage, "flow", file) == part.data
        with pytest.raises(SnapshotDamaged, match="is missing"):
            await fetch_part(storage, "other", file)

    trio.run(check)
