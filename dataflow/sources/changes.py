"""The changes of a PostgreSQL database, by logical replication. A slot is a partition, and a position is one of the
server's log."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Never, TypeVar

import trio

from dataflow.clients.extras import names_of, require_extra
from dataflow.clients.pgoutput import Changes, Keepalive, RowChange, parse_position
from dataflow.clients.postgres import Replication, ReplicationError, loader, place_of, without_secrets
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError

if TYPE_CHECKING:
    from psycopg import Connection

R = TypeVar("R")

_PATIENCE = 30.0  # seconds for a connection that was lost
_PAUSE = 0.5  # seconds between attempts


class _Changes(Partitions[RowChange]):
    """A transaction is a batch: its changes have one time."""

    moves = False  # a slot has one reader, and it takes the server a while to see that one has gone

    def __init__(
        self, dsn: str, tables: Sequence[str], slot: str, publication: str | None, existing: bool, follow: bool
    ) -> None:
        self.follow = follow
        self._dsn = dsn
        self._tables = list(tables)
        self._slot = slot
        self._publication = publication or slot
        self._makes_publication = publication is None
        self._existing = existing
        self._durable = 0  # everything before this is in a snapshot, or need not be

    def __repr__(self) -> str:
        return f"<changes of PostgreSQL ({place_of(self._dsn)}), slot {self._slot}>"

    async def partitions(self) -> list[str]:
        """One: a slot has one reader."""
        return [self._slot]

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[RowChange]]:
        """The transactions behind a position. From the beginning: what the tables have, and then what changes."""
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{self!r}: {position!r} is no position: a number of the server's log was expected")
        behind, rows = await _away(self._begin if position is None else self._go_on, position)
        if rows:
            yield behind, None, rows
        self._durable = behind if position is not None or not self.hears_back else 0
        target = None if self.follow else await _away(self._end)
        while target is None or behind < target:
            connection = await self._connected(behind)
            try:
                plugin = Changes(loader())
                while target is None or behind < target:
                    behind, changes = await self._next(connection, plugin, behind)
                    if changes:
                        yield behind, None, changes
                    if not self.hears_back:
                        self._durable = behind
            except ReplicationError:  # made again, behind what was given
                continue
            finally:
                connection.close()

    async def _next(self, connection: Replication, plugin: Changes, behind: int) -> tuple[int, list[RowChange]]:
        """(position, changes) of the next transaction; without changes, how far the server has come."""
        while True:
            heard = await connection.hear(lambda: self._durable)
            if isinstance(heard, Keepalive):
                if not plugin.inside and heard.end > behind:
                    return heard.end, []
            elif (transaction := plugin.feed(heard)) is not None and transaction.end > behind:
                return transaction.end, transaction.changes

    async def _connected(self, behind: int) -> Replication:
        """A connection that hears what is behind a position."""

        def connect() -> Replication:
            connection = Replication(self._dsn)
            try:
                connection.start(self._slot, behind, self._publication)
            except BaseException:
                connection.close()
                raise
            return connection

        deadline = trio.current_time() + _PATIENCE
        while True:
            try:
                return await _away(connect)
            except ReplicationError as error:
                if trio.current_time() + _PAUSE > deadline:
                    raise SourceError(f"{self!r} cannot be read: {error}") from None
            await trio.sleep(_PAUSE)

    # What blocks

    def _asked(self, ask: Callable[[Connection], R]) -> R:
        import psycopg

        try:
            with psycopg.connect(self._dsn, autocommit=True, connect_timeout=round(_PATIENCE)) as connection:
                return ask(connection)
        except psycopg.Error as error:
            self._refuse(without_secrets(error, self._dsn))

    def _refuse(self, why: str) -> Never:
        help = "; the server needs wal_level = logical" if "wal_level" in why else ""
        raise SourceError(f"{self!r}: {why}{help}")

    def _begin(self, _: object = None) -> tuple[int, list[RowChange]]:
        """Makes the slot anew; where it begins, and the rows that the tables had then."""
        self._asked(self._prepare)
        try:
            connection = Replication(self._dsn)
        except ReplicationError as error:
            self._refuse(str(error))
        try:
            options = "(SNAPSHOT 'export')"
            made = connection.ask(f'CREATE_REPLICATION_SLOT "{self._slot}" LOGICAL pgoutput {options}')
            rows = self._asked(lambda database: self._copy(database, made[2])) if self._existing else []
        except ReplicationError as error:
            self._refuse(str(error))
        finally:
            connection.close()
        return parse_position(made[1]), rows

    def _prepare(self, database: Connection) -> None:
        """No slot of that name, and a publication."""
        found = database.execute(
            "SELECT active, plugin FROM pg_replication_slots WHERE slot_name = %s", [self._slot]
        ).fetchone()
        if found is not None:
            if found[0] or found[1] != "pgoutput":
                raise SourceError(f"{self!r}: the slot is in use, or not ours: choose another name")
            database.execute("SELECT pg_drop_replication_slot(%s)", [self._slot])
        if self._makes_publication:
            database.execute(f'DROP PUBLICATION IF EXISTS "{self._publication}"')
            tables = ", ".join(map(_name, self._tables))
            database.execute(f'CREATE PUBLICATION "{self._publication}" FOR TABLE {tables}')

    def _copy(self, database: Connection, snapshot: str) -> list[RowChange]:
        """All rows of the tables, as of the moment at which the slot begins."""
        from psycopg.rows import dict_row

        database.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        database.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        changes = []
        for table in self._tables:
            with database.cursor(row_factory=dict_row) as cursor:
                rows = cursor.execute(f"SELECT * FROM {_name(table)}").fetchall()
            full = table if "." in table else f"public.{table}"
            changes += [RowChange("insert", full, row, None) for row in rows]
        database.execute("COMMIT")
        return changes

    def _go_on(self, position: int) -> tuple[int, list[RowChange]]:
        """The slot must be there, and must not have forgotten anything."""

        def find(database: Connection) -> tuple[str | None] | None:
            query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
            return database.execute(query, [self._slot]).fetchone()

        found = self._asked(find)
        if found is None or found[0] is None:
            raise SourceError(f"{self!r}: the slot is gone, and with it what changed since: start afresh")
        if parse_position(found[0]) > position:
            raise SourceError(f"{self!r}: somebody else has read from the slot: start afresh, with a slot of our own")
        return position, []

    def _end(self) -> int:
        found = self._asked(lambda database: database.execute("SELECT pg_current_wal_lsn()::text").fetchone())
        return parse_position(found[0] if found else "")

    async def acknowledge(self, partition: str, position: object) -> None:
        """The server may forget it; it is told so with the next word."""
        if isinstance(position, int):
            self._durable = max(self._durable, position)


async def _away(function: Callable[..., R], *arguments: object) -> R:
    return await trio.to_thread.run_sync(function, *arguments, limiter=trio.CapacityLimiter(1))


def _name(table: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))


def postgres_changes(
    dsn: str,
    tables: str | Sequence[str],
    *,
    slot: str = "megaphone",
    publication: str | None = None,
    existing: bool = True,
    follow: bool = True,
) -> Partitions[RowChange]:
    """What changes in tables of a PostgreSQL database, each transaction at one time; first, as one batch, the rows that
    they have (unless `existing` is False).

    The server must have `wal_level = logical`. It keeps what changes in a *slot*, from the first start on and while
    nobody reads, until a snapshot has it: drop a slot that is not needed any more (`SELECT
    pg_drop_replication_slot('megaphone')`), or its disk fills. A program has a slot of its own. A publication of that
    name is made, unless `publication` names one. Of deleted and updated rows the old key is known, and the whole old
    row after `ALTER TABLE t REPLICA IDENTITY FULL`. Without `follow`, up to what there is at the start.
    """
    require_extra("psycopg", "postgres", "sources.postgres_changes")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ConstructionError(
            "sources.postgres_changes needs an address such as 'host=db dbname=shop', which this is not"
        ) from None
    names = names_of("sources.postgres_changes", "tables", tables)
    if not re.fullmatch("[a-z0-9_]{1,63}", slot):
        raise ConstructionError(f"a slot's name has small letters, digits and underscores, and {slot!r} has others")
    if publication is not None and not re.fullmatch("[A-Za-z0-9_]{1,63}", publication):
        raise ConstructionError(f"sources.postgres_changes cannot use a publication of the name {publication!r}")
    return _Changes(dsn, names, slot, publication, existing, follow)
