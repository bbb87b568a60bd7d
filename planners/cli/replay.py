"""``python -m planners loop LOG``: what the loop would have done, interval by interval, from a log of statistics.

The log is what `megaphone.load.statistics.as_columns` gives: interval, worker, bin, records, bytes and cost, a row for
each bin of a worker's interval; as Parquet, or as JSON with a list for each column. Nothing moves: each interval is
judged from where bins were in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import planners
from planners import decoding
from planners.errors import BadRequest
from planners.model import Amounts

if TYPE_CHECKING:
    from planners.loop import Loop, Observation
    from planners.loop.planning import IntervalPlanner, Rebalancer

# Planners are looked up when they are asked for, and the loop is imported then: compilers are no small import.
PLANNERS: dict[str, Callable[[], Rebalancer]] = {
    "mixed": lambda: planners.mixed,
    "min-mig": lambda: planners.min_mig,
    "min-table": lambda: planners.min_table,
    "llfd": lambda: planners.llfd,
    "mixed-bf": lambda: planners.mixed_bf,
    "readj": lambda: planners.readj,
}
OTHERWISE: dict[str, Callable[[], IntervalPlanner]] = {
    "storm": lambda: planners.storm,
    "redist": lambda: planners.redist,
}
TABLE = 3_000  # the most entries of a routing table, as in `planners.loop`
COLUMNS = ("interval", "worker", "bin", "records", "bytes", "cost")
ADVICE = "it cannot be read as a log of statistics, as megaphone.load.statistics.as_columns gives, in .json or .parquet"
MOST_BINS = 1 << 20  # as many as an operator may have
MOST_WORKERS = 1 << 16


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser("loop", help="what the closed loop would have done about a log of statistics")
    parser.add_argument("log", metavar="LOG", help="statistics by interval, worker and bin (.parquet or .json)")
    parser.add_argument("--dry-run", action="store_true", help="say what it would do: all that a log allows")
    parser.add_argument("--planner", choices=PLANNERS, default="mixed", help="which planner of bins (mixed)")
    parser.add_argument("--theta", type=float, default=0.08, help="how far a load may be above the mean")
    parser.add_argument("--workers", type=int, help="how many there are (as many as the log names)")
    parser.add_argument("--cost", choices=["records", "cost"], default="records", help="what a bin's load is")
    parser.add_argument("--capacity", type=float, help="load of a worker per interval: then workers come and go")
    parser.add_argument(
        "--otherwise", choices=OTHERWISE, help="with --capacity: who plans what ssm refuses, such as scattered bins"
    )
    parser.add_argument("--table", type=int, default=TABLE, help=f"most entries of the routing table ({TABLE:,})")
    parser.add_argument("--patience", type=int, default=2, help="for how many intervals something must be wrong")
    parser.add_argument("--cool-down", type=int, default=1, help="intervals without another migration after one")
    parser.set_defaults(run=replay)


def replay(options: argparse.Namespace) -> int:
    """Prints a decision for each interval."""
    if not options.dry_run:
        raise BadRequest("a log cannot be migrated: say --dry-run, or drive a controller with planners.loop.Driver")
    columns = read_log(options.log)
    try:
        loop = _loop(options)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    for seen in observations(columns, options.workers, options.cost):
        print(loop.decide(seen))
    return 0


def _loop(options: argparse.Namespace) -> Loop:
    from planners.loop import Loop, by_bins, by_intervals

    if options.capacity is None:
        planner = by_bins(PLANNERS[options.planner](), options.theta, options.table)
    else:
        otherwise = None if options.otherwise is None else OTHERWISE[options.otherwise]()
        planner = by_intervals(tau=options.theta, capacity=options.capacity, otherwise=otherwise)
    return Loop(planner, patience=options.patience, cool_down=options.cool_down)


def read_log(path: str) -> dict[str, Amounts]:
    """The columns of a log; BadRequest says what is wrong with it."""
    found = _from_parquet(path) if path.endswith(".parquet") else _from_json(path)
    with decoding.naming(path, ADVICE):
        if len({len(column) for column in found.values()}) > 1:
            raise BadRequest(f"it needs the columns {', '.join(COLUMNS)}, of one length")
        if not len(found["bin"]):
            raise BadRequest("it has no intervals")
        for name, values in found.items():
            if name in COLUMNS[:3] and values.dtype.kind not in "iu":
                raise BadRequest("interval, worker and bin are whole numbers")
            if values.dtype.kind not in "iuf" or not (np.isfinite(values) & (values >= 0)).all():
                raise BadRequest(f"{name} must be finite and not negative")
        for name, most in (("bin", MOST_BINS), ("worker", MOST_WORKERS)):
            if found[name].max() >= most:
                raise BadRequest(f"there is no {name} {found[name].max()}: they are below {most:,}")
    return found


def _from_parquet(path: str) -> dict[str, Amounts]:
    with decoding.parquet(path, ADVICE):
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
        table.validate(full=True)
    with decoding.naming(path, ADVICE):
        if missing := [name for name in COLUMNS if table.column_names.count(name) != 1]:
            raise BadRequest(f"it needs the columns {', '.join(COLUMNS)}, each once; missing: {', '.join(missing)}")
        for name in COLUMNS:
            kind = table[name].type
            if table[name].null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise BadRequest(f"the column {name} has empty places, or no numbers but {kind}")
    return {name: table[name].to_numpy() for name in COLUMNS}


def _from_json(path: str) -> dict[str, Amounts]:
    try:
        found = decoding.read_object(path, ADVICE)
    except FileNotFoundError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from None
    with decoding.naming(path, ADVICE):
        if missing := [name for name in COLUMNS if name not in found]:
            raise BadRequest(f"it needs the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}")
        return {name: np.array(decoding.numbers(found, name)) for name in COLUMNS}


def observations(columns: dict[str, Amounts], workers: int | None, cost: str) -> Iterator[Observation]:
    """What was seen in each interval. A bin of which an interval says nothing is where it was last."""
    from planners.loop import Observation

    bins = int(columns["bin"].max()) + 1
    peers = int(columns["worker"].max()) + 1
    if workers is not None and workers < peers:
        raise BadRequest(f"the log has worker {peers - 1}, and there shall be {workers}")
    places = np.arange(bins) % peers
    for interval in np.unique(columns["interval"]):
        rows = columns["interval"] == interval
        here, by_bin = columns["bin"][rows], np.zeros((2, bins))
        held = columns["bytes"][rows] > 0  # without a byte, a bin has left
        places = places.copy()
        places[here[held]] = columns["worker"][rows][held]
        np.add.at(by_bin[0], here, columns[cost][rows])
        np.add.at(by_bin[1], here, columns["bytes"][rows])
        yield Observation(workers or peers, places, by_bin[0], by_bin[1])
