"""Parquet files as columns. A file is a partition, and a position is a number of rows."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.operators.partitions import Item, Partitions, SourceError
from dataflow.sources.files import FileSet

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class _Parquet(Partitions[Columns]):
    def __init__(self, path: str | os.PathLike[str], batch: int, follow: bool, columns: Sequence[str] | None) -> None:
        if type(batch) is not int or batch < 1:
            raise ConstructionError(f"batch must be at least 1, not {batch!r}")
        if isinstance(columns, str):
            raise ConstructionError(f"columns are a list of names, not {columns!r}")
        self.follow = follow
        self._files = FileSet(path, follow)
        self._batch = batch
        self._columns = None if columns is None else list(columns)

    def __repr__(self) -> str:
        return f"<parquet of {self._files.title}>"

    async def partitions(self) -> list[str]:
        """The files."""
        return self._files.names()

    async def read(self, partition: str, position: object | None) -> AsyncIterator[Item[Columns]]:
        """The rows of a file from a row on."""
        path = self._files.path(partition)
        if position is not None and (type(position) is not int or position < 0):
            raise SourceError(f"{path}: {position!r} is no position in a Parquet file: a number of rows was expected")
        for behind, columns in self._pieces(path, position or 0):
            yield behind, None, columns

    def _pieces(self, path: Path, start: int) -> Iterator[tuple[int, Columns]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                self._require(path, file, start)
                first = 0  # row of the group
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    if start < first + rows:
                        row = first
                        for batch in file.iter_batches(self._batch, row_groups=[group], columns=self._columns):
                            if row + batch.num_rows > start:
                                piece = Columns(batch.slice(max(0, start - row)))
                                yield row + batch.num_rows, piece
                            row += batch.num_rows
                    first += rows
        except pa.ArrowInvalid as error:
            raise SourceError(f"{path} is not a Parquet file, or not whole: {error}") from None

    def _require(self, path: Path, file: pq.ParquetFile, start: int) -> None:
        if start > file.metadata.num_rows:
            raise SourceError(f"{path} has {file.metadata.num_rows} rows, and {start} have been read: it was replaced")
        names = file.schema_arrow.names
        if missing := [name for name in self._columns or () if name not in names]:
            raise SourceError(f"{path} has no columns {missing}; it has {names}")


def parquet(
    path: str | os.PathLike[str],
    batch: int = 65_536,
    follow: bool = False,
    *,
    columns: Sequence[str] | None = None,
) -> Partitions[Columns]:
    """The rows of a Parquet file, of all files of a folder, or of those that match a pattern, as columns: at most
    `batch` rows at each time. With `follow` the source goes on with new files; move them into the folder when they are
    whole. `columns`: only these."""
    return _Parquet(path, batch, follow, columns)
