"""Each kind of sink, with a way to see what it shows: the conformance tests run on all of them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq
import pytest

from dataflow import sinks

R = TypeVar("R")
Row = tuple[Any, ...]


async def here(function: Callable[[], R]) -> R:
    """Runs what blocks here and now."""
    return function()


def place(worker: int = 0, incarnation: int = 1) -> sinks.Place:
    """Where a writer writes from."""
    return sinks.Place("sink", worker, incarnation, here)


class Shown:
    """A sink of rows (word, total), and what everybody can see of it."""

    keyed = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sink(self) -> sinks.Sink:
        raise NotImplementedError

    def rows(self) -> list[Row]:
        """What is visible, sorted."""
        raise NotImplementedError

    def staged(self) -> int:
        """How many staged things there are."""
        raise NotImplementedError


class Sqlite(Shown):
    def sink(self) -> sinks.Sink:
        key = ("word",) if self.keyed else ()
        return sinks.sqlite(self.folder / "out.db", "totals", columns=("word", "total"), key=key)

    def _ask(self, query: str) -> list[Row]:
        connection = sqlite3.connect(self.folder / "out.db")
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # there is no such table yet
            return []
        finally:
            connection.close()

    def rows(self) -> list[Row]:
        return sorted(self._ask("SELECT word, total FROM totals"))

    def staged(self) -> int:
        return len(self._ask("SELECT * FROM _dataflow_staged_totals"))


class KeyedSqlite(Sqlite):
    keyed = True


class JsonLines(Shown):
    def sink(self) -> sinks.Sink:
        return sinks.json_lines(self.folder / "out", columns=("word", "total"))

    def rows(self) -> list[Row]:
        paths = (self.folder / "out").glob("*.jsonl")
        read = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
        return sorted((row["word"], row["total"]) for row in read)

    def staged(self) -> int:
        return sum(not path.name.startswith("committed-") for path in (self.folder / "out" / "_staged").glob("*"))


class Parquet(JsonLines):
    def sink(self) -> sinks.Sink:
        return sinks.parquet(self.folder / "out", columns=("word", "total"))

    def rows(self) -> list[Row]:
        tables = [pq.read_table(path) for path in (self.folder / "out").glob("*.parquet")]
        return sorted((row["word"], row["total"]) for table in tables for row in table.to_pylist())


class Postgres(Shown):
    address = ""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ask("DROP TABLE IF EXISTS totals, _dataflow_staged_totals, _dataflow_commits")

    def sink(self) -> sinks.Sink:
        key = ("word",) if self.keyed else ()
        return sinks.postgres(self.address, "totals", columns=("word", "total"), key=key)

    def _ask(self, query: str) -> list[Row]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            try:
                cursor = connection.execute(query)
                return cursor.fetchall() if cursor.description else []
            except psycopg.errors.UndefinedTable:
                return []

    def rows(self) -> list[Row]:
        return sorted(self._ask("SELECT word, total FROM totals"))

    def staged(self) -> int:
        return len(self._ask("SELECT * FROM _dataflow_staged_totals"))


class KeyedPostgres(Postgres):
    keyed = True


LOCAL: list[type[Shown]] = [Sqlite, KeyedSqlite, JsonLines, Parquet]
SERVED: list[type[Shown]] = [Postgres, KeyedPostgres]


@contextmanager
def server() -> Iterator[str]:
    """A PostgreSQL server of our own, on a socket in a folder of its own; its address. Skips if there is none here."""
    pytest.importorskip("psycopg")
    homes = [Path(shutil.which("initdb") or "/nowhere").parent, *Path("/usr/lib/postgresql").glob("*/bin")]
    home = next((home for home in homes if (home / "initdb").exists()), None)
    if home is None:
        pytest.skip("no PostgreSQL server is installed here (initdb was not found)")
    folder = Path(tempfile.mkdtemp(prefix="dataflow-postgres-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        who = {"user": "nobody", "cwd": "/"}
        shutil.chown(folder, "nobody")
    data = folder / "data"
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"

    def run(*command: object) -> None:
        done = subprocess.run(
            [*map(str, command)], check=False, capture_output=True, text=True, env={"LC_ALL": "C"}, **who
        )
        if done.returncode:
            pytest.skip(f"PostgreSQL does not run here: {done.stderr or done.stdout}")

    try:
        run(home / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "-N")
        run(home / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield f"host={folder} dbname=postgres user=tester password=hush-hush"
        finally:
            run(home / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
