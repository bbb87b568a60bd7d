"""Sinks that write each record once: `stream.sink(sinks.sqlite("out.db", "totals", columns=..., key=...))`.

docs/connectors.md explains them.

- `sqlite`, `postgres`: tables. `databases`: what these share. `shape`: rows and columns as tuples.
- `parquet`, `json_lines`: files. `folders`: what these share.
- `callbacks`: functions, after the snapshot or at least once.

The interface is `Sink` and `Writer`, in `dataflow.operators.sinks`.
"""

from dataflow.operators.sinks import Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.callbacks import AtLeastOnce, at_least_once, callback
from dataflow.sinks.json_lines import json_lines
from dataflow.sinks.parquet import parquet
from dataflow.sinks.postgres import postgres
from dataflow.sinks.sqlite import sqlite

__all__ = [
    "AtLeastOnce",
    "Place",
    "Sink",
    "SinkError",
    "SinkUnavailable",
    "Writer",
    "at_least_once",
    "callback",
    "json_lines",
    "parquet",
    "postgres",
    "sqlite",
]
