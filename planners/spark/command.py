"""The command line: `python -m planners.spark STAGE --out FOLDER ...`; `run` is all stages, one after the other."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from planners.errors import BadRequest, PlannerError
from planners.model import Tasks
from planners.mtm.grids import coarse
from planners.mtm.problem import MTMProblem
from planners.mtm.transitions import Transitions
from planners.spark import enumeration, history, iteration, logs, output, session
from planners.spark.folder import Folder

OK, REFUSED = 0, 2

EXAMPLES = """\
examples:
  python -m planners.spark run --logs logs.parquet --out tables --nodes 8:16 --tau 0.4 --gamma 0.8
  python -m planners.spark count --out tables --tau 0.4          how many partitionings that would be
  spark-submit --master spark://host:7077 planners/spark/__main__.py run --logs ... --out hdfs:///tables ...

The stages, each of which reads from FOLDER what those before it left there:
  workload     logs to FOLDER/tasks (task, size, load) and FOLDER/history (interval, nodes)
  transitions  FOLDER/history to FOLDER/transitions (now, then, probability)
  enumerate    to FOLDER/partitionings (nodes, rank, cuts); `run` has no need of them in writing
  project      to FOLDER/checkpoints, one for each sweep; an interrupted run goes on from the last
  tables       to FOLDER/costs and FOLDER/parameters.json, for planners.Tables.open
"""


@dataclass(frozen=True)
class Stage:
    """One stage at work: what was asked for, and where."""

    options: argparse.Namespace
    spark: SparkSession
    folder: Folder

    def workload(self) -> None:
        options = self.options
        need = _need(options)
        table = _read_logs(self.spark, options.logs)
        logs.check(table, options.bins)
        found = logs.tasks(table, options.bins)
        _write(_task_table(self.spark, found), self.folder.path("tasks"))
        _write(logs.history(table, need).coalesce(1), self.folder.path("history"))
        _say(f"{len(found)} bins, of {found.total_size:g} bytes and a load of {found.total_load:g} in an interval")

    def transitions(self) -> None:
        past = self.folder.read("history", columns=("interval", "nodes"), made_by="planners.spark workload")
        matrix = history.transitions(past, self.options.staying)
        _write(history.to_table(self.spark, matrix), self.folder.path("transitions"))
        _say(f"transitions between {', '.join(map(str, matrix.counts))} nodes")

    def count(self) -> None:
        problem = self._problem()
        for nodes in problem.counts:
            _say(f"{nodes} nodes: {problem.partitionings(nodes).count:,} balanced partitionings")
        _say(f"{problem.check(self.options.limit):,} together, within the limit of {self.options.limit:,}")

    def enumerate(self) -> None:
        problem = self._problem()
        _write(enumeration.partitionings(self.spark, problem, self.options.limit), self.folder.path("partitionings"))

    def project(self) -> iteration.Solution:
        self.count()
        options = self.options
        return iteration.solve(
            self.spark,
            self._problem(),
            self.folder,
            tolerance=options.tolerance,
            limit=options.limit,
            tasks=options.tasks,
            report=lambda sweep, error: _say(f"sweep {sweep}: within {error:.3g}"),
        )

    def tables(self) -> None:
        output.write(self.project(), self._problem(), self.folder)
        _say(f"tables in {self.folder.address}; planners.Tables.open reads them, from a file system that can be mapped")

    def run(self) -> None:
        self.workload()
        self.transitions()
        self.tables()

    def _problem(self) -> MTMProblem:
        options = self.options
        if options.tau is None:
            raise BadRequest("--tau is needed: how far above the mean the load of a node may be")
        table = self.folder.read("tasks", columns=("task", "size", "load"), made_by="planners.spark workload")
        found = _tasks_of(table)
        grid = None if options.grid is None else coarse(found, options.grid)
        return MTMProblem(found, self._matrix(), options.tau, options.gamma, grid)

    def _matrix(self) -> Transitions:
        columns, made_by = ("now", "then", "probability"), "planners.spark transitions"
        return history.from_table(self.folder.read("transitions", columns=columns, made_by=made_by))


STAGES = ("run", "workload", "transitions", "count", "enumerate", "project", "tables")


def main(arguments: Sequence[str] | None = None, start: Callable[[str | None], SparkSession] = session.start) -> int:
    """Runs the command and returns its exit code. A session that was given (by tests) is not stopped."""
    options = _parser().parse_args(arguments)
    try:
        _check_options(options)
        spark = start(options.master)
    except PlannerError as error:
        return _refuse(error)
    try:
        getattr(Stage(options, spark, Folder(spark, options.out)), options.stage)()
    except PlannerError as error:
        return _refuse(error)
    finally:
        if start is session.start:
            spark.stop()
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m planners.spark",
        description="From workload logs to the tables of projected costs that planners.mtm_aware reads.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stage", choices=STAGES, metavar="STAGE", help=" | ".join(STAGES))
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where stages leave and find their tables")
    parser.add_argument("--master", help="local[*] unless given; under spark-submit, give it there")
    source = parser.add_argument_group("workload")
    source.add_argument("--logs", metavar="PARQUET", help="with the columns interval, bin, records, bytes, cost")
    source.add_argument("--bins", type=int, help="how many there are; without it, up to the last that is in the logs")
    source.add_argument("--nodes", type=_range, default=(8, 16), metavar="LOW:HIGH", help="default: 8:16, as the paper")
    source.add_argument("--capacity", type=float, help="cost that a node bears in an interval; else as in the paper")
    parser.add_argument("--staying", action="store_true", help="transitions: count staying as well (Table 4)")
    problem = parser.add_argument_group("count, enumerate, project, tables")
    problem.add_argument("--tau", type=float, help="how far above the mean the load of a node may be")
    problem.add_argument("--gamma", type=float, default=0.8, help="what a later migration counts for (default: 0.8)")
    problem.add_argument("--grid", type=int, metavar="CELLS", help="allow cuts on a grid of so many cells only")
    problem.add_argument("--limit", type=int, default=20_000_000, help="most partitionings (default: 20 million)")
    problem.add_argument("--tolerance", type=float, default=1e-9, help="error as a share of all state (default: 1e-9)")
    problem.add_argument("--tasks", type=int, help="how many tasks share a sweep (default: twice the cores)")
    return parser


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    return int(low), int(high or low)


def _check_options(options: argparse.Namespace) -> None:
    """What can be known to be wrong before Spark starts, which takes seconds."""
    if options.stage in ("run", "workload"):
        if options.logs is None:
            raise BadRequest("--logs is needed: a Parquet file or folder of workload logs")
        _need(options)
    if options.stage not in ("workload", "transitions"):
        if options.tau is None:
            raise BadRequest("--tau is needed: how far above the mean the load of a node may be")
        MTMProblem(Tasks([1], [1]), Transitions([1], [[1.0]]), options.tau, options.gamma)
        if not 0 < options.tolerance < 1:
            raise BadRequest(f"--tolerance is a share of all state, between 0 and 1, not {options.tolerance}")


def _need(options: argparse.Namespace) -> logs.Need:
    low, high = options.nodes
    return logs.Need(low, high, options.capacity)


def _read_logs(spark: SparkSession, address: str) -> DataFrame:
    folder = Folder(spark, address)
    if not folder.exists():
        raise BadRequest(f"there are no logs at {address}")
    return spark.read.parquet(address)


def _task_table(spark: SparkSession, found: Tasks) -> DataFrame:
    rows = zip(range(len(found)), found.sizes.tolist(), found.loads.tolist(), strict=True)
    return spark.createDataFrame(list(rows), "task long, size double, load double").coalesce(1)


def _tasks_of(table: DataFrame) -> Tasks:
    rows = sorted((row.task, row.size, row.load) for row in table.collect())
    if [row[0] for row in rows] != list(range(len(rows))):
        raise BadRequest("the table of tasks must have a row for each of 0, 1, 2, ...: it has gaps, or one twice")
    return Tasks(np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))


def _write(table: DataFrame, address: str) -> None:
    table.write.mode("overwrite").parquet(address)


def _say(line: str) -> None:
    print(line, flush=True)


def _refuse(error: PlannerError) -> int:
    print(f"planners.spark: {error}", file=sys.stderr)
    return REFUSED
