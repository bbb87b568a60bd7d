"""What was captured on N workers is replayed on M: the same records at the same times, and the same times complete."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import dataflow
from tests.oracles import tables
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_epochs, require, require_same, share


async def record(worker: dataflow.Worker, pace: str, records: Epochs) -> list[Any]:
    """Returns the events of a stream that has been through a loop, so that batches arrive out of order."""
    events: list[Any] = []
    with worker.dataflow("record") as scope:
        handle, stream = scope.input("records")
        mixed = stream.iterate(lambda inner: inner.exchange(lambda record: record).branch(lambda record: False))
        probe = mixed.capture(events.append).probe()
    await feed(worker, pace, probe, (handle, records))
    return events


async def replay(worker: dataflow.Worker, captures: Sequence[Iterable[Any]]) -> list[Any]:
    """Returns (time, record) for the captures that this worker replayed, and counts by (time, record) of all."""
    found: list[Any] = []
    with worker.dataflow("replay") as scope:
        stream = scope.replay(*share(captures, worker))
        stream.inspect(lambda time, record: found.append((time, record)))
        counts = stream.count(lambda record: record)  # a count needs its time to be complete, and then never changes
        probe = counts.inspect(lambda time, count: found.append((time, ("count", *count)))).probe()
    await probe.wait_done()
    return found


def through_a_file(events: Iterable[Any]) -> Iterator[Any]:
    """The events, written to a file and read back."""
    file = io.BytesIO()
    writer = dataflow.EventWriter(file)
    for event in events:
        writer.write(event)
    file.seek(0)
    return dataflow.read_events(file)


def check(run: Run, chance: Random) -> None:
    """Captures on as many workers as the run says, and replays on any number."""
    records = random_epochs(chance, lambda chance: chance.randrange(5), epochs=5)
    captures = run(record, chance.choice(PACES), records)
    require(len(captures) == run.workers, "every worker has a capture")
    if chance.random() < 0.5:
        captures = [list(through_a_file(events)) for events in captures]
    replayed = run(replay, captures, workers=chance.randint(1, 4))
    require_same(gathered(replayed), tables.records_and_counts(records))
