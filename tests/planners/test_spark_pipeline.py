"""The pipeline on real Spark: each stage against what it should be, all of them together, and a run that goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planners.errors import BadRequest
from planners.model import Intervals
from planners.mtm.choice import Tables, mtm_choice
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import dense
from planners.mtm.transitions import from_history
from planners.spark import enumeration, history, iteration, logs, output
from planners.spark.command import main
from planners.spark.folder import Folder
from tests.planners import bellman
from tests.planners.test_mtm_projection import EXAMPLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[int, int, int, int, float]  # interval, bin, records, bytes, cost


def write_log(path: Path, rows: Sequence[Row], **replaced: object) -> str:
    names = ["interval", "bin", "records", "bytes", "cost"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) | replaced
    pq.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)
    return str(path)


def workload(counts: Sequence[int]) -> list[Row]:
    """A log whose intervals need so many nodes of capacity 10, over the bins of the example. Bin 9 moves every time, so
    that two workers report it; its last size is what counts."""
    share = np.array(bellman.LOADS) / sum(bellman.LOADS)
    rows = []
    for interval, count in enumerate(counts):
        cost = 10 * (count - 0.5) * share
        size = np.array(bellman.SIZES) + (len(counts) - 1 - interval)
        rows += [(interval, b, 1, int(size[b]), float(cost[b])) for b in range(9)]
        rows += [(interval, 9, 1, int(size[9]), float(cost[9] / 2)), (interval, 9, 1, 1, float(cost[9] / 2))]
    return rows


def test_from_logs_to_a_choice(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = [2, 3, 3, 4, 3, 2, 3, 4, 4, 3]
    written = write_log(tmp_path / "logs.parquet", workload(counts))
    out = tmp_path / "out"
    options = ["--logs", written, "--nodes", "2:4", "--capacity", "10", "--tau", "0.5", "--tasks", "3"]
    assert main(["run", "--out", str(out), *options], start=lambda _: spark) == 0
    assert "43 together" in capsys.readouterr().out

    tables = Tables.open(out)
    assert tables.problem.tasks.sizes.tolist() == list(bellman.SIZES)
    assert np.allclose(tables.problem.tasks.loads / sum(tables.problem.tasks.loads), np.array(bellman.LOADS) / 51)
    assert tables.problem.transitions == from_history(counts)
    limits = bellman.mean_limits(bellman.LOADS, (2, 3, 4), 0.5)
    matrix = from_history(counts).matrix.tolist()
    expected = bellman.projected(bellman.SIZES, bellman.LOADS, matrix, limits, 0.8)
    for (nodes, cuts), cost in expected.items():
        assert tables.cost(nodes, list(cuts)) == pytest.approx(cost, abs=1e-6)
    choice = mtm_choice(Intervals([0, 4, 7, 10]), nodes=4, tables=tables)
    assert choice.total == pytest.approx(
        min(bellman.cost((0, 4, 7, 10), cuts, bellman.SIZES) + 0.8 * c for (n, cuts), c in expected.items() if n == 4)
    )
    parameters = json.loads((out / "parameters.json").read_text())
    assert parameters["partitionings"] == {"2": 5, "3": 11, "4": 27} and parameters["error"] <= 45e-9


@pytest.fixture
def collected(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of every table that comes to the driver."""
    kind, seen = type(spark.range(1)), []
    collect = kind.collect
    monkeypatch.setattr(kind, "collect", lambda table: seen.append(table.columns) or collect(table))
    return seen


@pytest.mark.parametrize("shared", ["file", "broadcast"])
def test_projected_costs_and_going_on_after_a_failure(
    spark: SparkSession, tmp_path: Path, collected: list[list[str]], shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shared == "broadcast":
        monkeypatch.setattr("planners.spark.sharing.local_path", lambda address: None)
    folder = Folder(spark, str(tmp_path))
    seen: list[int] = []

    def fail_after_two(sweep: int, error: float) -> None:
        seen.append(sweep)
        if sweep == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        iteration.solve(spark, EXAMPLE, folder, tolerance=1e-12, tasks=3, report=fail_after_two)
    half_written = tmp_path / "checkpoints" / EXAMPLE.fingerprint / "sweep-000003"
    half_written.mkdir()
    (half_written / "part-0.parquet").write_bytes(b"half of it")
    solution = iteration.solve(spark, EXAMPLE, folder, tolerance=1e-12, report=lambda sweep, error: seen.append(sweep))
    assert solution.resumed == 2 and seen == [1, 2, *range(2, solution.iterations + 1)]
    output.write(solution, EXAMPLE, folder)
    wanted = (["nodes", "low", "high"], ["chosen"])  # never the costs of all
    assert collected and all(columns in wanted for columns in collected)
    assert not list(tmp_path.rglob("costs-*"))  # the file that was shared is gone
    tables, exact = Tables.open(tmp_path), dense(EXAMPLE)
    for nodes in EXAMPLE.counts:
        for cuts, cost in zip(EXAMPLE.partitionings(nodes).cuts().tolist(), exact.costs[nodes], strict=True):
            assert tables.cost(nodes, cuts) == pytest.approx(cost, abs=1e-9)
    assert mtm_choice(Intervals([0, 4, 7, 10]), nodes=4, tables=tables).total == pytest.approx(8.514526, abs=1e-6)
    another = MTMProblem(EXAMPLE.tasks, EXAMPLE.transitions, EXAMPLE.tau, gamma=0.5)
    assert iteration.Checkpoints(folder, another).last() == 0  # a checkpoint is of one problem


def test_what_is_small_is_solved_for_without_tasks(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path))
    solution = iteration.solve(spark, EXAMPLE, folder, tolerance=1e-12)
    output.write(solution, EXAMPLE, folder)
    assert not (tmp_path / "checkpoints").exists()
    assert mtm_choice(Intervals([0, 4, 7, 10]), nodes=4, tables=Tables.open(tmp_path)).total == pytest.approx(
        8.514526, abs=1e-6
    )


def test_enumeration_is_that_of_one_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "CHUNK", 10)  # so that there are ranges to share
    rows = enumeration.partitionings(spark, EXAMPLE, limit=43).collect()
    found = {(row.nodes, row.rank): list(row.cuts) for row in rows}
    assert len(rows) == len(found) == 43
    for nodes in EXAMPLE.counts:
        for rank, cuts in enumerate(EXAMPLE.partitionings(nodes).cuts().tolist()):
            assert found[nodes, rank] == cuts


def test_the_need_for_nodes_as_in_the_papers(spark: SparkSession, tmp_path: Path) -> None:
    costs = [40.0, 10.0, 25.0, 24.0, 90.0]
    table = spark.read.parquet(write_log(tmp_path / "l", [(7 + i, 0, 1, 1, cost) for i, cost in enumerate(costs)]))
    rows = logs.history(table, logs.Need(8, 16)).orderBy("interval").collect()
    assert [(row.interval, row.nodes) for row in rows] == [(7, 11), (8, 8), (9, 10), (10, 9), (11, 16)]
    matrix = history.transitions(logs.history(table, logs.Need(8, 16)))
    assert matrix == from_history([11, 8, 10, 9, 16])
    scattered = logs.history(table, logs.Need(8, 16)).repartition(3)  # an order that is not that of intervals
    assert history.transitions(scattered) == matrix and "Window" not in scattered._jdf.queryExecution().toString()
    assert history.from_table(history.to_table(spark, matrix)) == matrix


GOOD: list[Row] = [(0, 0, 1, 1, 1.0), (0, 1, 1, 1, 1.0), (1, 0, 1, 1, 1.0)]


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"bytes": None}, "columns interval, bin, records, bytes, cost, and bytes is missing; there are interval, bin"),
        ({"cost": ["a", "b", "c"]}, "the column cost holds string, not numbers"),
        ({"bin": [0.0, 1.0, 0.0]}, "the column bin holds double, not whole numbers"),
        ({"bytes": [1, -5, -6]}, "in 2 of 3 rows bytes is negative"),
        ({"cost": [1.0, None, -1.0]}, "in 1 of 3 rows cost is null; in 1 of 3 rows cost is negative"),
        ({"cost": [1.0, float("nan"), float("inf")]}, "in 2 of 3 rows cost is not finite"),
        ({"bin": [0, 1, 5]}, "in 1 of 3 rows bin is 5 or more"),
    ],
)
def test_logs_that_cannot_be_used(
    spark: SparkSession, tmp_path: Path, replaced: dict[str, object], message: str
) -> None:
    table = spark.read.parquet(write_log(tmp_path / "logs.parquet", GOOD, **replaced))
    with pytest.raises(BadRequest) as refused:
        logs.check(table, bins=5)
    assert message in str(refused.value)


def test_a_command_that_cannot_go_on_says_so(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert main([*arguments, "--out", str(tmp_path)], start=lambda _: spark) == 2
        return capsys.readouterr().err

    assert "no logs at" in refused("workload", "--logs", str(tmp_path / "nowhere"))
    assert "history is not there, or not complete: `planners.spark workload` makes it" in refused("transitions")
    rows = [(task, float(bellman.SIZES[task]), float(bellman.LOADS[task])) for task in range(10)]
    spark.createDataFrame(rows, "task long, size double, load double").write.parquet(str(tmp_path / "tasks"))
    bad = spark.createDataFrame([(2, 3, 0.5), (3, 2, 1.0)], "now int, then int, probability double")
    bad.write.parquet(str(tmp_path / "transitions"))
    assert "the row of 2 nodes sums to 0.5, not to 1" in refused("project", "--tau", "0.5")
    good = spark.createDataFrame([(2, 4, 1.0), (4, 2, 1.0)], "now int, then int, probability double")
    good.write.mode("overwrite").parquet(str(tmp_path / "transitions"))
    assert "32 balanced partitionings, and 20 is the limit" in refused("project", "--tau", "0.5", "--limit", "20")
    assert "no cut of the tasks into 4 intervals" in refused("project", "--tau", "0.2")
    assert not (tmp_path / "checkpoints").exists()
