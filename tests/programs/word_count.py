"""Word count, twice over the same lines: how often each word occurred in an epoch, and how often so far.

The running count is kept in a generic operator that takes up an epoch when its notificator says that it is complete, so
epochs are counted in their order however their lines arrive.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import dataflow
from dataflow.lowlevel import Capability, Exchange, MessageCapability, Notificator, OutputPort
from tests.oracles import tables
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_epochs, require_same


def running_count(words: dataflow.Stream[Any]) -> dataflow.Stream[Any]:
    """(word, occurrences in this epoch and before) for each word of each epoch."""
    totals: Counter[str] = Counter()
    arrived: dict[int, Counter[str]] = {}  # by time that is not complete

    def on_batch(message: MessageCapability, batch: list[str], output: OutputPort, due: Notificator) -> None:
        if message.time not in arrived:
            arrived[message.time] = Counter()
            due.notify_at(message.retain())
        arrived[message.time].update(batch)

    def on_notify(capability: Capability, output: OutputPort, due: Notificator) -> None:
        new = arrived.pop(capability.time)
        totals.update(new)
        output.give(capability, [(word, totals[word]) for word in new])

    return words.unary_notify("running count", on_batch, on_notify, pact=Exchange(lambda word: word))


def build(scope: dataflow.Scope, found: list[Any]) -> tuple[dataflow.InputHandle, dataflow.Probe]:
    """The program in a dataflow that others may share a worker with."""
    lines, stream = scope.input("lines")
    words = stream.flat_map(str.split)
    so_far = running_count(words).map(lambda count: ("so far", *count))
    each = words.count(lambda word: word).map(lambda count: ("epoch", *count))
    both = so_far.concat(each)
    return lines, both.inspect(lambda time, count: found.append((time, count))).probe()


async def main(worker: dataflow.Worker, pace: str, lines: Epochs) -> list[Any]:
    """Returns (epoch, (which count, word, occurrences)) for the words that this worker counted."""
    found: list[Any] = []
    with worker.dataflow("word count") as scope:
        handle, probe = build(scope, found)
    await feed(worker, pace, probe, (handle, lines))
    return found


def random_line(chance: Random) -> str:
    """A few of a few words; sometimes none."""
    return " ".join(chance.choices(("brown", "dog", "fox", "jumps", "the"), k=chance.randint(0, 6)))


def check(run: Run, chance: Random) -> None:
    """A small vocabulary, so that words come again in later epochs."""
    lines = random_epochs(chance, random_line, epochs=6)
    require_same(gathered(run(main, chance.choice(PACES), lines)), tables.word_count(lines))
