"""Stage 5: the tables that `mtm_aware` reads: partitionings with their projected costs, and the parameters beside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from planners.mtm.problem import MTMProblem
from planners.mtm.projection import Correction
from planners.mtm.table_files import arrow
from planners.mtm.tables import parameters_of
from planners.spark.folder import Folder
from planners.spark.iteration import Solution
from planners.spark.session import quietly

SCHEMA = "nodes int, cuts array<smallint>, cost double"
PARQUET = ".parquet"
ROW_GROUP_BYTES = 1 << 20  # small, so that a search that starts with the cheap ones leaves most of a file alone


def write(solution: Solution, problem: MTMProblem, folder: Folder) -> None:
    """Files by node count, each in the order of costs. The parameters come last: without them it is no table."""
    folder.delete("parameters.json")
    pieces = solution.table.select("nodes", "start", "swept")
    pieces = pieces.repartition(min(2 * folder.spark.sparkContext.defaultParallelism, pieces.count()))
    with quietly():
        rows = pieces.mapInArrow(partial(_expand, problem, solution.correction), SCHEMA)
    (
        rows.sortWithinPartitions("nodes", "cost")
        .write.mode("overwrite")
        .partitionBy("nodes")
        .option("parquet.block.size", str(ROW_GROUP_BYTES))
        .option("parquet.page.write-checksum.enabled", "true")
        .parquet(folder.path("costs"))
    )
    seals = {name: folder.seal("costs", *name.split("/")) for name in _files(folder, problem)}
    parameters = parameters_of(problem, solution.correction.error, solution.iterations, seals)
    folder.write_text(json.dumps(parameters), "parameters.json")


def _files(folder: Folder, problem: MTMProblem) -> list[str]:
    places = [f"nodes={nodes}" for nodes in problem.counts]
    return [f"{place}/{name}" for place in places for name in folder.children("costs", place) if name.endswith(PARQUET)]


def _expand(problem: MTMProblem, correction: Correction, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            nodes, costs = row["nodes"], np.frombuffer(row["swept"]) + correction.shift[row["nodes"]]
            cuts = problem.partitionings(nodes).cuts(row["start"], row["start"] + len(costs))
            table = arrow(problem.in_tasks(cuts), costs)
            counts = pa.array(np.full(len(costs), nodes, np.int32))
            yield from pa.table({"nodes": counts, "cuts": table["cuts"], "cost": table["cost"]}).to_batches()
