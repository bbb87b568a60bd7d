"""Records as bytes, for servers that carry bytes: a user's own function, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from dataflow.channels.pact import Batch
from dataflow.columns.batch import Columns
from dataflow.operators.sinks import SinkError
from dataflow.values import Record, Value

Encode: TypeAlias = Callable[[Record], bytes | str]
"""A record as what is sent."""


def records_of(batch: Batch) -> Iterator[Record]:
    """The records of a batch: rows as they are, columns as dictionaries by name."""
    if not isinstance(batch, Columns):
        yield from batch
        return
    names = batch.names
    for row in batch.rows():
        yield dict(zip(names, row, strict=True))


class Payloads:
    """What a sink makes of its records."""

    def __init__(self, title: str, encode: Encode | None) -> None:
        self._title = title
        self._encode = as_json if encode is None else encode

    def of(self, batch: Batch) -> list[bytes]:
        """Each record of a batch as bytes."""
        return [self.one(record) for record in records_of(batch)]

    def one(self, record: Record) -> bytes:
        """A record as bytes. SinkError, which names it, if that cannot be done."""
        try:
            text: object = self._encode(record)
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self._title}: {_short(record)} cannot be encoded: {error}") from error
        if isinstance(text, str):
            return text.encode()
        if isinstance(text, bytes):
            return text
        raise SinkError(f"{self._title}: encode gave a {type(text).__name__} for {_short(record)}, not text or bytes")


def as_json(record: Record) -> str:
    """A record as JSON: moments and decimal numbers as text, numpy's numbers as Python's, dataclasses as objects."""
    if isinstance(record, tuple) and hasattr(record, "_asdict"):  # a named tuple, whose names would be lost
        return _ENCODE(record._asdict())
    return _ENCODE(record)


def _known(value: Value) -> Value:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


_ENCODE = json.JSONEncoder(default=_known, allow_nan=False).encode


def _short(record: object) -> str:
    text = repr(record)
    return text if len(text) <= 200 else f"{text[:200]}..."
