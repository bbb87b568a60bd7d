"""PostgreSQL by psycopg: what sources and sinks share, and a connection for replication.

The library has no replication of its own; its door to libpq has what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

from dataflow.clients.pgoutput import Keepalive, parse_copy, show_position, status_update
from dataflow.values import Value

if TYPE_CHECKING:
    from psycopg import pq

_SAY = 10.0  # seconds: at least so often the server hears from us, or it would take us for dead


class ReplicationError(OSError):
    """A replication connection that cannot be made, or was lost."""


def without_secrets(text: object, dsn: str) -> str:
    """What the library says, without secrets: it may have quoted the address."""
    from psycopg.conninfo import conninfo_to_dict

    shown = " ".join(str(text).split()).replace(dsn, "...")
    secret = conninfo_to_dict(dsn).get("password")
    return shown.replace(str(secret), "...") if secret else shown


def place_of(dsn: str) -> str:
    """Where a database is, as it may be shown."""
    from psycopg.conninfo import conninfo_to_dict

    known: Mapping[str, object] = conninfo_to_dict(dsn)
    return " ".join(str(known[name]) for name in ("host", "port", "dbname") if known.get(name))


def loader() -> Callable[[int, bytes], Value]:
    """Makes Python's values of the text of PostgreSQL's, by the number of the type; text where there is none."""
    import psycopg
    from psycopg import pq

    loaders: dict[int, Callable[[bytes], Value]] = {}

    def load(kind: int, data: bytes) -> Value:
        if kind not in loaders:
            found = psycopg.adapters.get_loader(kind, pq.Format.TEXT)
            loaders[kind] = bytes.decode if found is None else found(kind, None).load
        value = loaders[kind](data)
        return bytes(value) if isinstance(value, memoryview) else value

    return load


class Replication:
    """A connection that hears what changes."""

    def __init__(self, dsn: str) -> None:
        """Connects. Blocks: not for trio's loop."""
        from psycopg import pq
        from psycopg.conninfo import make_conninfo

        self._dsn = dsn
        self._connection = pq.PGconn.connect(make_conninfo(dsn, replication="database").encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise self._lost()

    def _lost(self) -> ReplicationError:
        return ReplicationError(without_secrets(self._connection.get_error_message(), self._dsn))

    def ask(self, command: str) -> list[str]:
        """The first row of what a command answers."""
        from psycopg import pq

        result = self._ran(command, pq.ExecStatus.TUPLES_OK)
        return [(result.get_value(0, column) or b"").decode() for column in range(result.nfields)]

    def _ran(self, command: str, expected: int) -> pq.abc.PGresult:
        result = self._connection.exec_(command.encode())
        if result.status != expected:
            raise ReplicationError(without_secrets(result.get_error_message(), self._dsn))
        return result

    def start(self, slot: str, position: int, publication: str) -> None:
        """Begins to hear changes behind a position."""
        from psycopg import pq

        options = f"(proto_version '1', publication_names '{publication}')"
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {show_position(position)} {options}'
        self._ran(command, pq.ExecStatus.COPY_BOTH)
        self._connection.nonblocking = 1

    async def hear(self, durable: Callable[[], int]) -> Keepalive | bytes:
        """The next message. The server is told now and then how far we are durable."""
        while True:
            count, data = self._connection.get_copy_data(1)
            if count > 0:
                await trio.lowlevel.checkpoint()
                heard = parse_copy(bytes(data))
                if isinstance(heard, Keepalive) and heard.reply:
                    self.say(durable())
                return heard
            if count < 0:
                raise self._lost()
            with trio.move_on_after(_SAY) as waiting:
                await trio.lowlevel.wait_readable(self._connection.socket)
            if waiting.cancelled_caught:
                self.say(durable())
                continue
            try:
                self._connection.consume_input()
            except Exception as error:
                raise ReplicationError(without_secrets(error, self._dsn)) from None

    def say(self, position: int) -> None:
        """Tells the server that everything before a position is durable here, so that it can forget it."""
        try:
            self._connection.put_copy_data(status_update(position))
            self._connection.flush()
        except Exception as error:
            raise ReplicationError(without_secrets(error, self._dsn)) from None

    def close(self) -> None:
        """Ends the connection."""
        self._connection.finish()
