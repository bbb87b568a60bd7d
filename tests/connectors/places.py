"""Each kind of sink, with a way to see what it shows: the conformance tests run on all of them."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow import sinks
from dataflow.clients.buckets import Bucket

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
    fixed_columns = True  # and what does not fit them is refused

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


class Arrow(JsonLines):
    def sink(self) -> sinks.Sink:
        return sinks.arrow(self.folder / "out", columns=("word", "total"))

    def rows(self) -> list[Row]:
        tables = [pa.ipc.open_file(path).read_all() for path in (self.folder / "out").glob("*.arrow")]
        return sorted((row["word"], row["total"]) for table in tables for row in table.to_pylist())


class CompressedJsonLines(JsonLines):
    def sink(self) -> sinks.Sink:
        return sinks.json_lines(self.folder / "out", columns=("word", "total"), compression="gzip")

    def rows(self) -> list[Row]:
        texts = [gzip.decompress(path.read_bytes()) for path in (self.folder / "out").glob("*.jsonl.gz")]
        read = [json.loads(line) for text in texts for line in text.splitlines()]
        return sorted((row["word"], row["total"]) for row in read)


class Delta(Shown):
    def sink(self) -> sinks.Sink:
        return sinks.delta(self.folder / "out", columns=("word", "total"))

    def rows(self) -> list[Row]:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            table = pa.table(DeltaTable(self.folder / "out").to_pyarrow_table())
        except TableNotFoundError:
            return []
        return sorted((row["word"], row["total"]) for row in table.to_pylist())

    def staged(self) -> int:
        from deltalake import DeltaTable

        known = {uri.rpartition("/")[2] for uri in DeltaTable(self.folder / "out").file_uris()}
        return sum(path.name not in known for path in (self.folder / "out" / "data").glob("*"))


class BucketJsonLines(Shown):
    """In an object store."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bucket = Bucket(f"s3://snapshots/{uuid.uuid4().hex}")
        self.address = f"{self.bucket.title}"

    def sink(self) -> sinks.Sink:
        return sinks.json_lines(self.address, columns=("word", "total"))

    def rows(self) -> list[Row]:
        names = [name for name in self.bucket.names() if not name.startswith("_staged/")]
        read = [json.loads(line) for name in names for line in self.bucket.get(name).splitlines()]
        return sorted((row["word"], row["total"]) for row in read)

    def staged(self) -> int:
        return sum(not name.startswith("_staged/committed-") for name in self.bucket.names("_staged"))


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


class Queue(Shown):
    """Messages at a server that knows nothing of columns."""

    fixture = ""
    address = ""
    fixed_columns = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.name = f"q{uuid.uuid4().hex[:12]}"

    def staged(self) -> int:
        return 0  # what waits is in the token


class ValkeyStream(Queue):
    fixture = "valkey_server"

    def sink(self) -> sinks.Sink:
        return sinks.redis(self.address, self.name)

    def rows(self) -> list[Row]:
        import redis

        with redis.Redis.from_url(self.address) as client:
            return sorted(tuple(json.loads(fields[b"data"])) for _, fields in client.xrange(self.name))


class NatsStream(Queue):
    """The server forgets at once which messages it has had: what they are called must not matter."""

    fixture = "nats_server"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ask(lambda jetstream: jetstream.add_stream(name=self.name, subjects=[self.name], duplicate_window=0.1))

    def _ask(self, ask: Callable[[Any], Coroutine[Any, Any, R]]) -> R:
        import nats

        async def main() -> R:
            client = await nats.connect(self.address)
            try:
                return await ask(client.jetstream())
            finally:
                await client.close()

        with ThreadPoolExecutor(1) as pool:  # we may be inside trio
            return pool.submit(asyncio.run, main()).result()

    def sink(self) -> sinks.Sink:
        return sinks.nats(self.address, self.name, self.name)

    def rows(self) -> list[Row]:
        async def read(jetstream: Any) -> list[Row]:
            last = (await jetstream.stream_info(self.name)).state.last_seq
            messages = [await jetstream.get_msg(self.name, number) for number in range(1, last + 1)]
            return sorted(tuple(json.loads(message.data)) for message in messages)

        return self._ask(read)


LOCAL: list[type[Shown]] = [Sqlite, KeyedSqlite, JsonLines, Parquet, Arrow, CompressedJsonLines, Delta]
SERVED: list[type[Shown]] = [Postgres, KeyedPostgres, BucketJsonLines]
QUEUES: list[type[Queue]] = [ValkeyStream, NatsStream]
