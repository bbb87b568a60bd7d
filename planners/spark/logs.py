"""Stage 1: workload logs to loads and sizes by bin, and to the number of nodes needed in each interval (section 6).

A log has a row for each interval and bin (or several, if the bin moved within the interval): `records` that came,
`bytes` of state that the bin had, and the `cost` of processing, in whatever unit. Load is the mean cost of an interval;
size is what the bin's state last had. Costs of several rows for one interval and bin add up; of their bytes the largest
counts, since it is the same state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from planners.errors import BadRequest
from planners.model import Tasks

COLUMNS = ("interval", "bin", "records", "bytes", "cost")
AMOUNTS = ("records", "bytes", "cost")
WHOLE = ("byte", "short", "integer", "long")


@dataclass(frozen=True)
class Need:
    """How many nodes an interval needs, given its cost.

    With a capacity (the cost that a node can bear in an interval) as many as bear it. Without one, as in the papers'
    experiments, costs are mapped onto the range: the least to `low`, the greatest to `high`.
    """

    low: int
    high: int
    capacity: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise BadRequest(f"the number of nodes ranges from one or more upwards, not from {self.low} to {self.high}")
        if self.capacity is not None and not 0 < self.capacity < float("inf"):
            raise BadRequest(f"the capacity of a node is more than zero, not {self.capacity}")


def check(logs: DataFrame, bins: int | None = None) -> None:
    """An error if this is no workload log: columns first, which costs nothing, then values, in one pass."""
    if missing := [column for column in COLUMNS if column not in logs.columns]:
        raise BadRequest(
            f"a workload log has the columns {', '.join(COLUMNS)}, and {', '.join(missing)} is missing; there are "
            f"{', '.join(logs.columns)}"
        )
    for column in COLUMNS:
        kind = logs.schema[column].dataType
        whole = column in ("interval", "bin")
        if not isinstance(kind, NumericType) or (whole and kind.typeName() not in WHOLE):
            raise BadRequest(f"the column {column} holds {kind.simpleString()}, not {'whole ' * whole}numbers")
    faults = {f"{column} is null": F.col(column).isNull() for column in COLUMNS}
    faults |= {f"{column} is negative": F.col(column) < 0 for column in ("bin", *AMOUNTS)}
    for column in AMOUNTS:
        value = F.col(column).cast("double")
        faults[f"{column} is not finite"] = F.isnan(value) | (F.abs(value) == np.inf)
    if bins is not None:
        faults[f"bin is {bins} or more"] = F.col("bin") >= bins
    names = list(faults)
    counted = logs.agg(F.count(F.lit(1)), *(F.count_if(faults[name]) for name in names)).first()
    assert counted is not None  # an aggregate always has its one row
    rows, *found = counted
    if not rows:
        raise BadRequest("the workload log is empty")
    if wrong := [f"in {many:,} of {rows:,} rows {name}" for name, many in zip(names, found, strict=True) if many]:
        raise BadRequest("the workload log cannot be used: " + "; ".join(wrong))


def by_bin(logs: DataFrame) -> DataFrame:
    """A row for each interval and bin: cost, bytes."""
    return logs.groupBy("interval", "bin").agg(
        F.sum(F.col("cost").cast("double")).alias("cost"), F.max(F.col("bytes").cast("double")).alias("bytes")
    )


def tasks(logs: DataFrame, bins: int | None = None) -> Tasks:
    """Sizes and loads by bin; a bin that the logs never name has none of either."""
    each = by_bin(logs)
    intervals = logs.select("interval").distinct().count()
    rows = (
        each.groupBy("bin")
        .agg((F.sum("cost") / intervals).alias("load"), F.max_by("bytes", "interval").alias("size"))
        .collect()
    )
    many = bins if bins is not None else 1 + max(row.bin for row in rows)
    sizes, loads = np.zeros(many), np.zeros(many)
    for row in rows:
        sizes[row.bin], loads[row.bin] = row.size, row.load
    return Tasks(sizes, loads)


def history(logs: DataFrame, need: Need) -> DataFrame:
    """A row for each interval: how many nodes it needs."""
    cost = logs.groupBy("interval").agg(F.sum(F.col("cost").cast("double")).alias("cost"))
    if need.capacity is not None:
        wanted = F.ceil(F.col("cost") / need.capacity)
    else:
        ends = cost.agg(F.min("cost").alias("least"), F.max("cost").alias("greatest"))
        cost = cost.crossJoin(F.broadcast(ends))
        share = F.when(
            F.col("greatest") > F.col("least"),
            (F.col("cost") - F.col("least")) / (F.col("greatest") - F.col("least")),
        ).otherwise(0.0)
        wanted = F.lit(need.low) + F.floor(share * (need.high - need.low) + 0.5)
    clipped = F.least(F.greatest(wanted, F.lit(need.low)), F.lit(need.high))
    return cost.select("interval", clipped.cast("int").alias("nodes"))
