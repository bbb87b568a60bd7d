"""The program that endures: running counts of the words in a folder that grows, into SQLite."""

from __future__ import annotations

from collections.abc import Iterable

import dataflow
import megaphone
from dataflow import sinks, sources

OPERATOR = "totals"


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """A word's running total."""
    total = (total or 0) + one
    return total, [(word, total)]


def split(line: str) -> Iterable[tuple[str, int]]:
    """The words of a line, each with a one."""
    return [(word, 1) for word in line.split()]


async def main(worker: dataflow.Worker, folder: str, database: str) -> None:
    """Follows the files of a folder until it is stopped."""
    with worker.dataflow("endure") as scope:
        lines = scope.source(sources.lines(folder, batch=500, follow=True), name="lines")
        totals = megaphone.state_machine(scope.control(), lines.flat_map(split), fold=count, bins=256, name=OPERATOR)
        totals.sink(sinks.sqlite(database, "totals", columns=("word", "total"), key=("word",)), name="table")
