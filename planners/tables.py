"""Tables of projected costs: where the offline half leaves its results and `mtm_aware` finds them.

A folder: `parameters.json` (what was asked, and how exact the answer is) and `costs/nodes=N/*.parquet` with a row for
each balanced partitioning for N nodes: `cuts` (n + 1 of them, idle nodes at the end) and `cost`. Each file is in the
order of costs, in small row groups. Files are memory-mapped, and a row group is read when a search comes to it; the
cheap ones come first, so that most are never touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from planners.errors import BadRequest
from planners.partitionings import Cuts
from planners.problem import Problem
from planners.projected import Projected

FORMAT = 1
ROW_GROUP = 16_384


@dataclass(frozen=True, eq=False)
class Rows:
    """Some partitionings of a table, in the order of their costs; they are read when asked for."""

    least: float
    read: Callable[[], tuple[Cuts, NDArray[np.float64]]]


class Tables:
    """Projected costs of every balanced partitioning, with the problem that they were computed for."""

    def __init__(self, problem: Problem, error: float, rows: dict[int, list[Rows]]) -> None:
        self.problem = problem
        self.error = error
        self._rows = {nodes: sorted(some, key=lambda each: each.least) for nodes, some in rows.items()}

    @classmethod
    def of(cls, projected: Projected) -> Tables:
        """The tables of costs that are in memory."""
        rows = {nodes: [_in_memory(projected, nodes)] for nodes in projected.problem.counts}
        return cls(projected.problem, projected.error, rows)

    @classmethod
    def open(cls, folder: str | Path) -> Tables:
        """The tables in a folder, memory-mapped. O(row groups): it reads where they are, not what is in them."""
        folder = Path(folder)
        parameters = read_parameters(folder)
        problem = Problem.of(parameters["problem"])
        rows = {nodes: list(_row_groups(folder, nodes)) for nodes in problem.counts}
        for nodes, groups in rows.items():
            if not groups:
                raise BadRequest(f"{folder} has no table for {nodes} nodes: it is incomplete, make it anew")
        return cls(problem, parameters["error"], rows)

    def rows(self, nodes: int) -> list[Rows]:
        """The partitionings for so many nodes, in groups, by the least cost in each."""
        if nodes not in self._rows:
            raise BadRequest(
                f"the tables are for {list(self._rows)} nodes, not for {nodes}: plan this step with ssm, or make "
                "tables from a matrix that knows this node count"
            )
        return self._rows[nodes]

    def cost(self, nodes: int, cuts: list[int]) -> float:
        """The projected cost of one partitioning, found by looking at all: for people."""
        wanted = np.array([*cuts, *[cuts[-1]] * (nodes + 1 - len(cuts))])
        for group in self.rows(nodes):
            rows, costs = group.read()
            found = np.flatnonzero((rows == wanted).all(axis=1))
            if len(found):
                return float(costs[found[0]])
        raise BadRequest(f"{list(cuts)} is not among the balanced partitionings for {nodes} nodes")


def write(folder: str | Path, projected: Projected) -> None:
    """Writes tables that are in memory. The parameters come last: a folder without them is no table."""
    folder = Path(folder)
    for nodes in projected.problem.counts:
        cuts, costs = _in_memory(projected, nodes).read()
        target = folder / "costs" / f"nodes={nodes}"
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(arrow(cuts, costs), target / "part-0.parquet", row_group_size=ROW_GROUP)
    (folder / "parameters.json").write_text(
        json.dumps(parameters_of(projected.problem, projected.error, projected.iterations))
    )


def arrow(cuts: Cuts, costs: NDArray[np.float64]) -> pa.Table:
    """Rows as they are stored. Never unsigned: Spark would read decimals."""
    offsets = np.arange(len(cuts) + 1, dtype=np.int32) * cuts.shape[1]
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(cuts).ravel()))
    return pa.table({"cuts": lists, "cost": pa.array(costs)})


def parameters_of(problem: Problem, error: float, iterations: int) -> dict[str, Any]:
    """What stands beside a table."""
    grid = problem.grid
    grid_error = 0.0 if grid is None else grid.cost_error(problem.tasks, max(problem.counts), problem.gamma)
    return {
        "format": FORMAT,
        "problem": problem.parameters(),
        "partitionings": {nodes: problem.partitionings(nodes).count for nodes in problem.counts},
        "error": error,
        "grid_error": grid_error,
        "iterations": iterations,
    }


def read_parameters(folder: Path) -> dict[str, Any]:
    """The parameters beside a table."""
    try:
        parameters = json.loads((folder / "parameters.json").read_text())
    except FileNotFoundError:
        raise BadRequest(
            f"there are no tables in {folder}: no parameters.json. `python -m planners.spark run` writes it, when "
            "all else is done; tables on another file system are copied here first"
        ) from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"{folder}/parameters.json is not JSON ({error}): make the tables anew") from None
    if not isinstance(parameters, dict) or parameters.get("format") != FORMAT:
        raise BadRequest(f"the tables in {folder} are of another format than {FORMAT}: make them anew")
    return dict(parameters)


def _in_memory(projected: Projected, nodes: int) -> Rows:
    cuts = projected.problem.in_tasks(projected.problem.partitionings(nodes).cuts())
    costs = np.asarray(projected.costs[nodes])
    rows = _in_order(cuts, costs)
    return Rows(float(rows[1][0]), lambda: rows)


def _in_order(cuts: Cuts, costs: NDArray[np.float64]) -> tuple[Cuts, NDArray[np.float64]]:
    """By cost: searches rely on it, so it is not left to whoever wrote the file. Costs little if it is so already."""
    if (np.diff(costs) >= 0).all():
        return cuts, costs
    order = np.argsort(costs, kind="stable")
    return np.ascontiguousarray(cuts[order]), costs[order]


def _row_groups(folder: Path, nodes: int) -> Iterator[Rows]:
    for path in sorted((folder / "costs" / f"nodes={nodes}").glob("*.parquet")):
        file = pq.ParquetFile(path, memory_map=True)
        if not {"cuts", "cost"} <= set(file.schema_arrow.names):
            raise BadRequest(f"{path} is not a table of projected costs: it has the columns {file.schema_arrow.names}")
        leaf = next(i for i in range(len(file.schema)) if file.schema.column(i).path == "cost")
        for group in range(file.num_row_groups):
            statistics = file.metadata.row_group(group).column(leaf).statistics
            known = statistics is not None and statistics.has_min_max
            yield Rows(float(statistics.min) if known else 0.0, _reader(file, group, nodes))  # no cost is below zero


def _reader(
    file: pq.ParquetFile, group: int, nodes: int
) -> Callable[[], tuple[Cuts, NDArray[np.float64]]]:
    def read() -> tuple[Cuts, NDArray[np.float64]]:
        table = file.read_row_group(group, columns=["cuts", "cost"])
        cuts = table["cuts"].combine_chunks().flatten().to_numpy().astype(np.int16, copy=False)
        return _in_order(cuts.reshape(-1, nodes + 1), table["cost"].to_numpy())

    return read
