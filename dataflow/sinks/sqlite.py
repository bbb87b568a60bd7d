"""Tables of SQLite databases."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dataflow.channels.pact import Pact, ToWorker
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.databases import COMMITS, STAGED, StagedRows, TableWriter
from dataflow.sinks.shape import Row, TableShape, as_text, plain, require_text

_KNOWN = (int, float, str, bytes, bool, type(None))


class _Sqlite(Sink):
    """One worker writes: a database has one writer at a time, and the order of times is kept."""

    def __init__(self, path: str, table: str, shape: TableShape, patience: float) -> None:
        self.path = path
        self.table = table
        self.shape = shape
        self.patience = patience

    def __repr__(self) -> str:
        return f"<{self.shape.title}>"

    def route(self) -> Pact:
        """Everything goes to worker 0."""
        return ToWorker(0)

    def open(self, place: Place) -> Writer:
        """A writer; the database is opened when there is something to do."""
        return _SqliteWriter(self, place)


class _SqliteWriter(TableWriter):
    def __init__(self, sink: _Sqlite, place: Place) -> None:
        super().__init__(sink.shape, sink.table, place)
        self._sink = sink
        self._connection: sqlite3.Connection | None = None
        self._target, self._stage_table = _quoted(sink.table), _quoted(STAGED + sink.table)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def convert(self, rows: list[Row]) -> list[Row]:
        if {type(value) for row in rows for value in row}.issubset(_KNOWN):
            return rows
        return [
            tuple(self._value(name, value) for name, value in zip(self.shape.columns, row, strict=True)) for row in rows
        ]

    def _value(self, name: str, value: object) -> object:
        value = as_text(plain(value))
        if not isinstance(value, _KNOWN):
            raise SinkError(
                f"{self.shape.title}: column {name!r} cannot hold a {type(value).__name__}: SQLite has integers, "
                "floats, text and bytes"
            )
        return value

    # Transactions

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction, whole or not at all. Waits for others' locks, within bounds."""
        try:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            raise self._explained(error) from None
        except (sqlite3.DatabaseError, OverflowError) as error:
            raise SinkError(f"{self.shape.title}: {error}") from None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            path = self._sink.path
            folder = os.path.dirname(path) or "."
            if not os.path.isdir(folder):
                raise SinkError(f"{self.shape.title}: there is no folder {folder!r}")
            connection = sqlite3.connect(
                path, timeout=self._sink.patience, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA synchronous = FULL")  # what is committed survives a loss of power
            self._connection = connection
        return self._connection

    def _explained(self, error: sqlite3.OperationalError) -> SinkError:
        text = str(error)
        if "locked" in text or "busy" in text:
            told = f"somebody else has locked the database for {self._sink.patience} s: end their transaction"
            return SinkUnavailable(f"{self.shape.title}: {told} ({text})")
        if "full" in text or "I/O" in text or "readonly" in text or "unable to open" in text:
            return SinkUnavailable(f"{self.shape.title} cannot be written: {text}")
        return SinkError(f"{self.shape.title}: {text}")

    # Tables

    def _columns_of(self, connection: sqlite3.Connection, table: str) -> list[str]:
        return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({_quoted(table)})")]

    def _require_tables(self, connection: sqlite3.Connection) -> None:
        """Makes the tables that are not there; refuses a target that does not fit."""
        columns = ", ".join(map(_quoted, self.shape.columns))
        key = f", PRIMARY KEY ({', '.join(map(_quoted, self.shape.key))})" if self.shape.key else ""
        connection.execute(f"CREATE TABLE IF NOT EXISTS {self._target} ({columns}{key})")
        there = self._columns_of(connection, self.table)
        if missing := [name for name in self.shape.columns if name not in there]:
            raise SinkError(f"{self.shape.title} has the columns {there}, and no {missing}")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {COMMITS} (target TEXT, token TEXT, time INTEGER)")
        staged = self._columns_of(connection, STAGED + self.table)
        if staged and staged[2:] != list(self.shape.columns):  # of a program before it was changed
            if connection.execute(f"SELECT 1 FROM {self._stage_table} LIMIT 1").fetchone():
                raise SinkError(f"{self.shape.title}: rows with the columns {staged[2:]} are staged and not committed")
            connection.execute(f"DROP TABLE {self._stage_table}")
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._stage_table} (_token TEXT, _number INTEGER, {columns}, "
            "PRIMARY KEY (_token, _number)) WITHOUT ROWID"
        )

    def stage(self, token: str, first: int, rows: list[Row]) -> None:
        marks = ", ".join("?" * (2 + len(self.shape.columns)))
        with self._transaction() as connection:
            self._require_tables(connection)
            connection.executemany(
                f"INSERT INTO {self._stage_table} VALUES ({marks})",
                ((token, number, *row) for number, row in enumerate(rows, first)),
            )

    def publish(self, stages: list[StagedRows]) -> None:
        if not stages:
            return
        with self._transaction() as connection:
            if not self._columns_of(connection, STAGED + self.table):
                self._require_tables(connection)
            noted = connection.execute(f"SELECT token FROM {COMMITS} WHERE target = ?", [self.table]).fetchall()
            for stage in self.uncommitted(stages, (token for (token,) in noted)):
                self._publish(connection, stage)

    def _publish(self, connection: sqlite3.Connection, stage: StagedRows) -> None:
        where = f"FROM {self._stage_table} WHERE _token = ?"
        (found,) = connection.execute(f"SELECT count(*) {where}", [stage.token]).fetchone()
        if found != stage.rows:
            raise self.lost(stage, found)
        names = ", ".join(map(_quoted, self._columns_of(connection, STAGED + self.table)[2:]))
        connection.execute(
            f"INSERT INTO {self._target} ({names}) SELECT {names} {where} ORDER BY _number{self._upsert()}",
            [stage.token],
        )
        connection.execute(f"DELETE {where}", [stage.token])
        before = f"{stage.place[0]}-*"
        connection.execute(f"DELETE FROM {COMMITS} WHERE target = ? AND token GLOB ?", [self.table, before])
        connection.execute(f"INSERT INTO {COMMITS} VALUES (?, ?, ?)", [self.table, stage.token, stage.time])

    def _upsert(self) -> str:
        if not self.shape.key:
            return ""
        others = [_quoted(name) for name in self.shape.columns if name not in self.shape.key]
        update = ", ".join(f"{name} = excluded.{name}" for name in others)
        return f" ON CONFLICT ({', '.join(map(_quoted, self.shape.key))}) DO " + (
            f"UPDATE SET {update}" if others else "NOTHING"
        )

    def sweep(self, before: int, committed: list[str]) -> None:
        staged, noted = (
            f"CAST(substr({token}, 1, instr({token}, '-') - 1) AS INTEGER) < ?" for token in ("_token", "token")
        )
        with self._transaction() as connection:
            if not self._columns_of(connection, STAGED + self.table):
                return
            connection.execute(f"DELETE FROM {self._stage_table} WHERE {staged}", [before])
            marks = ", ".join("?" * len(committed))
            connection.execute(
                f"DELETE FROM {COMMITS} WHERE target = ? AND {noted} AND token NOT IN ({marks})",
                [self.table, before, *committed],
            )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sqlite(
    path: str | os.PathLike[str],
    table: str,
    *,
    columns: Sequence[str],
    key: Sequence[str] = (),
    patience: float = 30.0,
) -> Sink:
    """Writes rows to a table of a SQLite database, each once. The table is made if it is not there.

    With a `key`, a row replaces the one that has the same values in these columns; without, rows are added. Rows are
    tuples in the order of `columns`, dictionaries, or columns of these names. `patience`: seconds to wait while
    somebody else has locked the database.

    Rows appear with each snapshot, and at the end. `_dataflow_commits` in the same database says up to which time a
    table is complete. One table belongs to one sink."""
    title = f"table {table!r} of {os.fspath(path)!r}"
    require_text(title, "a table's name", table)
    if not patience >= 0:
        raise ConstructionError(f"{title}: patience is a number of seconds, not {patience!r}")
    return _Sqlite(os.fspath(path), table, TableShape(title, columns, key), patience)
