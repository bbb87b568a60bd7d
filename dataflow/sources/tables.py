"""Files of columns: Parquet, and Arrow's own. A file is a partition, and a position is a number of rows."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import trio

from dataflow.columns.batch import Columns
from dataflow.columns.repairs import Missing, Repairs
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.sources.files import FileSet, files_at, names_of

if TYPE_CHECKING:
    import pyarrow as pa


class _Tables(Partitions[Columns]):
    """What files of columns share."""

    kind: str
    title: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch: int,
        follow: bool,
        columns: Sequence[str] | None,
        repairs: Repairs,
    ) -> None:
        if type(batch) is not int or batch < 1:
            raise ConstructionError(f"batch must be at least 1, not {batch!r}")
        if isinstance(columns, str):
            raise ConstructionError(f"columns are a list of names, not {columns!r}")
        self.follow = follow
        self._files = files_at(path, follow)
        self._batch = batch
        self._columns = None if columns is None else list(columns)
        self._repairs = repairs

    def __repr__(self) -> str:
        return f"<{self.kind} of {self._files.title}>"

    async def partitions(self) -> list[str]:
        """The files."""
        return await names_of(self._files)

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[Columns]]:
        """The rows of a file from a row on."""
        where = self._files.where(partition)
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{where}: {position!r} is no position in {self.title}: a number of rows was expected")
        pieces = self._checked(where, partition, position or 0)
        while True:
            if self._files.remote:
                piece = await trio.to_thread.run_sync(next, pieces, None)
            else:
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece[0], None, piece[1]

    def _checked(self, where: str, name: str, start: int) -> Iterator[tuple[int, Columns]]:
        import pyarrow as pa

        try:
            if isinstance(self._files, FileSet):
                yield from self._pieces(where, self._files.path(name), start)
            else:
                with self._files.open(name) as file:
                    yield from self._pieces(where, file, start)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{where} is not {self.title}, or not whole: {error}") from None
        except FileNotFoundError:
            raise SourceError(f"{where} is gone: leave files where they are while they are read") from None

    @abstractmethod
    def _pieces(self, where: str, file: Path | BinaryIO, start: int) -> Iterator[tuple[int, Columns]]:
        """The rows from a row on, each piece with the number of rows up to its end."""

    def _cut(self, batch: pa.RecordBatch, row: int, start: int) -> Iterator[tuple[int, Columns]]:
        """What is at or behind a row of a batch that begins at another."""
        first = max(0, start - row)
        for place in range(first, batch.num_rows, self._batch):
            piece = batch.slice(place, self._batch)
            yield row + place + piece.num_rows, self._repairs.columns(piece)

    def _require(self, where: str, names: list[str], rows: int, start: int) -> None:
        if start > rows:
            raise SourceError(f"{where} has {rows} rows, and {start} have been read: it was replaced")
        if missing := [name for name in self._columns or () if name not in names]:
            raise SourceError(f"{where} has no columns {missing}; it has {names}")


class _Parquet(_Tables):
    kind, title = "parquet", "a Parquet file"

    def _pieces(self, where: str, file: Path | BinaryIO, start: int) -> Iterator[tuple[int, Columns]]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(file) as parquet:
            self._require(where, parquet.schema_arrow.names, parquet.metadata.num_rows, start)
            first = 0  # row of the group
            for group in range(parquet.num_row_groups):
                rows = parquet.metadata.row_group(group).num_rows
                if start < first + rows:
                    row = first
                    for batch in parquet.iter_batches(self._batch, row_groups=[group], columns=self._columns):
                        yield from self._cut(batch, row, start)
                        row += batch.num_rows
                first += rows


class _Arrow(_Tables):
    kind, title = "arrow", "an Arrow file"

    def _pieces(self, where: str, file: Path | BinaryIO, start: int) -> Iterator[tuple[int, Columns]]:
        import pyarrow as pa

        with pa.OSFile(str(file)) if isinstance(file, Path) else pa.PythonFile(file, mode="r") as opened:
            row, checked = 0, False
            for batch in _batches(opened):
                if not checked:
                    self._require(where, batch.schema.names, start, start)
                    checked = True
                chosen = batch if self._columns is None else batch.select(self._columns)
                yield from self._cut(chosen, row, start)
                row += batch.num_rows
            if row < start:
                self._require(where, self._columns or [], row, start)


def _batches(file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """The batches of a file in the file format, which has an index at its end, or in the stream format."""
    import pyarrow as pa

    start = file.read(6)
    file.seek(0)
    if start == b"ARROW1":
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from pa.ipc.open_stream(file)


def parquet(
    path: str | os.PathLike[str],
    batch: int = 65_536,
    follow: bool = False,
    *,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    decimals: Mapping[str, int] | None = None,
) -> Partitions[Columns]:
    """The rows of a Parquet file, of all files of a folder, or of those that match a pattern, as columns: at most
    `batch` rows at each time. With `follow` the source goes on with new files; move them into the folder when they are
    whole. `columns`: only these. A path may be an address in an object store (`s3://bucket/tables/*.parquet`).

    `missing`: what becomes of missing numbers, which columns do not have: "error", "drop" (their rows are left out),
    "nan" (integers become floats, missing moments not-a-time), or values by column: `{"price": 0}`. `decimals`: by
    column of decimals how many digits are kept, as integers: with `{"price": 2}`, 3.14 is 314."""
    return _Parquet(path, batch, follow, columns, Repairs(missing, decimals or {}))


def arrow(
    path: str | os.PathLike[str],
    batch: int = 65_536,
    follow: bool = False,
    *,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    decimals: Mapping[str, int] | None = None,
) -> Partitions[Columns]:
    """The rows of files in Arrow's own format (IPC: files or streams, also called Feather), as columns. See
    `parquet`."""
    return _Arrow(path, batch, follow, columns, Repairs(missing, decimals or {}))
