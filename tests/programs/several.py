"""Several dataflows on one worker at once: fed in turns, one of them built from the results of another while the others
go on."""

from __future__ import annotations

from random import Random
from typing import Any

import trio

import dataflow
from tests.oracles import loops, tables
from tests.programs import nested_loop, word_count
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_epochs, require_same


async def main(worker: dataflow.Worker, pace: str, lines: Epochs, numbers: Epochs) -> list[Any]:
    """Returns (which dataflow, result): a word count, a nested loop, and the words that occurred most."""
    counted: list[Any] = []
    halved: list[Any] = []
    with worker.dataflow("word count") as scope:
        line_input, line_probe = word_count.build(scope, counted)
    with worker.dataflow("nested loop") as scope:
        number_input, number_probe = nested_loop.build(scope, halved)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed, worker, pace, line_probe, (line_input, lines))
        nursery.start_soon(feed, worker, pace, number_probe, (number_input, numbers))
        await line_probe.wait_done()
        again = await count_again(worker, counted)
    await number_probe.wait_done()
    return [("words", x) for x in counted] + [("halved", x) for x in halved] + [("again", x) for x in again]


async def count_again(worker: dataflow.Worker, counted: list[Any]) -> list[Any]:
    """Adds up the counts per epoch of all epochs, in a dataflow of its own: (word, occurrences)."""
    totals: list[Any] = []
    with worker.dataflow("again") as scope:
        counts, stream = scope.input("counts")
        sums = stream.aggregate(lambda count: count[1], int, lambda total, count: total + count[2])
        probe = sums.inspect(lambda _, total: totals.append(total)).probe()
    counts.send([count for _, count in counted if count[0] == "epoch"])
    counts.close()
    await probe.wait_done()
    return totals


def check(run: Run, chance: Random) -> None:
    """The three answers, each from its own oracle."""
    lines = random_epochs(chance, word_count.random_line)
    numbers = random_epochs(chance, nested_loop.random_record, epochs=2, size=3)
    results = run(main, chance.choice(PACES), lines, numbers)
    words = [("words", x) for x in tables.word_count(lines).elements()]
    halved = [("halved", x) for x in loops.halvings(numbers).elements()]
    again = [("again", x) for x in tables.total_words(lines)]
    require_same(gathered(results), gathered([words, halved, again]))
