"""Tables of Delta Lake, each record once.

Data files are Parquet, in a folder of the table; a file is part of the table when the table's log says so. To commit is
to add an entry to the log, with a note (an application's transaction) that the log keeps: so a commit can be
repeated."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from dataflow.channels.pact import Batch
from dataflow.clients.buckets import BucketError, endpoint, is_address, open_store
from dataflow.clients.extras import require_extra, require_number
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.shape import TableShape, require_text
from dataflow.sinks.shelves import BucketShelf, FolderShelf
from dataflow.sinks.tables import ParquetFile
from dataflow.time.order import Time

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

R = TypeVar("R")
_DATA = "data"  # the folder of data files


@dataclass(frozen=True)
class _DataFile:
    """A file that was written and is perhaps not in the log yet."""

    writer: str
    number: int
    size: int
    rows: int
    schema: bytes  # Arrow's

    @property
    def name(self) -> str:
        return f"{self.writer}-{self.number}.parquet"

    @staticmethod
    def several(token: object) -> list[_DataFile]:
        """What a token stands for."""
        if not isinstance(token, list):
            raise SinkError(f"{token!r} is no token of a Delta table")
        return [
            _DataFile(str(writer), int(number), int(size), int(rows), bytes(schema))
            for writer, number, size, rows, schema in token
        ]


class _Delta(Sink):
    """Each worker writes files of its own."""

    def __init__(self, table: str, columns: Sequence[str] | None, schema: pa.Schema | None, every: float) -> None:
        self.table = table
        self.every = every
        self.schema = schema
        self.shape = None if columns is None else TableShape(repr(self), columns)

    def __repr__(self) -> str:
        return f"<Delta table {self.shelf().title}>"

    def shelf(self) -> FolderShelf | BucketShelf:
        """Where its data files are."""
        return BucketShelf(self.table, _DATA) if is_address(self.table) else FolderShelf(Path(self.table), _DATA)

    def open(self, place: Place) -> Writer:
        """A writer; the table is made with the first commit."""
        return _DeltaWriter(self, place)


class _DeltaWriter(Writer):
    """Writes one file between two commits."""

    def __init__(self, sink: _Delta, place: Place) -> None:
        self._sink = sink
        self._place = place
        self._shelf = sink.shelf()
        self._writer = f"{place.incarnation}-{uuid4().hex[:12]}-{place.worker}"
        self._number = 0
        self._file: ParquetFile | None = None
        self._whole: list[tuple[ParquetFile, int]] = []  # with their numbers: not durable, or not staged yet
        self._prepared: list[_DataFile] = []  # and not committed

    def close(self) -> None:
        for file in (self._file, *(file for file, _ in self._whole)):
            if file is not None:
                file.abandon()
        self._shelf.close()

    async def write(self, time: Time, batch: Batch) -> None:
        await self._away(lambda: self._write(batch))

    def _write(self, batch: Batch) -> None:
        if self._file is None:
            schema = self._sink.schema
            table = self._opened() if schema is None else None
            if table is not None:
                schema = _arrow_schema(table)
            path = self._shelf.begin(f"{self._writer}-{self._number}.parquet")
            self._file = ParquetFile(path, self._sink.shape, repr(self._sink), schema)
        self._file.take(batch)

    async def prepare(self, time: Time) -> object:
        await self._away(self._stage)
        return [[each.writer, each.number, each.size, each.rows, each.schema] for each in self._prepared] or None

    def _stage(self) -> None:
        """If the disk does not take all of it, the rest is tried again; what is written meanwhile goes to another
        file."""
        if self._file is not None:
            self._whole.append((self._file, self._number))
            self._number += 1
            self._file = None
        while self._whole:
            file, number = self._whole[0]
            file.finish()
            assert file.schema is not None
            schema = file.schema.serialize().to_pybytes()
            staged = _DataFile(self._writer, number, file.bytes.tell(), file.total, schema)
            self._shelf.stage(staged.name)
            self._prepared.append(staged)
            del self._whole[0]

    async def commit(self, token: object) -> None:
        files = _DataFile.several(token)
        await self._away(lambda: self._publish(files))
        self._prepared = [each for each in self._prepared if each not in files]

    async def recover(self, tokens: Sequence[object]) -> None:
        files = [file for token in tokens for file in _DataFile.several(token)]
        await self._away(lambda: self._recover(files))

    def _recover(self, files: list[_DataFile]) -> None:
        """Commits, and removes what earlier incarnations left behind."""
        if files:
            self._publish(files)
        table = self._opened()
        known = set() if table is None else {uri.rpartition("/")[2] for uri in table.file_uris()}
        for name in self._shelf.waiting():
            incarnation = name.partition("-")[0]
            ours = incarnation.isdecimal() and name.endswith(".parquet") and name.count("-") == 3
            if ours and int(incarnation) < self._place.incarnation and name not in known:
                self._shelf.remove(name)

    # The log

    def _opened(self) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self._sink.table, storage_options=_options(self._sink.table))
        except TableNotFoundError:
            return None

    def _publish(self, files: list[_DataFile]) -> None:
        import pyarrow as pa
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        schema = pa.ipc.read_schema(pa.BufferReader(files[0].schema))
        table = self._opened()
        if table is None:
            made = DeltaTable.create(
                self._sink.table, schema, mode="ignore", storage_options=_options(self._sink.table)
            )
            table = made
        last = {writer: table.transaction_version(writer) for writer in {file.writer for file in files}}
        new = [file for file in files if (noted := last[file.writer]) is None or file.number > noted]
        self._require_schema(table, new)
        for file in new:
            if not self._shelf.is_staged(file.name):
                raise SinkError(
                    f"{self._sink!r}: {file.name}, which was written there, is gone and was not committed: the table "
                    "was replaced since the last snapshot. Bring it back, or start afresh with both"
                )
        if not new:
            return
        now = round(clock.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(f"{_DATA}/{file.name}", file.size, {}, now, True, f'{{"numRecords": {file.rows}}}')
            for file in new
        ]
        latest = {file.writer: max(each.number for each in new if each.writer == file.writer) for file in new}
        notes = [Transaction(writer, number) for writer, number in latest.items()]
        properties = CommitProperties(app_transactions=notes, max_commit_retries=50)
        table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)

    def _require_schema(self, table: DeltaTable, files: list[_DataFile]) -> None:
        import pyarrow as pa

        wanted = _arrow_schema(table)
        for file in files:
            found = pa.ipc.read_schema(pa.BufferReader(file.schema))
            if [(each.name, each.type) for each in found] != [(each.name, each.type) for each in wanted]:
                raise SinkError(
                    f"{self._sink!r} has the columns {_shown(wanted)}, and rows came with {_shown(found)}: say schema="
                )

    async def _away(self, function: Callable[[], R]) -> R:
        from deltalake.exceptions import DeltaError

        def guarded() -> R:
            try:
                return function()
            except SinkError:
                raise
            except DeltaError as error:
                raise SinkUnavailable(f"{self._sink!r} cannot be written: {error}") from error
            except OSError as error:
                raise SinkUnavailable(f"{self._sink!r} cannot be written: {error.strerror or error}") from error

        return await self._place.away(guarded)


def _arrow_schema(table: DeltaTable) -> pa.Schema:
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _options(table: str) -> dict[str, str]:
    insecure = is_address(table) and endpoint().startswith("http://")
    return {"allow_http": "true"} if insecure else {}


def delta(
    table: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    every: float = 10.0,
) -> Sink:
    """Appends records to a Delta Lake table, in a folder or an object store (`s3://bucket/table`), each record once.

    Columns are written as they are; rows need the names of their fields, `columns`. With each snapshot, and at the
    end, each worker adds a file to the table; without recovery, each `every` seconds. If the table is not there it is
    made, as `schema` (of pyarrow) or the first rows have it. Others may read, optimise and vacuum the table meanwhile.
    """
    require_extra("deltalake", "delta", "sinks.delta")
    require_text("a Delta table", "a folder", table)
    require_number("sinks.delta", "every", every)
    path = os.fspath(table)
    if is_address(path):
        try:
            open_store(path)  # says what is wrong with the address
        except (ValueError, BucketError) as error:
            raise ConstructionError(str(error)) from None
    if columns is None and schema is not None:
        columns = schema.names
    return _Delta(path, columns, schema, every)
