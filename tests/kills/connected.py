"""Running totals from and to servers, to be killed: `python -m tests.kills.connected WORKERS STATE SETTINGS`.

The settings are a file: by connector, where it is. Each connector that has any is a dataflow of its own. It says after
each record how far it is, on standard output: whoever kills it waits for that.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import dataflow
import megaphone
from dataflow import sinks, sources
from tests.connectors.lives import Until

PAUSE = 0.001  # seconds for a record: so that there is time to kill somebody
LAST = 119  # the last number that each source gives
Settings = dict[str, str]


def total(key: int, number: int, so_far: int | None) -> tuple[int, list[tuple[int, int]]]:
    """By key, a running total."""
    so_far = (so_far or 0) + number
    return so_far, [(number, so_far)]


def slowly(number: int) -> tuple[int, int]:
    """A number with its key; takes its time, and says so."""
    time.sleep(PAUSE)
    print("line", flush=True)
    return number % 5, number


def is_last(number: int) -> bool:
    return number == LAST


def kafka(at: Settings) -> tuple[Any, Any]:
    """From a topic to a topic: at least once."""
    source = sources.kafka(at["address"], at["name"], decode=lambda record: int(record.value or b""), follow=False)
    return source, sinks.kafka(at["address"], f"{at['name']}-out", value=json.dumps)


def nats(at: Settings) -> tuple[Any, Any]:
    source = sources.nats(at["address"], at["name"], decode=lambda record: int(record.data), follow=False)
    return source, sinks.nats(at["address"], f"{at['name']}-out", f"{at['name']}-out.rows", encode=json.dumps)


def valkey(at: Settings) -> tuple[Any, Any]:
    source = sources.redis(
        at["address"], [f"{at['name']}-0"], decode=lambda record: int(record.fields[b"n"]), follow=False, trim=True
    )
    return source, sinks.redis(at["address"], f"{at['name']}-out", encode=lambda pair: {"pair": json.dumps(pair)})


def postgres(at: Settings) -> tuple[Any, Any]:
    """From what is inserted into a table to another table."""
    changes = sources.postgres_changes(at["address"], "kill_in", slot="kills")
    return Until(_Numbers(changes), is_last), sinks.postgres(at["address"], "kill_out", columns=("number", "total"))


class _Numbers(sources.Partitions[int]):
    """The numbers that are inserted."""

    def __init__(self, changes: sources.Partitions[sources.RowChange]) -> None:
        self._changes = changes

    async def partitions(self) -> Any:
        return await self._changes.partitions()

    async def read(self, partition: str, position: object | None) -> Any:
        reader: Any = self._changes.read(partition, position)
        async for behind, _, batch in reader:
            yield behind, None, [change.new["number"] for change in batch]

    async def acknowledge(self, partition: str, position: object) -> None:
        await self._changes.acknowledge(partition, position)


def bucket(at: Settings) -> tuple[Any, Any]:
    """From compressed files in a bucket to files in it."""
    source = sources.json_lines(f"{at['address']}/in/*.gz", batch=5)
    return source, sinks.json_lines(f"{at['address']}/out", columns=("number", "total"))


def events(at: Settings) -> tuple[Any, Any]:
    """From server-sent events to a Delta table."""
    source = sources.server_events(at["address"], decode=lambda event: int(event.data))
    return Until(source, is_last), sinks.delta(at["folder"], columns=("number", "total"))


def webhook(at: Settings) -> tuple[Any, Any]:
    """From webhooks, through a journal, to Arrow files."""
    source = sources.webhook(int(at["port"]), decode=lambda request: int(request.body))
    journaled = sources.journaled(source, f"{at['folder']}/journal")
    return Until(journaled, is_last), sinks.arrow(f"{at['folder']}/out", columns=("number", "total"))


CONNECTORS = {each.__name__: each for each in (kafka, nats, valkey, postgres, bucket, events, webhook)}


async def connected(worker: dataflow.Worker, settings: dict[str, Settings]) -> None:
    """A dataflow for each connector."""
    for name, at in settings.items():
        source, sink = CONNECTORS[name](at)
        with worker.dataflow(name) as scope:
            numbers: Any = scope.source(source, name="in").map(slowly)
            totals = megaphone.state_machine(scope.control(), numbers, fold=total, bins=16, name="totals")
            totals.sink(sink, name="out")


if __name__ == "__main__":
    workers, state, where = sys.argv[1:]
    recovery = dataflow.Recovery(state, every=0.1, restarts=100)
    dataflow.execute(connected, json.loads(Path(where).read_text()), workers=int(workers), recovery=recovery)
