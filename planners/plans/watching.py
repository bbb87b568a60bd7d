"""Samples of streams while they flow: a reservoir for each stream on each worker, gathered interval by interval.

An interval is over when its last time is complete, which the frontier tells: a worker that saw nothing sends nothing,
and nobody waits for it. What is sampled costs a few steps per record that is kept, not per record that comes. Samples
are not saved: the first one after a recovery is of the rest of its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.lowlevel import Capability, Keeps, MessageCapability, Notificator, OutputPort, ToWorker
from dataflow.state.values import Record
from planners.plans.sampling import JoinSample, Reservoir, merged

Part: TypeAlias = tuple[str, int, tuple[Record, ...]]
"""What a worker saw of a stream in an interval: its name, how many records, and some of them."""


def watch(
    streams: Mapping[str, Stream[Record]],
    every: int,
    hear: Callable[[JoinSample[Record]], None],
    size: int = 1_000,
    worker: int = 0,
    seed: int = 0,
) -> None:
    """Has `hear` called on one worker with a sample of each interval of `every` times. A record of a batch of columns
    is a dictionary, by name of column. Times are integers.

    Build it on every worker, in the dataflow that has the streams.
    """
    if type(every) is not int or every < 1 or type(size) is not int or size < 1:
        raise ConstructionError(
            f"an interval is a positive number of times, and a sample one of records, not {every!r} and {size!r}"
        )
    peers = next(iter(streams.values())).scope.peers
    first, *others = [_sampled(stream, name, every, size, seed) for name, stream in streams.items()]
    parts = first.concat(*others, name="samples") if others else first
    gathered: dict[int, list[Part]] = {}  # by the last time of their interval

    def on_parts(
        message: MessageCapability, batch: list[Part], output: OutputPort[None], notificator: Notificator
    ) -> None:
        gathered.setdefault(message.time, []).extend(batch)
        notificator.notify_at(message.delayed(message.time))

    def on_interval(capability: Capability, output: OutputPort[None], notificator: Notificator) -> None:
        end = capability.time + 1
        hear(_together(gathered.pop(capability.time), [*streams], end - every, end, size))

    parts.unary_notify("gather samples", on_parts, on_interval, pact=ToWorker(worker % peers), keeps=Keeps.NOTHING)


def _sampled(stream: Stream[Record], name: str, every: int, size: int, seed: int) -> Stream[Part]:
    """What this worker sees of a stream, at the last time of each interval."""
    held: dict[int, Reservoir[Record]] = {}  # by that time
    chance = Random(f"{seed} {name}")

    def on_batch(
        message: MessageCapability, batch: list[Record] | Columns, output: OutputPort[Part], notificator: Notificator
    ) -> None:
        last = (message.time // every + 1) * every - 1
        if last not in held:
            held[last] = Reservoir(size, chance)
            notificator.notify_at(message.delayed(last))
        if isinstance(batch, Columns):
            _see_columns(held[last], batch)
        else:
            held[last].see(batch)

    def on_interval(capability: Capability, output: OutputPort[Part], notificator: Notificator) -> None:
        seen = held.pop(capability.time)
        output.give(capability, [(name, seen.seen, tuple(seen.items))])

    return stream.unary_notify(f"sample {name}", on_batch, on_interval, keeps=Keeps.NOTHING)


def _see_columns(held: Reservoir[Record], batch: Columns) -> None:
    """Only rows that are kept become records."""
    picked = held.picks(len(batch))
    if picked:
        taken = batch.take(np.array([number for _, number in picked]))
        records = (dict(zip(taken.names, row, strict=True)) for row in taken.rows())
        held.keep((place, record) for (place, _), record in zip(picked, records, strict=True))


def _together(parts: list[Part], names: list[str], begin: int, end: int, size: int) -> JoinSample[Record]:
    """One sample of what all workers saw."""
    none: dict[str, tuple[Record, ...]] = dict.fromkeys(names, ())
    samples = [
        JoinSample({**none, name: items}, {**dict.fromkeys(names, 0), name: seen}, begin, end)
        for name, seen, items in sorted(parts, key=lambda part: part[:2])
    ]
    return merged(samples, size)
