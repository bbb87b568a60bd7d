"""Sources that go on where they were: `scope.source(sources.lines("logs/"))`. docs/connectors.md explains them.

- `texts`: files of lines, of JSON and of CSV. `tables`: Parquet and Arrow files. `files`: which files, and lines from a
  byte on. `blobs`: files in object stores. `compressed`: what is in compressed ones. `standard`: standard input.
- `iterators`: whatever can be started again in the middle. `captures`: captured streams.
- `kafka`, `nats`, `redis`: streams of servers that keep messages and number them. `server_events`: those that do so
  over HTTP. `changes`: the changes of a PostgreSQL database.
- `webhooks`, `websockets`: what is sent once. `journals`: how that is kept until a snapshot has it.
- `timed`: sources whose times are those of their records.

The interface is `Partitions`, in `dataflow.operators.partitions`.
"""

from dataflow.clients.pgoutput import RowChange
from dataflow.operators.partitions import Partitions, SourceError
from dataflow.sources.captures import replay
from dataflow.sources.changes import postgres_changes
from dataflow.sources.iterators import generator, restartable, shares
from dataflow.sources.journals import at_most_once, journaled
from dataflow.sources.kafka import KafkaRecord, kafka
from dataflow.sources.nats import NatsRecord, nats
from dataflow.sources.redis import RedisRecord, redis
from dataflow.sources.server_events import ServerEvent, server_events
from dataflow.sources.standard import stdin
from dataflow.sources.tables import arrow, parquet
from dataflow.sources.texts import csv, json_lines, lines
from dataflow.sources.timed import event_timed
from dataflow.sources.webhooks import WebhookRecord, webhook
from dataflow.sources.websockets import websocket

__all__ = [
    "KafkaRecord",
    "NatsRecord",
    "Partitions",
    "RedisRecord",
    "RowChange",
    "ServerEvent",
    "SourceError",
    "WebhookRecord",
    "arrow",
    "at_most_once",
    "csv",
    "event_timed",
    "generator",
    "journaled",
    "json_lines",
    "kafka",
    "lines",
    "nats",
    "parquet",
    "postgres_changes",
    "redis",
    "replay",
    "restartable",
    "server_events",
    "shares",
    "stdin",
    "webhook",
    "websocket",
]
