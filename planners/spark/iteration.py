"""Stage 4: the projected costs. Each sweep is shared among the executors; its results never pass through the driver.

A sweep needs the costs of all partitionings, eight bytes each, and makes new ones for some. So the costs are sent to
every task; the partitionings themselves are not sent, since every task can make those it needs. What the sweep chose
comes together in one task, which settles the costs of choosing so for ever (see `mtm.policy`) and writes them as
the checkpoint from which the next sweep, or a later run, goes on. The driver learns, for each node count, the least and
the greatest change: that gives the bound on the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from planners.mtm.policy import Policy
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import Correction, Sweep, close_enough, settled
from planners.spark.enumeration import ranges
from planners.spark.folder import Folder

CHECKPOINT = "nodes int, start long, swept binary, costs binary, low double, high double"
KEPT = 2  # checkpoints: the last, and the one before in case the last is damaged

Piece = tuple[int, int, bytes]  # node count, first rank, costs
Swept = tuple[int, int, bytes, bytes, bytes, float, float]  # and: direct costs, targets, least and greatest change
Settled = tuple[int, int, bytes, bytes, float, float]  # a row of a checkpoint


@dataclass(frozen=True)
class Solution:
    """Where the last checkpoint is, what to add to its swept costs, and how exact they are then."""

    table: DataFrame
    correction: Correction
    iterations: int
    resumed: int  # how many sweeps of these were found done


def solve(
    spark: SparkSession,
    problem: MTMProblem,
    folder: Folder,
    *,
    tolerance: float = 1e-9,
    limit: int = 20_000_000,
    tasks: int | None = None,
    report: Callable[[int, float], None] = lambda sweep, error: None,
) -> Solution:
    """Sweeps until the error is at most `tolerance` times the size of all state. Goes on from what `folder` has of it.

    `tasks` is how many share a sweep: unless given, twice the cores that Spark knows of, or fewer if there is little to
    do. `report` is told of each sweep.
    """
    problem.check(limit)
    tasks = tasks or _worthwhile(problem, spark.sparkContext.defaultParallelism)
    checkpoints = Checkpoints(folder, problem)
    done = resumed = checkpoints.last()
    while True:
        if done:
            correction = _correction(problem, checkpoints.read(done))
            report(done, correction.error)
            if close_enough(problem, correction.error, tolerance, done):
                return Solution(checkpoints.read(done), correction, done, resumed)
        costs = _pieces(checkpoints.read(done)) if done else _zeros(spark, problem)
        rows = _one_sweep(costs, problem, tasks)
        checkpoints.write(spark.createDataFrame(rows, CHECKPOINT, verifySchema=False), done + 1)
        done += 1


class Checkpoints:
    """Finished sweeps in a folder, by number, kept apart by the problem that they belong to."""

    def __init__(self, folder: Folder, problem: MTMProblem) -> None:
        self._folder = folder
        self._place = ("checkpoints", problem.fingerprint)

    def last(self) -> int:
        """The last finished one; 0 if there is none."""
        finished = [name for name in self._folder.children(*self._place) if self._folder.complete(*self._place, name)]
        return max((int(name.removeprefix("sweep-")) for name in finished), default=0)

    def read(self, sweep: int) -> DataFrame:
        return self._folder.spark.read.schema(CHECKPOINT).parquet(self._folder.path(*self._place, _name(sweep)))

    def write(self, table: DataFrame, sweep: int) -> None:
        """Spark marks a table as finished when all of it is there; older ones are then of no more use."""
        table.write.mode("overwrite").parquet(self._folder.path(*self._place, _name(sweep)))
        if sweep > KEPT:
            self._folder.delete(*self._place, _name(sweep - KEPT))


def _worthwhile(problem: MTMProblem, cores: int) -> int:
    total = sum(problem.partitionings(nodes).count for nodes in problem.counts)
    return max(1, min(2 * cores, total // 1024))


def _name(sweep: int) -> str:
    return f"sweep-{sweep:06d}"


def _correction(problem: MTMProblem, checkpoint: DataFrame) -> Correction:
    """The ends of the changes in each range come to the driver; there are some thousand ranges at most."""
    ends = checkpoint.select("nodes", "low", "high").collect()
    low = {nodes: min(row.low for row in ends if row.nodes == nodes) for nodes in problem.counts}
    high = {nodes: max(row.high for row in ends if row.nodes == nodes) for nodes in problem.counts}
    return Correction.after(problem, low, high)


def _pieces(checkpoint: DataFrame) -> RDD[Piece]:
    return checkpoint.select("nodes", "start", "costs").rdd.map(lambda row: (row.nodes, row.start, bytes(row.costs)))


def _zeros(spark: SparkSession, problem: MTMProblem) -> RDD[Piece]:
    """Before the first sweep: nothing is known to cost anything."""
    pieces = ranges(problem, 65_536)
    return spark.sparkContext.parallelize(pieces).map(_zero_piece)


def _zero_piece(piece: tuple[int, int, int]) -> Piece:
    nodes, start, stop = piece
    return nodes, start, bytes(8 * (stop - start))


def _one_sweep(costs: RDD[Piece], problem: MTMProblem, tasks: int) -> RDD[Settled]:
    """Sends the costs to every task; each does its share of the sweep; one task gathers all shares and settles them."""
    work = _shares(problem, tasks)
    return (
        costs.flatMap(lambda piece: [(task, piece) for task in range(tasks)])
        .partitionBy(tasks, int)
        .mapPartitionsWithIndex(lambda task, pieces: _sweep(problem, work[task], (piece for _, piece in pieces)))
        .map(lambda swept: (0, swept))
        .partitionBy(1, int)
        .mapPartitions(lambda swept: _settle(problem, (each for _, each in swept)))
    )


def _shares(problem: MTMProblem, tasks: int) -> list[list[tuple[int, int, int]]]:
    """Ranges of sources for each task: many and in turn, since what a source costs varies slowly with its rank."""
    total = sum(problem.partitionings(nodes).count for nodes in problem.counts)
    pieces = ranges(problem, max(64, min(4096, total // (16 * tasks))))
    return [pieces[task::tasks] for task in range(tasks)]


@lru_cache(maxsize=1)
def _sweeper(problem: MTMProblem) -> Sweep:
    """Executors' processes live on, and the trees of targets are the same in every sweep."""
    return Sweep(problem)


def _sweep(problem: MTMProblem, work: list[tuple[int, int, int]], pieces: Iterable[Piece]) -> Iterator[Swept]:
    sweep = _sweeper(problem)
    costs = _assemble(problem, pieces)
    for nodes, start, stop in work:
        new, policy = sweep(nodes, problem.partitionings(nodes).cuts(start, stop), costs)
        change = new - costs[nodes][start:stop]
        direct, targets = policy.direct.tobytes(), policy.targets.tobytes()
        yield nodes, start, new.tobytes(), direct, targets, float(change.min()), float(change.max())


def _assemble(problem: MTMProblem, pieces: Iterable[Piece]) -> dict[int, NDArray[np.float64]]:
    costs = {nodes: np.full(problem.partitionings(nodes).count, np.nan) for nodes in problem.counts}
    for nodes, start, values in pieces:
        costs[nodes][start : start + len(values) // 8] = np.frombuffer(values)
    assert not any(np.isnan(values).any() for values in costs.values()), "a piece of the costs did not arrive"
    return costs


def _settle(problem: MTMProblem, swept: Iterable[Swept]) -> Iterator[Settled]:
    pieces = sorted(swept, key=lambda piece: piece[:2])
    by_count: dict[int, tuple[NDArray[np.float64], Policy]] = {}
    for nodes in problem.counts:
        mine = [piece for piece in pieces if piece[0] == nodes]
        new, direct = np.frombuffer(b"".join([p[2] for p in mine])), np.frombuffer(b"".join([p[3] for p in mine]))
        targets = np.frombuffer(b"".join(piece[4] for piece in mine), np.int64).reshape(-1, len(problem.counts))
        by_count[nodes] = new, Policy(direct, targets)
    costs = settled(problem, by_count)
    for nodes, start, new_bytes, _, _, low, high in pieces:
        stop = start + len(new_bytes) // 8
        yield nodes, start, new_bytes, costs[nodes][start:stop].tobytes(), low, high
