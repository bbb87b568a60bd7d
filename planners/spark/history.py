"""Stage 2: the migration transition matrix, from how many nodes there were in each interval."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from planners.errors import BadRequest
from planners.mtm.transitions import Transitions, from_counts


def transitions(history: DataFrame, staying: bool = False) -> Transitions:
    """The matrix of a history (interval, nodes); an interval follows the one before it that the history knows.

    The history has a row for each interval, so that one window over all of it is no burden.
    """
    in_order = Window.orderBy("interval")
    pairs = history.select("nodes", F.lead("nodes").over(in_order).alias("then"))
    seen: dict[tuple[int, int], int] = {}
    counts: set[int] = set()
    for row in pairs.groupBy("nodes", "then").count().collect():
        counts.add(row["nodes"])
        if row["then"] is not None:
            seen[row["nodes"], row["then"]] = row["count"]
    if not counts:
        raise BadRequest("the history is empty: it has no interval")
    return from_counts(seen, sorted(counts), staying)


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
