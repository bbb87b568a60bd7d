"""Stage 4: the projected costs, sweep by sweep. Executors share the work of each, and nothing waits for one of them.

A sweep needs the costs of all partitionings, eight bytes each, and makes new ones for some. The costs are there once
for each machine (see `sharing`); the partitionings themselves are not sent, since every task can make those it needs.

What a sweep chose is its checkpoint, from which a later run goes on. Before the next sweep the costs of choosing so for
ever are settled (see `mtm.policy`). Only partitionings that some choice leads to depend on each other, one in twenty in
our measurements: those come to the driver, which solves for them; the others follow in parallel. Besides these the
driver learns, for each node count, the least and the greatest change: that gives the bound on the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Row, SparkSession

from planners.mtm.policy import evaluate_lasting
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import Correction, Costs, Sweep, close_enough, project
from planners.spark.enumeration import ranges
from planners.spark.folder import Folder
from planners.spark.sharing import Lasting, SharedCosts, Sharing, first_ranks, pieces, swept_parts

CHECKPOINT = (
    "nodes int, start long, swept binary, direct binary, targets binary, chosen binary, low double, high double"
)
KEPT = 2  # checkpoints: the last, and the one before in case the last is damaged
SMALL = 20_000  # partitionings that one process has solved for before Spark has begun
EACH = 2  # tasks for each core: machines vary, and each task costs a core some 60 ms; what sources cost is dealt evenly

Swept = tuple[int, int, bytes, bytes, bytes, bytes, float, float]  # a row of a checkpoint


@dataclass(frozen=True)
class Solution:
    """Where the last checkpoint is, what to add to its swept costs, and how exact they are then."""

    table: DataFrame  # with nodes, start, swept
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

    `tasks` is how many share a sweep: unless given, some for each core that Spark knows of; and what is small is solved
    for here, without tasks. `report` is told of each sweep.
    """
    total = problem.check(limit)
    checkpoints = Checkpoints(folder, problem)
    done = resumed = checkpoints.last()
    if tasks is None and not done and total <= SMALL:
        return _at_once(spark, problem, tolerance, limit, report)
    tasks = tasks or max(1, min(EACH * spark.sparkContext.defaultParallelism, total // 1024))
    with Sharing(folder, problem) as sharing:
        while True:
            costs = None
            if done:
                found = checkpoints.read(done)
                correction = _correction(problem, found)
                report(done, correction.error)
                if close_enough(problem, correction.error, tolerance, done):
                    return Solution(found, correction, done, resumed)
                costs = sharing.share(found, _lasting(found, problem))
            shares = spark.sparkContext.parallelize(_shares(problem, tasks), tasks)
            rows = shares.mapPartitions(partial(_sweep, problem, costs))
            checkpoints.write(spark.createDataFrame(rows, CHECKPOINT, verifySchema=False), done + 1)
            done += 1


class Checkpoints:
    """Finished sweeps in a folder, by number, kept apart by the problem that they belong to."""

    def __init__(self, folder: Folder, problem: MTMProblem) -> None:
        self._folder = folder
        self._place = ("checkpoints", problem.fingerprint)

    def last(self) -> int:
        """The last finished one; 0 if there is none."""
        names = [name for name in self._folder.children(*self._place) if name.startswith("sweep-")]
        finished = [name for name in names if self._folder.complete(*self._place, name)]
        return max((int(name.removeprefix("sweep-")) for name in finished), default=0)

    def read(self, sweep: int) -> DataFrame:
        return self._folder.spark.read.schema(CHECKPOINT).parquet(self._folder.path(*self._place, _name(sweep)))

    def write(self, table: DataFrame, sweep: int) -> None:
        """Spark marks a table as finished when all of it is there; older ones are then of no more use."""
        table.write.mode("overwrite").parquet(self._folder.path(*self._place, _name(sweep)))
        if sweep > KEPT:
            self._folder.delete(*self._place, _name(sweep - KEPT))


def _name(sweep: int) -> str:
    return f"sweep-{sweep:06d}"


def _at_once(
    spark: SparkSession, problem: MTMProblem, tolerance: float, limit: int, report: Callable[[int, float], None]
) -> Solution:
    """What is small, solved for in this process; as a table of the same form."""
    solved = project(problem, tolerance, limit)
    report(solved.iterations, solved.error)
    rows = [(nodes, 0, bytearray(solved.costs[nodes].tobytes())) for nodes in problem.counts]
    table = spark.createDataFrame(rows, "nodes int, start long, swept binary")
    return Solution(table, Correction(dict.fromkeys(problem.counts, 0.0), solved.error), solved.iterations, 0)


def _correction(problem: MTMProblem, checkpoint: DataFrame) -> Correction:
    """The ends of the changes in each range come to the driver; there are some thousand ranges at most."""
    ends = checkpoint.select("nodes", "low", "high").collect()
    low = {nodes: min(row.low for row in ends if row.nodes == nodes) for nodes in problem.counts}
    high = {nodes: max(row.high for row in ends if row.nodes == nodes) for nodes in problem.counts}
    return Correction.after(problem, low, high)


def _shares(problem: MTMProblem, tasks: int) -> list[list[tuple[int, int, int]]]:
    """Ranges of sources for each task: many and in turn, since what a source costs varies slowly with its rank."""
    total = sum(problem.partitionings(nodes).count for nodes in problem.counts)
    parts = ranges(problem, max(64, min(4096, total // (16 * tasks))))
    return [parts[task::tasks] for task in range(tasks)]


@lru_cache(maxsize=1)
def _sweeper(problem: MTMProblem) -> Sweep:
    """Executors' processes live on, and the trees of targets are the same in every sweep."""
    return Sweep(problem)


def _sweep(
    problem: MTMProblem, shared: SharedCosts | None, shares: Iterator[list[tuple[int, int, int]]]
) -> Iterator[Swept]:
    """A task's share of a sweep. Before the first one, nothing is known to cost anything."""
    sweep, firsts = _sweeper(problem), first_ranks(problem)
    costs = _zeros(problem) if shared is None else shared.by_count(problem)
    for nodes, start, stop in (piece for work in shares for piece in work):
        new, policy = sweep(nodes, problem.partitionings(nodes).cuts(start, stop), costs)
        change = new - costs[nodes][start:stop]
        everywhere = np.where(policy.targets >= 0, policy.targets + firsts[None, :-1], -1)
        chosen = np.unique(everywhere[everywhere >= 0]).tobytes()
        parts = (new.tobytes(), policy.direct.tobytes(), everywhere.tobytes(), chosen)
        yield nodes, start, *parts, float(change.min()), float(change.max())


def _zeros(problem: MTMProblem) -> Costs:
    return {nodes: np.zeros(problem.partitionings(nodes).count) for nodes in problem.counts}


def _lasting(checkpoint: DataFrame, problem: MTMProblem) -> Lasting:
    """The partitionings that some choice leads to, and the costs of choosing so for ever."""
    found = checkpoint.select("chosen").collect()
    ranks = np.unique(np.concatenate([np.frombuffer(row.chosen, np.int64) for row in found]))
    firsts = first_ranks(problem)
    picked = pieces(checkpoint).flatMap(partial(_pick, problem, firsts, ranks))
    rank, guess, direct, targets = (np.array(column) for column in zip(*sorted(picked.collect()), strict=True))
    assert np.array_equal(rank, ranks), "a partitioning that some choice leads to was not swept"
    row = np.searchsorted(firsts, ranks, side="right") - 1
    places = np.where(targets >= 0, np.searchsorted(ranks, targets), -1)
    weights = problem.gamma * problem.transitions.matrix
    return Lasting(ranks, evaluate_lasting(row, direct, places, weights, guess))


def _pick(
    problem: MTMProblem, firsts: NDArray[np.int64], ranks: NDArray[np.int64], row: Row
) -> list[tuple[int, float, float, list[int]]]:
    """Those of a piece that last: rank, swept cost, direct cost, targets."""
    begin = int(firsts[problem.counts.index(row.nodes)]) + row.start
    swept, direct, targets = swept_parts(problem, row)
    mine = ranks[np.searchsorted(ranks, begin) : np.searchsorted(ranks, begin + len(swept))]
    here = mine - begin
    columns = (mine.tolist(), swept[here].tolist(), direct[here].tolist(), targets[here].tolist())
    return list(zip(*columns, strict=True))
