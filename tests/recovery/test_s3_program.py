"""A program whose snapshots are in S3: on two processes, then with more input on one, from where it was."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow import sinks, sources
from dataflow.__main__ import main as command


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    total = (total or 0) + one
    return total, [(word, total)]


async def word_count(worker: dataflow.Worker, folder: str, database: str) -> None:
    with worker.dataflow("words") as scope:
        lines: Any = scope.source(sources.lines(folder, batch=10))
        words = lines.flat_map(lambda line: [(word, 1) for word in line.split()])
        totals = megaphone.state_machine(scope.control(), words, fold=count, bins=16, name="totals")
        totals.sink(sinks.sqlite(database, "totals", columns=("word", "total"), key=("word",)))


def test_a_program_goes_on_from_snapshots_in_s3(
    s3_bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    database, where = tmp_path / "out.db", f"s3://{s3_bucket}/words"
    arguments = (str(tmp_path / "logs"), str(database))
    for workers, text in ((2, "one two two\nthree three three\n"), (1, "two one\n")):
        for name in ("a.txt", "b.txt"):
            with (tmp_path / "logs" / name).open("a") as file:
                file.write(text)
        dataflow.execute(word_count, *arguments, workers=workers, recovery=where)
    with sqlite3.connect(database) as connection:
        rows = dict(connection.execute("select word, total from totals").fetchall())
    connection.close()
    assert rows == {"one": 4, "two": 6, "three": 6}
    assert command(["snapshots", where, "--verify"]) == 0
    assert "the end of a run; totals: 3 of 16 shards" in capsys.readouterr().out
