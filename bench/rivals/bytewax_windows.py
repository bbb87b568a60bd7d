"""Tumbling windows by key over a Parquet file on Bytewax: `python -m bench.rivals.bytewax_windows FILE` prints how many
seconds it took."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.testing import TestingSink, run_main

MINUTE = timedelta(minutes=1)


class RowsOfFile(StatefulSourcePartition[Any, int]):
    """The rows of a Parquet file, as tuples."""

    def __init__(self, path: str) -> None:
        self._batches = pq.ParquetFile(path).iter_batches(8192, columns=["country", "t", "price", "amount"])

    def next_batch(self) -> list[Any]:
        """The next few thousand."""
        columns = [column.to_pylist() for column in next(self._batches).columns]
        return list(zip(*columns, strict=True))

    def snapshot(self) -> int:
        """Nothing is kept."""
        return 0


class OneFile(FixedPartitionedSource[Any, int]):
    """One partition."""

    def __init__(self, path: str) -> None:
        self._path = path

    def list_parts(self) -> list[str]:
        """Its name."""
        return ["file"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> RowsOfFile:
        """The file."""
        return RowsOfFile(self._path)


def _folder(state: list[Any], row: tuple[Any, ...]) -> list[Any]:
    _, _, price, amount = row
    state[0] += price * amount
    state[1] = max(state[1], amount)
    state[2] += price
    state[3] += 1
    return state


def _merger(left: list[Any], right: list[Any]) -> list[Any]:
    return [left[0] + right[0], max(left[1], right[1]), left[2] + right[2], left[3] + right[3]]


def flow(path: str, out: list[Any]) -> Dataflow:
    """The program."""
    dataflow = Dataflow("windows")
    rows = op.filter("price", op.input("rows", dataflow, OneFile(path)), lambda row: row[2] > 3)
    keyed = op.key_on("country", rows, lambda row: row[0])
    clock: Any = win.EventClock(lambda row: row[1].replace(tzinfo=UTC), timedelta(seconds=20))
    windower = win.TumblingWindower(align_to=datetime(2026, 1, 1, tzinfo=UTC), length=MINUTE)
    found = win.fold_window("sums", keyed, clock, windower, lambda: [0, 0, 0, 0], _folder, _merger)
    op.output("out", found.down, TestingSink(out))
    return dataflow


if __name__ == "__main__":
    results: list[Any] = []
    start = time.perf_counter()
    run_main(flow(sys.argv[1], results))  # type: ignore[no-untyped-call,unused-ignore]
    sys.stderr.write(f"{len(results)} windows\n")
    sys.stdout.write(f"{time.perf_counter() - start}\n")
