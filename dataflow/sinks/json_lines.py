"""Files with one JSON value in each line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, cast

from dataflow.channels.pact import Batch
from dataflow.clients.payloads import as_json
from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import Sink, SinkError
from dataflow.sinks.folders import FolderSink
from dataflow.sinks.shape import TableShape
from dataflow.sinks.staged import StagedBytes, StagedFile
from dataflow.values import Value

_ENDINGS = {None: "", "gzip": ".gz", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "lz4": ".lz4"}
Compression = Literal["gzip", "bz2", "xz", "zstd", "lz4"]


class _JsonLines(FolderSink):
    ending = ".jsonl"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        columns: Sequence[str] | None,
        every: float,
        compression: Compression | None,
    ) -> None:
        super().__init__(folder, every)
        if compression not in _ENDINGS:
            raise ConstructionError(f"compression is one of {', '.join(map(repr, _ENDINGS))}, not {compression!r}")
        self._compression = compression
        self.ending += _ENDINGS[compression]
        self._shape = None if columns is None else TableShape(repr(self), columns)

    def start(self, path: Path) -> StagedFile:
        """A file of lines."""
        return _JsonFile(path, self._shape, repr(self), self._compression)


class _JsonFile(StagedFile):
    def __init__(self, path: Path, shape: TableShape | None, title: str, compression: Compression | None) -> None:
        super().__init__(path)
        self._file = _compressed(self.bytes, compression)
        self._shape = shape
        self._title = title

    def write(self, batch: Batch) -> None:
        try:
            lines = [as_json(value) for value in self._values(batch)]
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self._title}: a record cannot be written as JSON: {error}") from None
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def _values(self, batch: Batch) -> list[Value]:
        if self._shape is not None:
            return [dict(zip(self._shape.columns, row, strict=True)) for row in self._shape.rows(batch)]
        if isinstance(batch, Columns):
            return [dict(zip(batch.names, row, strict=True)) for row in batch.rows()]
        return list(batch)

    def end(self) -> None:
        """What the compression keeps back."""
        self._file.close()

    def abandon(self) -> None:
        self._file.close()
        super().abandon()


def _compressed(staged: StagedBytes, compression: Compression | None) -> BinaryIO:
    """Writes to a file, which whoever closes this must finish as well."""
    file = cast(BinaryIO, staged)
    if compression is None:
        return file
    writer: object
    if compression == "gzip":
        writer = gzip.GzipFile(fileobj=file, mode="wb")
    elif compression == "bz2":
        writer = bz2.BZ2File(file, "wb")
    elif compression == "xz":
        writer = lzma.LZMAFile(file, "wb")  # noqa: SIM115  # closed by finish or abandon
    else:
        import pyarrow as pa

        writer = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), compression)
    return cast(BinaryIO, writer)


def json_lines(
    folder: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    every: float = 10.0,
    compression: Compression | None = None,
) -> Sink:
    """Writes records to files of a folder, one JSON value in each line, each record once.

    Columns become objects, and so do rows if `columns` names their fields; other rows are written as they are. Files
    are written in `folder/_staged` and moved with each snapshot, and at the end; without recovery, each `every`
    seconds. A file's name has its first and last time, and the worker. The folder belongs to one sink, and may be in an
    object store (`s3://bucket/folder`)."""
    return _JsonLines(folder, columns, every, compression)
