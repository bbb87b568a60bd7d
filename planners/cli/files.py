"""Requests and plans as files: JSON for people, Parquet for pipelines.

A request in JSON is an object with `sizes` and `loads`, and with `cuts` (and `nodes`, if node i does not own the i-th
interval) or with `map`, by task the node. In Parquet it is a table with a row for each task: the columns `size`, `load`
and `node`, and `bin` if rows are not in the order of tasks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from planners import decoding
from planners.errors import BadRequest
from planners.model import Amounts, Assignment, BinMap, Intervals, Plan, Tasks

COLUMNS = ("size", "load", "node")
ADVICE = "`python -m planners --help` has an example"


def read_request(path: str) -> tuple[Assignment, Tasks]:
    """Where tasks are, and what they are like; from a file of either kind, or as JSON from standard input ("-")."""
    if path.endswith(".parquet"):
        return _from_table(path)
    return _from_document(path, _read_data(path))


def document(plan: Plan) -> dict[str, object]:
    """A plan as JSON can say it. It is a request too: the next plan can start from it."""
    assignment = plan.assignment
    if isinstance(assignment, Intervals):
        where: dict[str, list[int]] = {"cuts": list(assignment.cuts), "nodes": list(assignment.nodes)}
    else:
        where = {"map": list(assignment.owners), "nodes": list(assignment.nodes)}
    return {
        "planner": plan.planner,
        "tau": plan.tau,
        "cost": plan.cost,
        "share": plan.share,
        "balance": plan.balance,
        "met": plan.met,
        **where,
        "moves": [list(move) for move in plan.moves],
        "sizes": plan.tasks.sizes.tolist(),
        "loads": plan.tasks.loads.tolist(),
    }


def write_plan(path: str, plan: Plan) -> None:
    """Writes a plan in the format that its name ends in. The Parquet file is a request as well."""
    if path.endswith(".parquet"):
        columns = {
            "bin": np.arange(len(plan.tasks)),
            "node": plan.map(),
            "was": plan.current.map(),
            "size": plan.tasks.sizes,
            "load": plan.tasks.loads,
        }
        pq.write_table(pa.table({name: pa.array(_signed(column)) for name, column in columns.items()}), path)
    else:
        Path(path).write_text(json.dumps(document(plan)) + "\n")


def _read_data(path: str) -> bytes | str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"standard input is not JSON ({error}): a table is read from a file .parquet") from None


def _from_document(path: str, data: bytes | str) -> tuple[Assignment, Tasks]:
    request = decoding.parse_object(data, path, "a table's name must end in .parquet")
    for name in ("sizes", "loads", "cuts", "nodes", "map"):
        if name in request and not isinstance(request[name], list):
            raise BadRequest(f"{name!r} in {path} is not a list: {ADVICE}")
    with decoding.naming(path, ADVICE):
        if missing := [name for name in ("sizes", "loads") if name not in request]:
            raise BadRequest(f"it says nothing of {' and '.join(missing)}: a list with a number for each task")
        tasks = Tasks(decoding.numbers(request, "sizes"), decoding.numbers(request, "loads"))
        if ("cuts" in request) == ("map" in request):
            raise BadRequest("it must say where tasks are, by cuts or by map, and by one of them only")
        nodes = decoding.wholes(request, "nodes") if "nodes" in request else None
        if "cuts" in request:
            return _of_as_many(Intervals(decoding.wholes(request, "cuts"), nodes), tasks)
        return _of_as_many(BinMap(decoding.wholes(request, "map"), nodes), tasks)


def _of_as_many(where: Assignment, tasks: Tasks) -> tuple[Assignment, Tasks]:
    if where.tasks != len(tasks):
        raise BadRequest(f"the current assignment has {where.tasks} tasks, and there are {len(tasks)} sizes")
    return where, tasks


def _from_table(path: str) -> tuple[Assignment, Tasks]:
    with decoding.parquet(path, "is it a Parquet file, and all of it?"):
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
        table.validate(full=True)
    with decoding.naming(path, ADVICE):
        if missing := [name for name in COLUMNS if name not in table.column_names]:
            raise BadRequest(f"it has no column {', '.join(missing)}; it has {', '.join(table.column_names)}")
        columns = {name: _column(path, table, name) for name in table.column_names if name in (*COLUMNS, "bin")}
        bins = columns.get("bin", np.arange(len(table)))
        if not np.array_equal(np.sort(bins), np.arange(len(table))):
            raise BadRequest(f"the column bin in {path} must have each of 0 to {len(table) - 1} once")
        order = np.argsort(bins)
        tasks = Tasks(columns["size"][order], columns["load"][order])
        if columns["node"].dtype.kind not in "iu":
            raise BadRequest(f"the column node in {path} is not of whole numbers but {columns['node'].dtype}")
        return BinMap(columns["node"][order].tolist()), tasks


def _column(path: str, table: pa.Table, name: str) -> Amounts:
    if table.column_names.count(name) > 1:
        raise BadRequest(f"it has several columns {name}")
    if table[name].null_count:
        raise BadRequest(f"the column {name} in {path} has empty places")
    if not (pa.types.is_integer(table[name].type) or pa.types.is_floating(table[name].type)):
        raise BadRequest(f"the column {name} in {path} is not of numbers but {table[name].type}")
    column: Amounts = table[name].to_numpy()
    return column


def _signed(column: Amounts) -> Amounts:
    return column.astype(np.int64) if column.dtype.kind == "u" else column  # Spark reads unsigned ones as decimals
