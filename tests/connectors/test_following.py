"""Files that grow, and new files, while a source follows them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio

import dataflow
from dataflow import sinks, sources
from tests.connectors.lives import Crashed, Lives
from tests.engine.harness import Run


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


async def seen_in(seconds: float, records: list[Any]) -> list[Any]:
    """What has been seen after some time, sorted; and forgets it."""
    await trio.sleep(seconds)
    found = sorted(records, key=repr)
    records.clear()
    return found


@pytest.mark.parametrize("run", [Run(1, seed=0), Run(3, seed=1), Run(2, seed=2)], ids=str)
def test_whole_lines_as_they_are_appended_and_new_files(run: Run, tmp_path: Path) -> None:
    seen: list[str] = []
    append(tmp_path / "a", b"one\ntw")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.lines(tmp_path, follow=True)).inspect(lambda _, line: seen.append(line))
        if worker.index == 0:
            assert await seen_in(2, seen) == ["one"]
            append(tmp_path / "a", b"o")
            assert await seen_in(2, seen) == []
            append(tmp_path / "a", b"\n")
            append(tmp_path / "b", "grün\nblau\nr".encode())
            assert await seen_in(2, seen) == ["blau", "grün", "two"]
            append(tmp_path / "b", b"ot\r\n\n")
            assert await seen_in(2, seen) == ["", "rot"]
            worker.drop_dataflow(scope)

    run(main)


def test_a_character_that_is_cut_in_two_is_no_error(tmp_path: Path) -> None:
    seen: list[str] = []
    letter = "ü\n".encode()
    append(tmp_path / "a", letter[:1])

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.lines(tmp_path, follow=True)).inspect(lambda _, line: seen.append(line))
        assert await seen_in(2, seen) == []
        append(tmp_path / "a", letter[1:])
        assert await seen_in(2, seen) == ["ü"]
        worker.drop_dataflow(scope)

    Run(1, seed=0)(main)


def test_other_kinds_of_files(tmp_path: Path) -> None:
    seen: list[Any] = []
    folders = [tmp_path / name for name in ("csv", "json", "parquet")]
    for folder in folders:
        folder.mkdir()

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            streams = [
                scope.source(sources.csv(folders[0], follow=True, types={"y": int}), name="csv"),
                scope.source(sources.json_lines(folders[1], follow=True), name="json"),
                scope.source(sources.parquet(folders[2], follow=True), name="parquet"),
            ]
            for stream in streams:
                stream.inspect(lambda _, record: seen.append(record))
        append(folders[0] / "a", b"x,")
        append(folders[1] / "a", b'{"x": 1}\n{"x"')
        assert await seen_in(3, seen) == [{"x": 1}]
        append(folders[0] / "a", b'y\n1,2\n"two\n')
        append(folders[1] / "a", b": 2}\n")
        assert await seen_in(3, seen) == [{"x": "1", "y": 2}, {"x": 2}]
        append(folders[0] / "a", b'lines",3\n')
        pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "aside")
        (tmp_path / "aside").rename(folders[2] / "b")
        assert await seen_in(3, seen) == [(1,), (2,), {"x": "two\nlines", "y": 3}]
        worker.drop_dataflow(scope)

    Run(1, seed=0)(main)


@pytest.mark.parametrize("seed", range(6))
def test_a_program_that_follows_goes_on_after_a_crash(seed: int, tmp_path: Path) -> None:
    """The files grow meanwhile, by pieces that end anywhere."""
    chance = random.Random(seed)
    texts = {name: "".join(f"{name}{n}\n" for n in range(20)).encode() for name in "abcd"}
    written = dict.fromkeys(texts, 0)
    folder = tmp_path / "texts"
    folder.mkdir()

    def grow() -> bool:
        name = chance.choice([name for name in texts if written[name] < len(texts[name])])
        size = chance.randrange(1, 20)
        append(folder / name, texts[name][written[name] : written[name] + size])
        written[name] += len(texts[name][written[name] : written[name] + size])
        return any(written[name] < len(texts[name]) for name in texts)

    more = True

    async def main(worker: dataflow.Worker) -> None:
        nonlocal more
        with worker.dataflow() as scope:
            scope.source(sources.lines(folder, batch=3, follow=True)).sink(sinks.json_lines(tmp_path / "out"))
        while worker.index == 0 and more:
            more = grow()
            await trio.sleep(chance.random() * 0.2)

    lives = Lives(every=0.3)
    for life in range(60):  # a program that follows never ends by itself
        turns = chance.randrange(50, 600) if more else 4000
        with pytest.raises(Crashed):
            lives.live(main, chance.choice([1, 2, 3]), seed * 100 + life, turns)
        rows = [row for path in (tmp_path / "out").glob("*.jsonl") for row in path.read_text().splitlines()]
        if len(rows) == 80:
            break
    assert sorted(map(json.loads, rows)) == sorted(line.decode() for text in texts.values() for line in text.split())
    assert len(lives.began) > 1


def test_a_file_that_shrinks_while_it_is_followed_is_told(tmp_path: Path) -> None:
    append(tmp_path / "a", b"one\ntwo\n")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.lines(tmp_path, follow=True))
        await trio.sleep(1)
        (tmp_path / "a").write_bytes(b"one\n")
        await trio.sleep(1)

    with pytest.raises(sources.SourceError, match="a has 4 bytes, and 8 have been read: it was cut off or replaced"):
        Run(1, seed=0)(main)
