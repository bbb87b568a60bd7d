"""Rows through map, filter and exchange, beside the plain Python loop that does the same to lists."""

import time
from collections.abc import Callable
from statistics import median

import dataflow
from bench.registry import benchmark
from bench.run import Run

BATCH = 10_000
Build = Callable[[dataflow.Stream[int]], dataflow.Stream[int]]


@benchmark("rows", "rows through map, filter and exchange, as a ratio to a plain Python loop over the same lists")
def rows(run: Run) -> None:
    batches = 30 if run.quick else 200
    repeats = 3 if run.quick else 7
    cases: list[tuple[str, Build, Callable[[list[int]], object]]] = [
        ("map", lambda s: s.map(_successor), _loop_map),
        ("filter", lambda s: s.filter(_odd), _loop_filter),
        ("map, filter, map", lambda s: s.map(_successor).filter(_odd).map(_successor), _loop_chain),
        ("exchange, 2 workers in one process", lambda s: s.exchange(_same), _loop_partition),
    ]
    for name, build, loop in run.each("rows", cases):
        workers = 2 if "2 workers" in name else 1
        pairs = [(_engine(build, batches, workers), _plain(loop, batches, workers)) for _ in range(repeats)]
        run.report(name, median(e for e, _ in pairs), "rows/s", baseline=median(p for _, p in pairs))


def _engine(build: Build, batches: int, workers: int) -> float:
    return float(sum(dataflow.execute(_main, build, batches, workers=workers, in_process=True)))


async def _main(worker: dataflow.Worker, build: Build, batches: int) -> float:
    batch = list(range(BATCH))
    with worker.dataflow() as scope:
        numbers, stream = scope.input()
        probe = build(stream).probe()
    start = time.perf_counter()
    for epoch in range(batches):
        numbers.send(batch)
        numbers.advance_to(epoch + 1)
        await probe.wait_passed(epoch)
    return BATCH * batches / (time.perf_counter() - start)


def _plain(loop: Callable[[list[int]], object], batches: int, workers: int) -> float:
    batch = list(range(BATCH))
    start = time.perf_counter()
    for _ in range(batches):
        loop(batch)
    return BATCH * batches / (time.perf_counter() - start)


def _successor(row: int) -> int:
    return row + 1


def _odd(row: int) -> int:
    return row & 1


def _same(row: int) -> int:
    return row


def _loop_map(batch: list[int]) -> list[int]:
    return [_successor(row) for row in batch]


def _loop_filter(batch: list[int]) -> list[int]:
    return [row for row in batch if _odd(row)]


def _loop_chain(batch: list[int]) -> list[int]:
    return [_successor(row) for row in [row for row in [_successor(row) for row in batch] if _odd(row)]]


def _loop_partition(batch: list[int]) -> list[list[int]]:
    parts: list[list[int]] = [[], []]
    for row in batch:
        parts[_same(row) % 2].append(row)
    return parts
