"""Files of columns: Parquet, and Arrow's own format."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.operators.sinks import Sink, SinkError
from dataflow.sinks.folders import FolderSink
from dataflow.sinks.shape import TableShape
from dataflow.sinks.staged import StagedFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_GROUP = 1 << 17  # rows that are gathered before a row group is written


class _Tables(FolderSink):
    """What both share."""

    def __init__(self, folder: str | os.PathLike[str], columns: Sequence[str] | None, every: float) -> None:
        super().__init__(folder, every)
        self._shape = None if columns is None else TableShape(repr(self), columns)


class _Parquet(_Tables):
    ending = ".parquet"

    def start(self, path: Path) -> StagedFile:
        """A file of row groups."""
        return ParquetFile(path, self._shape, repr(self))


class _Arrow(_Tables):
    ending = ".arrow"

    def start(self, path: Path) -> StagedFile:
        """A file of record batches."""
        return _ArrowFile(path, self._shape, repr(self))


class _TableFile(StagedFile):
    """The first group of rows says what the columns are; later ones are converted to that, or refused."""

    def __init__(self, path: Path, shape: TableShape | None, title: str, schema: pa.Schema | None = None) -> None:
        super().__init__(path)
        self._shape = shape
        self._title = title
        self._writer: pq.ParquetWriter | pa.RecordBatchFileWriter | None = None
        self.schema = schema  # of all rows; if nobody has said, of the first
        self.total = 0  # rows
        self._tables: list[pa.Table] = []
        self._rows = 0

    def write(self, batch: Batch) -> None:
        self._tables.append(self._table(batch))
        self._rows += len(batch)
        self.total += len(batch)
        if self._rows >= _GROUP:
            self._write_group()

    def _table(self, batch: Batch) -> pa.Table:
        import pyarrow as pa

        if isinstance(batch, Columns):
            if self._shape is not None and set(batch.names) != set(self._shape.columns):
                self._shape.rows(batch)  # says what is wrong
            return (batch if self._shape is None else batch.select(self._shape.columns)).to_arrow()
        if self._shape is None:
            raise SinkError(
                f"{self._title}: rows came, and nobody has named their columns: parquet(folder, columns=[...])"
            )
        rows = self._shape.rows(batch)
        try:
            arrays = [pa.array(values) for values in zip(*rows, strict=True)]
            return pa.Table.from_arrays(arrays, names=list(self._shape.columns))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise SinkError(f"{self._title}: rows cannot be written as columns: {error}") from None

    def _write_group(self) -> None:
        import pyarrow as pa

        if not self._tables:
            return
        tables, self._tables, self._rows = self._tables, [], 0
        try:
            table = pa.concat_tables(tables, promote_options="permissive")
            schema = self.schema = table.schema if self.schema is None else self.schema
            if self._writer is None:
                self._writer = self.start(schema)
            self._writer.write_table(table.select(schema.names).cast(schema))
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as error:
            raise SinkError(f"{self._title}: batches have columns that do not fit together: {error}") from None

    def end(self) -> None:
        """The last group of rows, and the footer."""
        self._write_group()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # else the library would do it when it is garbage, and complain
                self._writer.close()
        super().abandon()

    @abstractmethod
    def start(self, schema: pa.Schema) -> pq.ParquetWriter | pa.RecordBatchFileWriter:
        """Begins to write."""


class ParquetFile(_TableFile):
    """A file of row groups."""

    def start(self, schema: pa.Schema) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(self.bytes, schema)


class _ArrowFile(_TableFile):
    def start(self, schema: pa.Schema) -> pa.RecordBatchFileWriter:
        import pyarrow as pa

        return pa.ipc.new_file(self.bytes, schema)


def parquet(folder: str | os.PathLike[str], *, columns: Sequence[str] | None = None, every: float = 10.0) -> Sink:
    """Writes records to Parquet files of a folder, each record once.

    Columns are written as they are; rows need the names of their fields, `columns`. Files are written in
    `folder/_staged` and moved with each snapshot, and at the end; without recovery, each `every` seconds. A file's name
    has its first and last time, and the worker. The folder belongs to one sink, and may be in an object store
    (`s3://bucket/folder`)."""
    return _Parquet(folder, columns, every)


def arrow(folder: str | os.PathLike[str], *, columns: Sequence[str] | None = None, every: float = 10.0) -> Sink:
    """Writes records to files in Arrow's own format (IPC files, also called Feather), each record once. See
    `parquet`."""
    return _Arrow(folder, columns, every)
