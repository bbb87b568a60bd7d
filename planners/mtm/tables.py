"""Tables of projected costs: where the offline half leaves its results and `mtm_aware` finds them.

A folder: `parameters.json` (what was asked, how exact the answer is, and how to tell that all of it is whole) and
`costs/nodes=N/*.parquet` with a row for each balanced partitioning for N nodes: `cuts` (n + 1 of them, idle nodes at
the end) and `cost`. Each file is in the order of costs, in small row groups. Files are memory-mapped, and a row group
is read when a search comes to it; the cheap ones come first, so that most are never touched. Damage is a BadRequest,
when a table is opened or when it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planners import decoding
from planners.errors import BadRequest
from planners.intervals.partitionings import Cuts
from planners.mtm import table_files
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import Projected
from planners.mtm.table_files import ADVICE, RowGroup, Seal, arrow

FORMAT = 2
ROW_GROUP = 16_384


@dataclass(frozen=True, eq=False)
class CostRows:
    """Some partitionings of a table, in the order of their costs; they are read when asked for."""

    least: float
    read: Callable[[], tuple[Cuts, NDArray[np.float64]]]


class Tables:
    """Projected costs of every balanced partitioning, with the problem that they were computed for."""

    def __init__(self, problem: MTMProblem, error: float, rows: dict[int, list[CostRows]]) -> None:
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
        with decoding.naming(folder / "parameters.json", ADVICE):
            problem = MTMProblem.of(decoding.mapping(parameters, "problem"))
            error = float(decoding.number(parameters, "error"))
            counts = decoding.mapping(parameters, "partitionings")
            promised = {nodes: decoding.whole(counts, str(nodes)) for nodes in problem.counts}
            seals = _seals(parameters)
        rows = {nodes: _rows(folder, nodes, seals, problem, promised[nodes]) for nodes in problem.counts}
        return cls(problem, error, rows)

    def rows(self, nodes: int) -> list[CostRows]:
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
    seals: dict[str, Seal] = {}
    for nodes in projected.problem.counts:
        cuts, costs = _in_memory(projected, nodes).read()
        target = folder / "costs" / f"nodes={nodes}"
        target.mkdir(parents=True, exist_ok=True)
        table_files.write(target / "part-0.parquet", arrow(cuts, costs), ROW_GROUP)
        seals[f"nodes={nodes}/part-0.parquet"] = table_files.seal_of(target / "part-0.parquet")
    parameters = parameters_of(projected.problem, projected.error, projected.iterations, seals)
    (folder / "parameters.json").write_text(json.dumps(parameters))


def parameters_of(problem: MTMProblem, error: float, iterations: int, seals: Mapping[str, Seal]) -> dict[str, object]:
    """What stands beside a table, whose files have these seals (by name, under `costs`)."""
    grid = problem.grid
    grid_error = 0.0 if grid is None else grid.cost_error(problem.tasks, max(problem.counts), problem.gamma)
    parameters = {
        "format": FORMAT,
        "problem": problem.parameters(),
        "partitionings": {str(nodes): problem.partitionings(nodes).count for nodes in problem.counts},
        "error": error,
        "grid_error": grid_error,
        "iterations": iterations,
        "files": {name: sealed.as_json() for name, sealed in seals.items()},
    }
    return parameters | {"checksum": checksum(parameters)}


def checksum(parameters: Mapping[str, object]) -> str:
    """The digest of all other parameters; their order and the spaces between them do not matter."""
    others = {name: value for name, value in parameters.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def read_parameters(folder: Path) -> dict[str, object]:
    """The parameters beside a table, known to be those that were written."""
    path = folder / "parameters.json"
    try:
        parameters = decoding.read_object(path, ADVICE)
    except FileNotFoundError:
        raise BadRequest(
            f"there are no tables in {folder}: no parameters.json. `python -m planners.spark run` writes it, when "
            "all else is done; tables on another file system are copied here first"
        ) from None
    if type(parameters.get("format")) is not int or parameters["format"] != FORMAT:
        raise BadRequest(f"the tables in {folder} are of another format than {FORMAT}: make them anew")
    if parameters.get("checksum") != checksum(parameters):
        raise BadRequest(f"{path} is not as it was written (its checksum is another): {ADVICE}")
    return parameters


def _seals(parameters: Mapping[str, object]) -> dict[str, Seal]:
    files = decoding.mapping(parameters, "files")
    return {name: Seal.of_json(decoding.mapping(files, name)) for name in files}


def _in_memory(projected: Projected, nodes: int) -> CostRows:
    cuts = projected.problem.in_tasks(projected.problem.partitionings(nodes).cuts())
    costs = np.asarray(projected.costs[nodes])
    rows = _in_order(cuts, costs)
    return CostRows(float(rows[1][0]), lambda: rows)


def _in_order(cuts: Cuts, costs: NDArray[np.float64]) -> tuple[Cuts, NDArray[np.float64]]:
    """By cost: searches rely on it, so it is not left to whoever wrote the file. Costs little if it is so already."""
    if (np.diff(costs) >= 0).all():
        return cuts, costs
    order = np.argsort(costs, kind="stable")
    return np.ascontiguousarray(cuts[order]), costs[order]


def _rows(folder: Path, nodes: int, seals: Mapping[str, Seal], problem: MTMProblem, promised: int) -> list[CostRows]:
    """The row groups for a node count: of all files that were written, and no other."""
    place = f"nodes={nodes}"
    expected = {name for name in seals if name.rpartition("/")[0] == place}
    there = {f"{place}/{path.name}" for path in (folder / "costs" / place).glob("*.parquet")}
    if not there:
        raise BadRequest(f"{folder} has no table for {nodes} nodes: it is incomplete, copy or make it anew")
    if there != expected:
        raise BadRequest(f"{folder}/costs has other files than were written, {_few(there ^ expected)}: {ADVICE}")
    groups = [
        group
        for name in sorted(expected)
        for group in table_files.groups(folder / "costs" / name, seals[name], nodes, len(problem.tasks))
    ]
    if sum(group.rows for group in groups) != promised or not promised:
        raise BadRequest(f"{folder} has other than {promised:,} partitionings for {nodes} nodes: {ADVICE}")
    return [CostRows(group.least, partial(_read_in_order, group)) for group in groups]


def _read_in_order(group: RowGroup) -> tuple[Cuts, NDArray[np.float64]]:
    return _in_order(*group.read())


def _few(names: Iterable[str]) -> str:
    first = sorted(names)
    return ", ".join(first[:3]) + (" ..." if len(first) > 3 else "")
