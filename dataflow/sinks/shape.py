"""Batches of rows or columns as tuples of values in the order of a table's columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from operator import itemgetter

import numpy as np

from dataflow.channels.hashing import stable_hash
from dataflow.channels.pact import Batch, Pact
from dataflow.columns.batch import Columns
from dataflow.errors import ConstructionError
from dataflow.operators.sinks import SinkError
from dataflow.values import Record, Value

Row = tuple[Value, ...]


class TableShape:
    """The columns of a table, and which of them are its key."""

    def __init__(self, title: str, columns: Sequence[str], key: Sequence[str] = ()) -> None:
        given: list[tuple[str, Sequence[object]]] = [("columns", columns), ("key", key)]
        for what, names in given:
            if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
                raise ConstructionError(
                    f"{title}: {what} are a list of names, such as ('word', 'total'), not {names!r}"
                )
            if len(set(names)) != len(tuple(names)):
                raise ConstructionError(f"{title}: a name occurs twice in {what}={tuple(names)}")
        if not columns:
            raise ConstructionError(f"{title} needs the names of its columns")
        if missing := [name for name in key if name not in columns]:
            raise ConstructionError(
                f"{title}: {missing[0]!r} is in the key and not among the columns, {tuple(columns)}"
            )
        self.title = title
        self.columns = tuple(columns)
        self.key = tuple(key)
        self._places = [self.columns.index(name) for name in self.key]
        self.key_of = itemgetter(*self._places) if key else None  # of a row; the value itself if there is one column

    def checked_rows(self, batch: Batch) -> list[Row]:
        """The rows of a batch, none of which lacks a part of its key: databases do not take such rows for equal."""
        rows = self.rows(batch)
        for place in self._places:
            for row in rows:
                if row[place] is None:
                    raise SinkError(
                        f"{self.title}: a record has no {self.columns[place]!r}, which is in the key: {_short(row)}"
                    )
        return rows

    def rows(self, batch: Batch) -> list[Row]:
        """The rows of a batch. Rows may be tuples or lists, in the order of the columns, mappings by name, or plain
        values if there is one column."""
        if isinstance(batch, Columns):
            if set(batch.names) != set(self.columns):
                raise SinkError(
                    f"{self.title} has the columns {self.columns}, and a batch came with {batch.names}: "
                    "columns.select(...) or columns.rename(...) them before"
                )
            return batch.select(self.columns).rows()
        if set(map(type, batch)) <= {tuple} and set(map(len, batch)) <= {len(self.columns)}:
            return list(batch)  # nearly always
        return [self._row(record) for record in batch]

    def _row(self, record: Record) -> Row:
        if isinstance(record, Mapping):
            if len(record) != len(self.columns) or any(name not in record for name in self.columns):
                raise SinkError(f"{self.title} has the columns {self.columns}, and a record came with {tuple(record)}")
            return tuple(record[name] for name in self.columns)
        if not isinstance(record, tuple | list):
            if len(self.columns) == 1:
                return (record,)
            raise SinkError(
                f"{self.title} has {len(self.columns)} columns, and a record came that has none: {_short(record)}"
            )
        if len(record) != len(self.columns):
            raise SinkError(
                f"{self.title} has {len(self.columns)} columns, {self.columns}, and a record came with {len(record)}: "
                f"{_short(record)}"
            )
        return tuple(record)

    def keys(self, batch: Batch) -> list[Row]:
        """The keys of a batch, row by row."""
        if isinstance(batch, Columns):
            return batch.select([*self.key]).rows() if all(name in batch for name in self.key) else self.rows(batch)
        return [tuple(row[place] for place in self._places) for row in self.rows(batch)]


class ByKey(Pact):
    """Records with equal keys go to one worker, rows and columns alike."""

    def __init__(self, shape: TableShape) -> None:
        self._shape = shape
        self.name = f"exchange by {', '.join(shape.key)}"

    def split(self, batch: Batch, peers: int) -> Sequence[Batch]:
        numbers = [stable_hash(key) % peers for key in self._shape.keys(batch)]
        if isinstance(batch, Columns):
            return batch.divide(numbers, peers)
        parts: list[list[Record]] = [[] for _ in range(peers)]
        for record, number in zip(batch, numbers, strict=True):
            parts[number].append(record)
        return parts


def require_text(title: str, what: str, given: object) -> None:
    """ConstructionError unless it is text that can be a name or a path."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConstructionError(f"{title} needs {what}, not {given!r}")


def _short(record: object) -> str:
    text = repr(record)
    return text if len(text) <= 200 else f"{text[:200]}..."


def plain(value: Value) -> Value:
    """A value as databases and JSON know it, where there is one way to do that: scalars of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def as_text(value: Value) -> Value:
    """Moments and decimal numbers as text, as SQL and JSON write them; everything else as it is."""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
