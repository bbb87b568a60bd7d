"""Compressed files, Arrow's format, and files in an object store: from any position exactly the rest."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio

import dataflow
from dataflow import sources
from dataflow.clients.buckets import Bucket
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.operators.source import Reader
from tests.connectors.lives import Crashed, Lives, Paced
from tests.engine.harness import failsafe

_END = object()


def by_arrow(kind: str) -> Callable[[bytes], bytes]:
    def compress(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, kind) as stream:
            stream.write(data)
        found: bytes = sink.getvalue().to_pybytes()
        return found

    return compress


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": by_arrow("zstd"),
    ".lz4": by_arrow("lz4"),
}


async def all_of(source: sources.Partitions[Any], name: str, position: object = None) -> list[tuple[object, list[Any]]]:
    """(position, records) of each batch from a position on."""
    reader = Reader(source.read(name, position))
    found = []
    try:
        while (item := await reader.next(_END)) is not _END:
            position, time, batch = item
            assert time is None
            found.append((position, batch.rows() if isinstance(batch, Columns) else list(batch)))
    finally:
        await reader.close()
    return found


def require_any_position_gives_the_rest(source: sources.Partitions[Any], expected: list[Any]) -> None:
    """The oracle is the list of all records: from each position that was given, exactly those behind it come."""

    async def main() -> None:
        (name,) = await source.partitions()
        whole = await all_of(source, name)
        assert [record for _, records in whole for record in records] == expected
        assert len(whole) > 2, "there should be positions in the middle"
        behind = 0
        for position, records in whole:
            behind += len(records)
            rest = await all_of(source, name, position)
            assert [record for _, some in rest for record in some] == expected[behind:]

    trio.run(main)


@pytest.mark.parametrize("ending", COMPRESSED)
@pytest.mark.parametrize("seed", range(2))
def test_compressed_texts(ending: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    values = [{"n": n, "text": "ü\u2028" * chance.randrange(30)} for n in range(chance.randrange(20, 60))]
    lines = [json.dumps(value, ensure_ascii=False) for value in values]
    data = ("\n".join(lines) + "\n" * chance.randrange(2)).encode()
    (tmp_path / f"a.jsonl{ending}").write_bytes(COMPRESSED[ending](data))
    size = chance.randrange(1, 7)
    require_any_position_gives_the_rest(sources.json_lines(tmp_path, batch=size), values)
    require_any_position_gives_the_rest(sources.lines(tmp_path, batch=size), lines)
    table = [{"n": str(n), "text": 'two\nlines, "quoted"'} for n in range(30)]
    rows = "n,text\n" + "".join(f'{row["n"]},"two\nlines, ""quoted"""\n' for row in table)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / f"a.csv{ending}").write_bytes(COMPRESSED[ending](rows.encode()))
    require_any_position_gives_the_rest(sources.csv(tmp_path / "b", batch=size), table)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_files_that_were_compressed_in_pieces(ending: str, tmp_path: Path) -> None:
    """Programs append to such files: one compressed piece after the other."""
    compress = COMPRESSED[ending]
    (tmp_path / f"a{ending}").write_bytes(compress(b"one\ntwo\nthr") + compress(b"ee\nfour\n"))
    require_any_position_gives_the_rest(sources.lines(tmp_path, batch=1), ["one", "two", "three", "four"])


@pytest.mark.parametrize("ending", [ending for ending in COMPRESSED if ending])
def test_a_compressed_file_that_is_not_whole_is_told(ending: str, tmp_path: Path) -> None:
    data = COMPRESSED[ending](b"".join(b"%d\n" % random.Random(n).getrandbits(200) for n in range(5000)))
    path = tmp_path / f"a{ending}"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(sources.SourceError, match=rf"a\{ending}, behind byte \d+, cannot be read"):
        trio.run(all_of, sources.lines(tmp_path), path.name)
    path.write_bytes(b"this is plain text\n" * 100)
    with pytest.raises(sources.SourceError, match="cannot be read"):
        trio.run(all_of, sources.lines(tmp_path), path.name)
    path.write_bytes(COMPRESSED[ending](b"short\n"))
    with pytest.raises(sources.SourceError, match="less than the 600 bytes that were read: it was replaced"):
        trio.run(all_of, sources.lines(tmp_path), path.name, 600)


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("seed", range(2))
def test_arrow_files(form: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = [(n, f"t{n}", chance.random()) for n in range(60)]
    table = pa.table(dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True)))
    make = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with make(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=chance.randrange(5, 30))
    require_any_position_gives_the_rest(sources.arrow(tmp_path, batch=chance.randrange(3, 12)), rows)
    chosen = sources.arrow(tmp_path / "x.arrow", batch=10, columns=["c", "a"])
    require_any_position_gives_the_rest(chosen, [(c, a) for a, _, c in rows])
    with pytest.raises(sources.SourceError, match=r"has no columns \['d'\]; it has \['a', 'b', 'c'\]"):
        trio.run(all_of, sources.arrow(tmp_path, columns=["d"]), "x.arrow")
    with pytest.raises(sources.SourceError, match="has 60 rows, and 61 have been read: it was replaced"):
        trio.run(all_of, sources.arrow(tmp_path), "x.arrow", 61)
    (tmp_path / "x.arrow").write_bytes(b"ARROW1 or not")
    with pytest.raises(sources.SourceError, match="is not an Arrow file, or not whole"):
        trio.run(all_of, sources.arrow(tmp_path), "x.arrow")


@pytest.mark.parametrize("seed", range(4))
def test_compressed_files_through_crashes(seed: int, tmp_path: Path) -> None:
    """Each line once, whatever dies: the folder has a file of each kind."""
    for number, (ending, compress) in enumerate(COMPRESSED.items()):
        data = b"".join(b"%d\n" % n for n in range(number * 20, number * 20 + 20))
        (tmp_path / f"{number}.txt{ending}").write_bytes(compress(data))
    seen: list[tuple[int, str]] = []
    chance = random.Random(seed)

    async def main(worker: dataflow.Worker) -> None:
        from dataflow import sinks

        with worker.dataflow() as scope:
            lines = scope.source(Paced(sources.lines(tmp_path, batch=3), seed))
            lines.sink(sinks.callback(lambda time, batch: seen.extend((time, line) for line in batch)))

    lives = Lives(every=0.3)
    for life in range(4):
        try:
            turns = chance.randrange(50, 300) if life < 3 else None
            lives.live(main, chance.choice([1, 2, 3]), seed * 10 + life, turns)
            break
        except Crashed:
            continue
    once = dict.fromkeys(seen)  # a time of the last snapshot may come again, with the same records
    assert sorted(int(line) for _, line in once) == list(range(20 * len(COMPRESSED)))


# In an object store


@pytest.fixture
def bucket(s3_bucket: str) -> Bucket:
    """A folder of a bucket that nobody else has."""
    return Bucket(f"s3://{s3_bucket}/{uuid4().hex}")


def test_files_in_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(50)]
    data = "\n".join(lines).encode()
    for name in ("logs/a.txt", "logs/_not", "logs/.hidden", "logs/deep/er/b.txt"):
        bucket.put(name, data if "a.txt" in name else b"x\n")
    bucket.put("one/c.txt.gz", gzip.compress(data))
    require_any_position_gives_the_rest(sources.lines(f"{bucket.title}/logs/", batch=7), lines)
    require_any_position_gives_the_rest(sources.lines(f"{bucket.title}/logs", batch=7), lines)
    require_any_position_gives_the_rest(sources.lines(f"{bucket.title}/logs/a.txt", batch=7), lines)
    require_any_position_gives_the_rest(sources.lines(f"{bucket.title}/one/*.gz", batch=7), lines)
    names = trio.run(sources.lines(f"{bucket.title}/**/*.txt").partitions)
    assert names == ["logs/a.txt", "logs/deep/er/b.txt"]
    rows = [(n, f"t{n}") for n in range(60)]
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=25)
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=25)
    for kind, make in (("parquet", sources.parquet), ("arrow", sources.arrow)):
        bucket.put(f"tables/x.{kind}", tmp_path / f"x.{kind}")
        require_any_position_gives_the_rest(make(f"{bucket.title}/tables/*.{kind}", batch=10), rows)


def test_what_is_wrong_with_a_bucket(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sources.SourceError, match=r"there is nothing at s3://snapshots/.*/none"):
        trio.run(sources.lines(f"{bucket.title}/none/*").partitions)
    with pytest.raises(ConstructionError, match="a pattern cannot choose buckets"):
        sources.lines("s3://*/x")
    with pytest.raises(ConstructionError, match="credentials belong into the environment") as failure:
        sources.parquet("s3://key:s3cret@bucket/x")
    assert "s3cret" not in str(failure.value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(sources.SourceError, match=r"s3://snapshots/.* cannot .*: it refuses the credentials"):
        trio.run(sources.lines(f"{bucket.title}/x").partitions)


def test_new_files_in_a_bucket(bucket: Bucket) -> None:
    seen: list[str] = []
    bucket.put("a.txt", b"one\ntwo")

    async def main(worker: dataflow.Worker) -> None:
        source = sources.lines(f"{bucket.title}/", follow=True)
        source.look_every = 0.05
        with worker.dataflow() as scope:
            scope.source(source).inspect(lambda _, line: seen.append(line))
        for expected in (["one", "two"], ["one", "three", "two"]):
            while sorted(seen) != expected:  # noqa: ASYNC110  # another worker sees some of it
                await trio.sleep(0.01)
            if worker.index == 0 and len(expected) == 2:
                await trio.to_thread.run_sync(bucket.put, "b.txt", b"three\n")
        worker.drop_dataflow(scope)

    with failsafe(60):
        dataflow.execute(main, workers=2, in_process=True)
