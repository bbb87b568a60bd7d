"""A running word count in plain Python rows, beside a dictionary and a loop: what users' first programs do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np

import dataflow
from bench.registry import benchmark
from bench.run import Run
from dataflow.state import native
from dataflow.state.stores.row_store import Postponer

VOCABULARY = 1_000_000
BATCH = 10_000
AHEAD = 3  # epochs on their way
Pair = tuple[str, int]


@benchmark("rows-count", "a running word count in rows, a million words: one worker over a bare loop, two over one")
def rows_count(run: Run) -> None:
    batches = 100 if run.quick else 400
    rounds = []
    for _ in run.each("runs", range(3 if run.quick else 5)):
        rounds.append((_bare(batches), _engine(batches, 1), _engine(batches, 2)))
    bare, one, two = (median(column) / 1e6 for column in zip(*rounds, strict=True))
    run.report("one worker, over a bare loop (aim: 0.7)", one, "M records/s", baseline=bare)
    run.report("two workers, over one (aim: 1.7)", two, "M records/s", baseline=one)


def _words(seed: int, batches: int) -> list[list[Pair]]:
    """Batches of (word, 1): the same word is not the same object each time, as when text is read."""
    rng = np.random.default_rng(seed)
    return [
        [(f"word {number}", 1) for number in batch] for batch in rng.integers(0, VOCABULARY, (batches, BATCH)).tolist()
    ]


def _bare(batches: int) -> float:
    """A dictionary and a loop, one core; records/s."""
    words = _words(0, batches)
    counts: dict[str, int] = {}
    start = time.perf_counter()
    for batch in words:
        out = []
        for word, diff in batch:
            total = counts.get(word, 0) + diff
            counts[word] = total
            out.append((word, total))
    return batches * BATCH / (time.perf_counter() - start)


def _count(time: int, records: list[Pair], state: dict[str, int], _: Postponer) -> Iterator[Pair]:
    for word, diff in records:
        total = state.get(word, 0) + diff
        state[word] = total
        yield word, total


async def _main(worker: dataflow.Worker, batches: int) -> float:
    words = _words(worker.index, batches)
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        counts = native.unary(stream, key=lambda record: record[0], fold=_count, state=dict)
        probe = counts.probe()
    handle.advance_to(1)
    await probe.wait_passed(0)  # all are ready
    start = time.perf_counter()
    for epoch, batch in enumerate(words, start=1):
        handle.send(batch)
        handle.advance_to(epoch + 1)
        await probe.wait_passed(epoch - AHEAD)
    await probe.wait_passed(batches)
    return batches * BATCH / (time.perf_counter() - start)


def _engine(batches: int, workers: int) -> float:
    """Records/s of all workers together, each with as many records."""
    return float(sum(dataflow.execute(_main, batches, workers=workers)))
