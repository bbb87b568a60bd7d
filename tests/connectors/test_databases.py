"""What can be wrong with a table, a folder or a server, and what is said about it."""

from __future__ import annotations

import datetime
import decimal
import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio

import dataflow
from dataflow import sinks
from dataflow.errors import ConstructionError
from dataflow.sinks import folders
from tests.connectors.lives import Lives
from tests.connectors.places import JsonLines, Postgres, place
from tests.engine.harness import Run


def write(sink: sinks.Sink, *batches: Any) -> None:
    """Writes and commits some batches."""

    async def main() -> None:
        writer = sink.open(place())
        try:
            for time, batch in enumerate(batches):
                await writer.write(time, batch)
            token = await writer.prepare(len(batches))
            if token is not None:
                await writer.commit(token)
        finally:
            writer.close()

    trio.run(main)


def table(path: Path, query: str = "SELECT * FROM t") -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sinks.sqlite("x.db", "t", columns=()), "needs the names of its columns"),
        (lambda: sinks.sqlite("x.db", "t", columns="ab"), "columns are a list of names"),
        (lambda: sinks.sqlite("x.db", "t", columns=["a", "a"]), "a name occurs twice"),
        (lambda: sinks.sqlite("x.db", "t", columns=["a"], key=["b"]), r"'b' is in the key and not among the columns"),
        (lambda: sinks.sqlite("x.db", "", columns=["a"]), "needs a table's name"),
        (lambda: sinks.sqlite("x.db", "t", columns=["a"], patience=-1), "patience is a number of seconds"),
        (lambda: sinks.parquet(""), "needs a folder"),
        (lambda: sinks.json_lines("x", every=-1), "every is a number of seconds"),
        (lambda: sinks.callback(17), "callback needs a function"),
        (lambda: sinks.at_least_once(None), "at_least_once needs a function"),
        (lambda: sinks.postgres("host=h", "t", columns=["a"], types={"b": "int"}), r"types= names \['b'\]"),
        (lambda: sinks.postgres("s3cret", "t", columns=["a"]), "needs an address such as"),
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ConstructionError, match=message) as failure:
        make()
    assert "s3cret" not in str(failure.value)


# SQLite


def test_a_table_is_made_or_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a INTEGER, extra TEXT DEFAULT 'e')")
    connection.execute("CREATE TABLE keyless (a, b)")
    connection.commit()
    write(sinks.sqlite(path, "t", columns=["a"]), [(1,), 2])
    assert table(path) == [(1, "e"), (2, "e")]
    with pytest.raises(sinks.SinkError, match=r"table 't' of .* has the columns \['a', 'extra'\], and no \['b'\]"):
        write(sinks.sqlite(path, "t", columns=["b"]), [(1,)])
    with pytest.raises(
        sinks.SinkError, match=r"table 'keyless' of .*: ON CONFLICT clause does not match any PRIMARY KEY"
    ):
        write(sinks.sqlite(path, "keyless", columns=["a", "b"], key=["a"]), [(1, 2)])
    write(sinks.sqlite(path, 'odd "name', columns=["a b", 'c"d'], key=["a b"]), [(1, 2), (1, 3)])
    assert table(path, 'SELECT * FROM "odd ""name"') == [(1, 3)]
    connection.close()


def test_a_table_of_keys_alone(tmp_path: Path) -> None:
    write(sinks.sqlite(tmp_path / "x.db", "t", columns=["a"], key=["a"]), [(1,), (2,), (1,)])
    assert sorted(table(tmp_path / "x.db")) == [(1,), (2,)]


def test_a_key_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(sinks.SinkError, match=r"a record has no 'a', which is in the key: \(None, 1\)"):
        write(sinks.sqlite(tmp_path / "x.db", "t", columns=["a", "b"], key=["a"]), [(2, 1), (None, 1)])
    write(sinks.sqlite(tmp_path / "x.db", "t", columns=["a", "b"], key=["a"]), [(2, None)])
    assert table(tmp_path / "x.db") == [(2, None)]


def test_values_of_many_kinds(tmp_path: Path) -> None:
    moment = datetime.datetime(2026, 11, 17, 5, 0)
    row = (np.int64(7), np.float32(0.5), True, None, b"x", moment, moment.date(), decimal.Decimal("1.50"))
    columns = list("abcdefgh")
    write(sinks.sqlite(tmp_path / "x.db", "t", columns=columns), [row])
    assert table(tmp_path / "x.db") == [(7, 0.5, 1, None, b"x", "2026-11-17 05:00:00", "2026-11-17", "1.50")]
    write(sinks.json_lines(tmp_path / "out", columns=[c for c in columns if c != "e"]), [(*row[:4], *row[5:])])
    (path,) = (tmp_path / "out").glob("*.jsonl")
    assert '"a": 7, "b": 0.5, "c": true, "d": null, "f": "2026-11-17 05:00:00"' in path.read_text()
    with pytest.raises(sinks.SinkError, match="column 'a' cannot hold a list: SQLite has integers"):
        write(sinks.sqlite(tmp_path / "x.db", "u", columns=["a"]), [([1],)])
    with pytest.raises(sinks.SinkError, match="too large"):
        write(sinks.sqlite(tmp_path / "x.db", "u", columns=["a"]), [(1 << 70,)])


def test_a_locked_database_is_waited_for_within_bounds(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sinks.SinkUnavailable, match=r"somebody else has locked the database for 0 s: end their"):
        write(sinks.sqlite(path, "t", columns=["a"], patience=0), [(1,)])
    other.execute("COMMIT")
    write(sinks.sqlite(path, "t", columns=["a"], patience=0), [(1,)])
    assert table(path) == [(1,)]
    other.close()


def test_a_database_that_is_none_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(sinks.SinkError, match=r"x.db.*: file is not a database"):
        write(sinks.sqlite(tmp_path / "x.db", "t", columns=["a"]), [(1,)])
    with pytest.raises(sinks.SinkError, match=r"there is no folder .*nowhere"):
        write(sinks.sqlite(tmp_path / "nowhere" / "x.db", "t", columns=["a"]), [(1,)])


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        sink = sinks.sqlite(tmp_path / "x.db", "t", columns=["a"])
        writer: Any = sink.open(place())
        await writer.write(0, [("x" * 1000,)] * 10)
        writer._connect().execute("PRAGMA max_page_count = 2")
        with pytest.raises(sinks.SinkUnavailable, match=r"table 't' of .*x.db' cannot be written: .*full"):
            await writer.prepare(1)
        writer._connect().execute("PRAGMA max_page_count = 1000")
        await writer.commit(await writer.prepare(1))
        writer.close()

    trio.run(main)
    assert len(table(tmp_path / "x.db")) == 10


# Folders


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for sink in (sinks.json_lines(tmp_path / "file"), sinks.parquet(tmp_path / "file", columns=["a"])):
        with pytest.raises(sinks.SinkUnavailable, match=r"files in .*file> cannot be written: Not a directory"):
            write(sink, [(1,)])


def test_rows_that_have_no_form(tmp_path: Path) -> None:
    with pytest.raises(sinks.SinkError, match="cannot be written as JSON: a set has no form in JSON"):
        write(sinks.json_lines(tmp_path), [{1, 2}])
    with pytest.raises(sinks.SinkError, match="cannot be written as JSON: Out of range float"):
        write(sinks.json_lines(tmp_path), [float("nan")])
    with pytest.raises(sinks.SinkError, match=r"nobody has named their columns: parquet\(folder, columns="):
        write(sinks.parquet(tmp_path), [(1, 2)])
    with pytest.raises(sinks.SinkError, match=r"rows cannot be written as columns|do not fit together"):
        write(sinks.parquet(tmp_path, columns=["a"]), [(1,)], [("x",)])


def test_files_that_were_taken_away_after_the_commit_are_not_missed(tmp_path: Path) -> None:
    """A commit may be repeated when somebody has moved the files on already."""

    def take_away() -> None:
        for path in tmp_path.glob("*.jsonl"):
            path.unlink()

    async def main() -> None:
        writer = sinks.json_lines(tmp_path).open(place())
        await writer.write(0, [1])
        token = await writer.prepare(1)
        await writer.commit(token)
        take_away()
        for incarnation in (2, 3):
            other = sinks.json_lines(tmp_path).open(place(0, incarnation))
            await other.recover([token])
            await other.commit(token)

    trio.run(main)
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_token_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    async def main() -> None:
        writer = sinks.json_lines(tmp_path / "out").open(place())
        with pytest.raises(sinks.SinkError, match="is no name of a file"):
            await writer.commit([["../passwords", "x"]])

    trio.run(main)


def test_a_snapshot_that_a_full_disk_prevents_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The stream goes on meanwhile, and nothing is lost."""
    sync, failures = os.fsync, iter(range(3))

    def full(descriptor: int) -> None:
        if next(failures, None) is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(folders.os, "fsync", full)
    shown = JsonLines(tmp_path)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.sink(shown.sink())
        for time in range(worker.resume_at, 8):
            numbers.send([(f"w{time}", time)])
            numbers.advance_to(time + 1)
            await trio.sleep(1)

    Lives(every=1.5).live(main, 1, 0)
    assert shown.rows() == [(f"w{time}", time) for time in range(8)]
    assert "was given up" in capfd.readouterr().err


# PostgreSQL


def test_postgres_makes_a_table_of_the_types_it_sees(postgres: str, tmp_path: Path) -> None:
    Postgres.address = postgres
    shown = Postgres(tmp_path)
    shown._ask("DROP TABLE IF EXISTS kinds, _dataflow_staged_kinds, bad, _dataflow_staged_bad")
    moment = datetime.datetime(2026, 11, 17, 5, 0, tzinfo=datetime.UTC)
    row = (1, 0.5, True, "x", b"y", moment, moment.date(), decimal.Decimal("1.50"), None)
    write(sinks.postgres(postgres, "kinds", columns=list("abcdefghi"), types={"i": "integer"}), [row])
    assert shown._ask("SELECT a, b, c, d, e, f AT TIME ZONE 'UTC', g, h, i FROM kinds") == [
        (*row[:5], moment.replace(tzinfo=None), *row[6:])
    ]
    with pytest.raises(sinks.SinkError, match="what column 'a' holds is not clear from None: make the table, or say"):
        write(sinks.postgres(postgres, "bad", columns=["a"]), [(None,)])
    with pytest.raises(sinks.SinkError, match=r"table 'kinds' of PostgreSQL .*: column .*nope.* does not exist"):
        write(sinks.postgres(postgres, "kinds", columns=["nope"]), [(1,)])


def test_no_secret_is_in_a_message(postgres: str) -> None:
    sink = sinks.postgres("host=/nowhere user=me password=hush-hush dbname=shop", "t", columns=["a"], patience=1)
    with pytest.raises(
        sinks.SinkUnavailable, match=r"table 't' of PostgreSQL \(/nowhere shop\) cannot be written"
    ) as no:
        write(sink, [(1,)])
    wrong = sinks.postgres(f"{postgres} dbname=nothing", "t", columns=["a"], patience=1)
    with pytest.raises(sinks.SinkUnavailable, match="does not exist") as none:
        write(wrong, [(1,)])
    for failure in (no, none):
        assert "hush" not in str(failure.value) and "hush" not in repr(sink)
        assert failure.value.__cause__ is None and failure.value.__suppress_context__


def test_a_connection_that_was_lost_is_made_anew(postgres: str, tmp_path: Path) -> None:
    Postgres.address = postgres
    shown = Postgres(tmp_path)

    async def main() -> None:
        writer = shown.sink().open(place())
        await writer.write(0, [("a", 1)])
        await writer.prepare(1)
        shown._ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        await writer.write(1, [("b", 2)])
        with pytest.raises(sinks.SinkUnavailable, match="cannot be written"):
            await writer.prepare(2)  # the snapshot is given up
        await writer.commit(await writer.prepare(2))
        writer.close()

    trio.run(main)
    assert shown.rows() == [("a", 1), ("b", 2)]


def test_a_table_that_somebody_has_locked(postgres: str, tmp_path: Path) -> None:
    import psycopg

    Postgres.address = postgres
    shown = Postgres(tmp_path)
    write(shown.sink(), [("a", 1)])
    with psycopg.connect(postgres) as other:
        other.execute("LOCK TABLE totals IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(sinks.SinkUnavailable, match="lock timeout"):
            write(sinks.postgres(postgres, "totals", columns=("word", "total"), patience=0), [("b", 2)])
    assert shown.rows() == [("a", 1)]


def test_postgres_from_several_workers(postgres: str, tmp_path: Path) -> None:
    """Each worker writes its keys; an older total never replaces a newer one."""
    Postgres.address = postgres
    shown = Postgres(tmp_path)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers = scope.source([(f"k{n % 5}", n) for n in range(40)] if worker.index == 0 else [], batch=3)
            numbers.sink(sinks.postgres(postgres, "totals", columns=("word", "total"), key=("word",)))

    for run in (Run(2, seed=0), Run(3)):
        run(main)
        assert shown.rows() == [(f"k{n % 5}", n) for n in range(35, 40)]
