"""Sinks that write each record once: `stream.sink(sinks.sqlite("out.db", "totals", columns=..., key=...))`.

docs/connectors.md explains them.

- `sqlite`, `postgres`: tables. `databases`: what these share. `shape`: rows and columns as tuples.
- `delta`: tables of Delta Lake. `tables`, `json_lines`: files. `folders`: what these share. `shelves`: where they are.
  `staged`: a file that is being written.
- `nats`, `redis`: messages at servers; `queues`: what these share. `kafka`, `webhooks`, `websockets`, `standard`: at
  least once.
- `callbacks`: functions, after the snapshot or at least once.

The interface is `Sink` and `Writer`, in `dataflow.operators.sinks`.
"""

from dataflow.operators.sinks import AtLeastOnce, Place, Sink, SinkError, SinkUnavailable, Writer
from dataflow.sinks.callbacks import at_least_once, callback
from dataflow.sinks.delta import delta
from dataflow.sinks.json_lines import json_lines
from dataflow.sinks.kafka import kafka
from dataflow.sinks.nats import nats
from dataflow.sinks.postgres import postgres
from dataflow.sinks.redis import redis
from dataflow.sinks.sqlite import sqlite
from dataflow.sinks.standard import stdout
from dataflow.sinks.tables import arrow, parquet
from dataflow.sinks.webhooks import webhook
from dataflow.sinks.websockets import websocket

__all__ = [
    "AtLeastOnce",
    "Place",
    "Sink",
    "SinkError",
    "SinkUnavailable",
    "Writer",
    "arrow",
    "at_least_once",
    "callback",
    "delta",
    "json_lines",
    "kafka",
    "nats",
    "parquet",
    "postgres",
    "redis",
    "sqlite",
    "stdout",
    "webhook",
    "websocket",
]
