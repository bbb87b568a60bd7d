"""A loop in a loop: the inner one halves a number until it is 1, and the outer one starts it again, so many times, with
a number that depends on how many halvings there have been. Times inside have three levels, and are checked as well."""

from __future__ import annotations

from random import Random
from typing import Any

import dataflow
from tests.oracles import loops
from tests.programs.running import PACES, Epochs, Run, feed, gathered, random_epochs, require_same

Record = tuple[int, int, int, int]  # (origin, number now, halvings so far, times that the outer loop starts again)


def halve(record: Record) -> Record:
    """One round of the inner loop."""
    origin, number, halvings, left = record
    return origin, number // 2, halvings + 1, left


def restart(record: Record) -> Record:
    """One round of the outer loop."""
    origin, _, halvings, left = record
    return origin, origin + halvings, halvings, left - 1


def build(scope: dataflow.Scope, found: list[Any]) -> tuple[dataflow.InputHandle, dataflow.Probe]:
    """The program in a dataflow that others may share a worker with. Records change workers in both loops."""

    def note(time: Any, record: Record) -> None:
        found.append((time, record))

    def inner(records: dataflow.Stream[Any]) -> Any:
        large, small = records.exchange(lambda record: record[1]).inspect(note).branch(lambda record: record[1] > 1)
        return large.map(halve), small

    def outer(records: dataflow.Stream[Any]) -> Any:
        halved = records.iterate(inner).exchange(lambda record: record[2])
        again, done = halved.branch(lambda record: record[3] > 0)
        return again.map(restart), done

    numbers, stream = scope.input("numbers")
    return numbers, stream.iterate(outer).inspect(note).probe()


async def main(worker: dataflow.Worker, pace: str, numbers: Epochs) -> list[Any]:
    """Returns ((epoch, outer round, inner round), record) inside the inner loop, and (epoch, record) at the end."""
    found: list[Any] = []
    with worker.dataflow("nested loop") as scope:
        handle, probe = build(scope, found)
    await feed(worker, pace, probe, (handle, numbers))
    return found


def random_record(chance: Random) -> Record:
    """A number to halve, and how often to start again."""
    origin = chance.randint(1, 40)
    return origin, origin, 0, chance.randint(0, 3)


def check(run: Run, chance: Random) -> None:
    """Few records: each makes up to twenty of its own."""
    numbers = random_epochs(chance, random_record, epochs=3, size=4)
    require_same(gathered(run(main, chance.choice(PACES), numbers)), loops.halvings(numbers))
