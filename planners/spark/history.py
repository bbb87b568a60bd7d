"""Stage 2: the migration transition matrix, from how many nodes there were in each interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from pyspark.sql import DataFrame, Row, SparkSession

from planners.errors import BadRequest
from planners.mtm.transitions import Transitions, from_counts


def transitions(history: DataFrame, staying: bool = False) -> Transitions:
    """The matrix of a history (interval, nodes); an interval follows the one before it that the history knows.

    Each partition of the sorted history counts its own changes; the driver adds those from one partition to the next.
    (A window over all of it would be one task's, and Spark warns of that.)
    """
    parts = history.select("interval", "nodes").sort("interval").rdd.mapPartitionsWithIndex(_changes).collect()
    seen: Counter[tuple[int, int]] = Counter()
    counts: set[int] = set()
    last: int | None = None
    for _, first, end, changes in sorted(parts, key=lambda part: part[0]):
        if last is not None:
            seen[last, first] += 1
        seen.update(changes)
        counts.update((first, end), *changes)
        last = end
    if not counts:
        raise BadRequest("the history is empty: it has no interval")
    return from_counts(seen, sorted(counts), staying)


Changes = tuple[int, int, int, dict[tuple[int, int], int]]  # of a partition: its number, first and last count, changes


def _changes(number: int, rows: Iterable[Row]) -> Iterator[Changes]:
    nodes = [row.nodes for row in rows]
    if nodes:
        yield number, nodes[0], nodes[-1], dict(Counter(pairwise(nodes)))


def to_table(spark: SparkSession, matrix: Transitions) -> DataFrame:
    """The matrix as a table of (now, then, probability), every pair."""
    rows = [(now, then, matrix.probability(now, then)) for now in matrix.counts for then in matrix.counts]
    return spark.createDataFrame(rows, "now int, then int, probability double").coalesce(1)


def from_table(table: DataFrame) -> Transitions:
    """The matrix of such a table; a pair that is not there has probability zero. Rows must sum to one."""
    given: Mapping[tuple[int, int], float] = {
        (row["now"], row["then"]): row["probability"] for row in table.select("now", "then", "probability").collect()
    }
    counts = sorted({count for pair in given for count in pair})
    return Transitions(counts, [[given.get((now, then), 0.0) for then in counts] for now in counts])
