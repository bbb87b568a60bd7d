"""Running counts of words, to be killed: `python -m tests.kills.word_count WORKERS STATE FOLDER TARGET`.

It says after each line how far it is, on standard output: whoever kills it waits for that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import dataflow
import megaphone
from dataflow import sinks, sources

PAUSE = 0.002  # seconds for a line: so that there is time to kill somebody


def count(word: str, one: int, total: int | None) -> tuple[int, list[tuple[str, int]]]:
    """A word's running total."""
    total = (total or 0) + one
    return total, [(word, total)]


def split(line: str) -> Iterable[tuple[str, int]]:
    """The words of a line, each with a one; takes its time, and says so."""
    time.sleep(PAUSE)
    print("line", flush=True)
    return [(word, 1) for word in line.split()]


async def words(worker: dataflow.Worker, folder: str, target: str) -> None:
    """Running counts of the words in a folder of text files, into SQLite, or into files if the target is a folder."""
    with worker.dataflow("words") as scope:
        lines = scope.source(sources.lines(folder, batch=5), name="lines")
        totals = megaphone.state_machine(scope.control(), lines.flat_map(split), fold=count, bins=16, name="totals")
        if Path(target).suffix == ".db":
            totals.sink(sinks.sqlite(target, "totals", columns=("word", "total"), key=("word",)), name="out")
        else:
            totals.sink(sinks.json_lines(target, columns=("word", "total")), name="out")


if __name__ == "__main__":
    workers, state, *arguments = sys.argv[1:]
    recovery = dataflow.Recovery(state, every=0.2, restarts=100)
    dataflow.execute(words, *arguments, workers=int(workers), recovery=recovery)
