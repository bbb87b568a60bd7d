"""Files with one JSON value in each line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.operators.sinks import Sink, SinkError
from dataflow.sinks.folders import FolderSink, StagedFile
from dataflow.sinks.shape import TableShape, as_text, plain
from dataflow.values import Value


class _JsonLines(FolderSink):
    ending = ".jsonl"

    def __init__(self, folder: str | os.PathLike[str], columns: Sequence[str] | None, every: float) -> None:
        super().__init__(folder, every)
        self._shape = None if columns is None else TableShape(repr(self), columns)

    def start(self, path: Path) -> StagedFile:
        """A file of lines."""
        return _JsonFile(path, self._shape, repr(self))


class _JsonFile(StagedFile):
    def __init__(self, path: Path, shape: TableShape | None, title: str) -> None:
        super().__init__(path)
        self._shape = shape
        self._title = title

    def write(self, batch: Batch) -> None:
        try:
            lines = [_ENCODE(value) for value in self._values(batch)]
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self._title}: a record cannot be written as JSON: {error}") from None
        self.bytes.write("".join(f"{line}\n" for line in lines).encode())

    def _values(self, batch: Batch) -> list[Value]:
        if self._shape is not None:
            return [dict(zip(self._shape.columns, row, strict=True)) for row in self._shape.rows(batch)]
        if isinstance(batch, Columns):
            return [dict(zip(batch.names, row, strict=True)) for row in batch.rows()]
        return list(batch)

    def end(self) -> None:
        """Nothing is left."""


def _known(value: Value) -> Value:
    known = as_text(plain(value))
    if known is value:
        raise TypeError(f"a {type(value).__name__} has no form in JSON")
    return known


_ENCODE = json.JSONEncoder(default=_known, allow_nan=False).encode


def json_lines(folder: str | os.PathLike[str], *, columns: Sequence[str] | None = None, every: float = 10.0) -> Sink:
    """Writes records to files of a folder, one JSON value in each line, each record once.

    Columns become objects, and so do rows if `columns` names their fields; other rows are written as they are. Files
    are written in `folder/_staged` and moved with each snapshot, and at the end; without recovery, each `every`
    seconds. A file's name has its first and last time, and the worker. The folder belongs to one sink."""
    return _JsonLines(folder, columns, every)
