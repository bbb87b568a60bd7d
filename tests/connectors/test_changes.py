"""Changes of a PostgreSQL database, by logical replication, against a real server: a view that follows them is the
table."""

from __future__ import annotations

import datetime
import decimal
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

import dataflow
from dataflow import sinks, sources
from dataflow.errors import ConstructionError
from dataflow.recovery.memory import MemoryStorage
from tests.connectors.lives import Tripping
from tests.engine.harness import failsafe
from tests.launch.arena import wait_until

psycopg = pytest.importorskip("psycopg")


class Database:
    """Two tables, and changes of them by a seed."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._drop_slots()
        self.ask("DROP TABLE IF EXISTS people, things; DROP PUBLICATION IF EXISTS tests")
        self.ask("CREATE TABLE people (id int PRIMARY KEY, name text); CREATE TABLE things (id int PRIMARY KEY, n int)")

    def ask(self, query: str) -> list[Any]:
        cursor = self._connection.execute(query)
        return cursor.fetchall() if cursor.description else []

    def change(self, chance: random.Random, transactions: int) -> None:
        for _ in range(transactions):
            with self._connection.transaction(force_rollback=chance.random() < 0.1):
                for _ in range(chance.randrange(1, 4)):
                    table, column = chance.choice([("people", "name"), ("things", "n")])
                    key, value = chance.randrange(20), chance.randrange(1000)
                    free = f"NOT EXISTS (SELECT 1 FROM {table} WHERE id = {key + 100})"
                    self.ask(
                        chance.choice(
                            [
                                f"INSERT INTO {table} VALUES ({key}, {value}) ON CONFLICT (id) DO NOTHING",
                                f"UPDATE {table} SET {column} = {value} WHERE id = {key}",
                                f"UPDATE {table} SET id = {key + 100} WHERE id = {key} AND {free}",
                                f"DELETE FROM {table} WHERE id = {key}",
                            ]
                        )
                    )

    def rows(self) -> dict[str, dict[int, Any]]:
        return {table: dict(self.ask(f"SELECT * FROM {table}")) for table in ("people", "things")}

    def close(self) -> None:
        self._drop_slots()
        self._connection.close()

    def _drop_slots(self) -> None:
        """A server may not have noticed yet that a reader has gone."""
        drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
        wait_until(lambda: not self.ask(drop) and not self.ask("SELECT 1 FROM pg_replication_slots"), "free slots", 60)


@pytest.fixture
def database(postgres: str) -> Iterator[Database]:
    opened = Database(postgres)
    yield opened
    opened.close()


def follow(view: dict[str, dict[int, Any]], change: sources.RowChange) -> None:
    """Applies a change to a view: the oracle's few lines."""
    rows = view[change.table.removeprefix("public.")]
    if change.kind == "truncate":
        rows.clear()
    if change.kind in ("delete", "update"):
        rows.pop((change.old or change.new or {})["id"])
    if change.new is not None:
        assert change.new["id"] not in rows
        rows[change.new["id"]] = list(change.new.values())[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_view_is_the_table_through_failures(database: Database, seed: int, tmp_path: Path) -> None:
    """Changes go to a log, each once and in order; whoever applies the log has the table."""
    chance = random.Random(seed)
    database.change(chance, 20)
    storage = MemoryStorage()

    def live(trips: Tripping) -> None:
        async def main(worker: dataflow.Worker) -> None:
            source = sources.postgres_changes(database.dsn, ["people", "things"], slot="tests", follow=False)
            with worker.dataflow() as scope:
                changes = scope.source(source).map(lambda change: (*change[:2], repr(change)))
                changes = changes.map(lambda row: (trips(row[0]), *row[1:]))
                changes.sink(sinks.sqlite(tmp_path / "log.db", "log", columns=["kind", "tab", "text"]))

        with failsafe(60):
            recovery = dataflow.Recovery(storage, every=0.005, restarts=10)
            dataflow.execute(main, workers=chance.choice([1, 2]), in_process=True, recovery=recovery)
        view: dict[str, dict[int, Any]] = {"people": {}, "things": {}}
        with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
            for (text,) in connection.execute("SELECT text FROM log ORDER BY rowid"):
                follow(view, eval(text, {"RowChange": sources.RowChange}))
        assert view == database.rows()

    live(Tripping())
    database.change(chance, 50)
    live(Tripping("update", "delete"))
    database.change(chance, 10)
    database.ask("TRUNCATE things")
    live(Tripping("truncate"))
    live(Tripping())


async def some(source: sources.Partitions[Any], position: object = None) -> list[Any]:
    """All that there is behind a position."""
    found = []
    reader: Any = source.read("tests", position)
    async for item in reader:
        found.append((item[0], item[2]))
    return found


def test_a_transaction_is_a_batch_and_values_are_pythons(database: Database) -> None:
    database.ask("DROP TABLE IF EXISTS kinds")
    database.ask(
        "CREATE TABLE kinds (id int PRIMARY KEY, b bool, f float8, d numeric, t timestamptz, j jsonb, x bytea, l text)"
    )
    database.ask("ALTER TABLE kinds REPLICA IDENTITY FULL")
    source = sources.postgres_changes(database.dsn, "kinds", slot="tests", follow=False)
    assert trio.run(some, source) == []
    large = "large " * 10_000
    with database._connection.transaction():
        database._connection.execute(
            "INSERT INTO kinds VALUES (1, true, 0.5, 1.50, '2026-11-17 05:00+00', '{\"a\": [1]}', '\\x00ff', %s)",
            [large],
        )
        database.ask("UPDATE kinds SET b = NULL")
    position = psycopg_position(database)
    ((_, changes),) = trio.run(some, source, position)
    moment = datetime.datetime(2026, 11, 17, 5, tzinfo=datetime.UTC)
    row = {"id": 1, "b": True, "f": 0.5, "d": decimal.Decimal("1.50"), "t": moment, "j": {"a": [1]}, "x": b"\0\xff"}
    row["l"] = large
    assert changes == [
        ("insert", "public.kinds", row, None),
        ("update", "public.kinds", {**row, "b": None}, row),  # a large value that did not change comes from the old row
    ]
    database.ask("DROP TABLE kinds")


def psycopg_position(database: Database) -> int:
    """Where the slot is."""
    from dataflow.clients.pgoutput import parse_position

    ((text,),) = database.ask("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'tests'")
    return parse_position(text)


def test_what_is_wrong_is_told(database: Database) -> None:
    source = sources.postgres_changes(database.dsn, "people", slot="tests", follow=False)
    with pytest.raises(sources.SourceError, match="the slot is gone"):
        trio.run(some, source, 17)
    trio.run(some, source)
    with pytest.raises(sources.SourceError, match="somebody else has read from the slot"):
        trio.run(some, source, 17)
    with pytest.raises(sources.SourceError, match="nobody") as failure:
        trio.run(some, sources.postgres_changes(database.dsn, "nobody", slot="tests"))
    assert "hush-hush" not in str(failure.value)
    wrong = sources.postgres_changes("host=/nowhere dbname=x password=hush-hush", "people", slot="tests")
    with pytest.raises(sources.SourceError, match=r"changes of PostgreSQL \(/nowhere x\), slot tests") as failure:
        trio.run(some, wrong)
    assert "hush-hush" not in str(failure.value)
    for make, message in (
        (lambda: sources.postgres_changes("s3cret", "t"), "needs an address such as"),
        (lambda: sources.postgres_changes("host=x", []), "needs the names of tables"),
        (lambda: sources.postgres_changes("host=x", "t", slot="My-Slot"), "a slot's name has small letters"),
    ):
        with pytest.raises(ConstructionError, match=message):
            make()


def test_following(database: Database) -> None:
    """What changes while it runs; a connection that the server ends is made again."""
    seen: list[sources.RowChange] = []

    async def main(worker: dataflow.Worker) -> None:
        source = sources.postgres_changes(database.dsn, "things", slot="tests", existing=False)
        with worker.dataflow() as scope:
            scope.source(source).inspect(lambda _, change: seen.append(change))
        while not database.ask("SELECT 1 FROM pg_replication_slots WHERE active"):  # noqa: ASYNC110
            await trio.sleep(0.01)
        for number in range(6):
            database.ask(f"INSERT INTO things VALUES ({number}, {number})")
            while len(seen) <= number:  # noqa: ASYNC110  # the source runs beside
                await trio.sleep(0.01)
            if number == 2:
                database.ask("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        worker.drop_dataflow(scope)

    with failsafe(60):
        dataflow.execute(main, in_process=True)
    assert [change.new for change in seen] == [{"id": number, "n": number} for number in range(6)]
