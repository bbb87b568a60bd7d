"""Stage 3: every balanced partitioning for every node count, each made by the executor that has its range of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from planners.mtm.problem import MTMProblem
from planners.mtm.table_files import arrow
from planners.spark.session import quietly

SCHEMA = "nodes int, rank long, cuts array<smallint>"
CHUNK = 65_536  # rows that an executor makes at a time

Batches = Iterator[pa.RecordBatch]


def partitionings(spark: SparkSession, problem: MTMProblem, limit: int) -> DataFrame:
    """A row for each: nodes, rank, cuts. `TooMany`, before any is made, if there are more than the limit."""
    problem.check(limit)
    rows = [(nodes, start, stop) for nodes, start, stop in ranges(problem, CHUNK)]
    spread = spark.createDataFrame(rows, "nodes int, start long, stop long").repartition(len(rows))
    with quietly():
        return spread.mapInArrow(_bound(_enumerate, problem), SCHEMA)


def ranges(problem: MTMProblem, chunk: int) -> list[tuple[int, int, int]]:
    """All ranks, in ranges of at most so many: (nodes, start, stop)."""
    return [
        (nodes, start, min(start + chunk, count))
        for nodes in problem.counts
        for count in [problem.partitionings(nodes).count]
        for start in range(0, count, chunk)
    ]


def _bound(function: Callable[[MTMProblem, Batches], Batches], problem: MTMProblem) -> Callable[[Batches], Batches]:
    return partial(function, problem)


def _enumerate(problem: MTMProblem, batches: Batches) -> Batches:
    for batch in batches:
        for row in batch.to_pylist():
            cuts = problem.partitionings(row["nodes"]).cuts(row["start"], row["stop"])
            ranks = np.arange(row["start"], row["start"] + len(cuts))
            table = arrow(problem.in_tasks(cuts), np.zeros(len(cuts)))
            nodes = pa.array(np.full(len(cuts), row["nodes"], np.int32))
            yield from pa.table({"nodes": nodes, "rank": ranks, "cuts": table["cuts"]}).to_batches()
