"""Tables of PostgreSQL databases. Needs psycopg (`pip install megaphone-dataflow[postgres]`)."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from dataflow.channels.pact import Pact, ToWorker
from dataflow.clients.postgres import place_of, without_secrets
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.databases import COMMITS, STAGED, StagedRows, TableWriter
from dataflow.sinks.shape import ByKey, Row, TableShape, plain, require_text

if TYPE_CHECKING:
    import psycopg

_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    str: "text",
    bytes: "bytea",
    datetime: "timestamptz",
    date: "date",
    time: "time",
    timedelta: "interval",
    decimal.Decimal: "numeric",
    uuid.UUID: "uuid",
}


class _Postgres(Sink):
    """Keyed tables are written by all workers, each its keys; others by one, so that rows are in the order of times."""

    def __init__(self, dsn: str, table: str, shape: TableShape, types: Mapping[str, str], patience: float) -> None:
        self.dsn = dsn
        self.table = table
        self.shape = shape
        self.types = dict(types)
        self.patience = patience

    def __repr__(self) -> str:
        return f"<{self.shape.title}>"

    def route(self) -> Pact:
        """By key, or to one worker."""
        return ByKey(self.shape) if self.shape.key else ToWorker(0)

    def open(self, place: Place) -> Writer:
        """A writer; it connects when there is something to do."""
        return _PostgresWriter(self, place)


class _PostgresWriter(TableWriter):
    def __init__(self, sink: _Postgres, place: Place) -> None:
        super().__init__(sink.shape, sink.table, place)
        self._sink = sink
        self._connection: psycopg.Connection | None = None
        self._target, self._stage_table = _quoted(sink.table), _quoted(STAGED + sink.table)
        self._columns = ", ".join(map(_quoted, sink.shape.columns))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def convert(self, rows: list[Row]) -> list[Row]:
        return [tuple(map(plain, row)) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """One transaction, whole or not at all. A connection that was lost is made anew."""
        import psycopg

        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    self._sink.dsn, connect_timeout=max(2, round(self._sink.patience)), autocommit=True
                )
            with self._connection.transaction():
                self._connection.execute(f"SET LOCAL lock_timeout = {max(1, round(self._sink.patience * 1000))}")
                yield self._connection
        except psycopg.OperationalError as error:
            why = without_secrets(error, self._sink.dsn)
            raise SinkUnavailable(f"{self.shape.title} cannot be written: {why}") from None
        except psycopg.Error as error:
            raise SinkError(f"{self.shape.title}: {without_secrets(error, self._sink.dsn)}") from None

    # Tables

    def _exists(self, connection: psycopg.Connection, table: str) -> bool:
        found = connection.execute("SELECT to_regclass(%s)", [_quoted(table)]).fetchone()
        return found is not None and found[0] is not None

    def _require_tables(self, connection: psycopg.Connection, rows: list[Row]) -> None:
        """Makes the tables that are not there. Workers do so at the same time: one of them at a time."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"{COMMITS} {self.table}"])
        if not self._exists(connection, self.table):
            columns = [f"{_quoted(name)} {self._type(place, rows)}" for place, name in enumerate(self.shape.columns)]
            key = [f"PRIMARY KEY ({', '.join(map(_quoted, self.shape.key))})"] if self.shape.key else []
            connection.execute(f"CREATE TABLE {self._target} ({', '.join(columns + key)})")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {COMMITS} (target text, token text, time bigint)")
        if not self._exists(connection, STAGED + self.table):
            connection.execute(
                f"CREATE TABLE {self._stage_table} AS SELECT ''::text AS _token, 0::bigint AS _number, {self._columns} "
                f"FROM {self._target} WITH NO DATA"
            )
            connection.execute(f"CREATE INDEX ON {self._stage_table} (_token)")

    def _type(self, place: int, rows: list[Row]) -> str:
        """What a column is made as: as told, or as its first value has it."""
        name = self.shape.columns[place]
        if name in self._sink.types:
            return self._sink.types[name]
        value = next((row[place] for row in rows if row[place] is not None), None)
        if type(value) not in _TYPES:
            raise SinkError(
                f"{self.shape.title} is not there, and what column {name!r} holds is not clear from {value!r}: make "
                f"the table, or say types={{{name!r}: ...}}"
            )
        return _TYPES[type(value)]

    def stage(self, token: str, first: int, rows: list[Row]) -> None:
        with self._transaction() as connection:
            self._require_tables(connection, rows)
            copy = f"COPY {self._stage_table} (_token, _number, {self._columns}) FROM STDIN"
            with connection.cursor() as cursor, cursor.copy(copy) as copying:
                for number, row in enumerate(rows, first):
                    copying.write_row((token, number, *row))

    def publish(self, stages: list[StagedRows]) -> None:
        if not stages:
            return
        with self._transaction() as connection:
            noted: list[tuple[str]] = []
            if self._exists(connection, COMMITS):
                # Whoever commits the same token at the same time waits here, and then finds it noted.
                connection.execute(f"LOCK TABLE {COMMITS} IN EXCLUSIVE MODE")
                noted = connection.execute(f"SELECT token FROM {COMMITS} WHERE target = %s", [self.table]).fetchall()
            for stage in self.uncommitted(stages, (token for (token,) in noted)):
                self._publish(connection, stage)

    def _publish(self, connection: psycopg.Connection, stage: StagedRows) -> None:
        where = f"FROM {self._stage_table} WHERE _token = %s"
        found = 0
        if self._exists(connection, STAGED + self.table):
            row = connection.execute(f"SELECT count(*) {where}", [stage.token]).fetchone()
            found = 0 if row is None else row[0]
        if found != stage.rows:
            raise self.lost(stage, found)
        connection.execute(f"INSERT INTO {self._target} ({self._columns}) {self._selected(where)}", [stage.token])
        connection.execute(f"DELETE {where}", [stage.token])
        before = f"{stage.place[0]}-%"
        connection.execute(f"DELETE FROM {COMMITS} WHERE target = %s AND token LIKE %s", [self.table, before])
        connection.execute(f"INSERT INTO {COMMITS} VALUES (%s, %s, %s)", [self.table, stage.token, stage.time])

    def _selected(self, where: str) -> str:
        """Staged rows in their order; of several for one key the last, since one statement changes a row once."""
        key = ", ".join(map(_quoted, self.shape.key))
        if not key:
            return f"SELECT {self._columns} {where} ORDER BY _number"
        others = [_quoted(name) for name in self.shape.columns if name not in self.shape.key]
        update = ", ".join(f"{name} = excluded.{name}" for name in others)
        return (
            f"SELECT DISTINCT ON ({key}) {self._columns} {where} ORDER BY {key}, _number DESC "
            f"ON CONFLICT ({key}) DO " + (f"UPDATE SET {update}" if others else "NOTHING")
        )

    def sweep(self, before: int, committed: list[str]) -> None:
        with self._transaction() as connection:
            if self._exists(connection, STAGED + self.table):
                connection.execute(
                    f"DELETE FROM {self._stage_table} WHERE split_part(_token, '-', 1)::bigint < %s", [before]
                )
                connection.execute(
                    f"DELETE FROM {COMMITS} WHERE target = %s AND NOT token = ANY(%s) AND "
                    "split_part(token, '-', 1)::bigint < %s",
                    [self.table, committed, before],
                )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def postgres(
    dsn: str,
    table: str,
    *,
    columns: Sequence[str],
    key: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    patience: float = 30.0,
) -> Sink:
    """Writes rows to a table of a PostgreSQL database, each once. See `sqlite`; keyed tables are written by all
    workers.

    `dsn`: how to connect, as libpq has it ("host=... dbname=..."); a password is better kept in ~/.pgpass or
    PGPASSWORD, and is in no message. If the table is not there it is made: `types` has the SQL types of columns whose
    first value does not show it."""
    try:
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError:
        raise ConstructionError("sinks.postgres needs psycopg: pip install 'megaphone-dataflow[postgres]'") from None
    import psycopg

    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ConstructionError("postgres needs an address such as 'host=db dbname=shop', which this is not") from None
    where = place_of(dsn)
    title = f"table {table!r} of PostgreSQL{f' ({where})' if where else ''}"
    require_text(title, "a table's name", table)
    if not patience >= 0:
        raise ConstructionError(f"{title}: patience is a number of seconds, not {patience!r}")
    shape = TableShape(title, columns, key)
    if unknown := [name for name in types or () if name not in columns]:
        raise ConstructionError(f"{title}: types= names {unknown}, which are not among the columns {tuple(columns)}")
    return _Postgres(dsn, table, shape, types or {}, patience)
