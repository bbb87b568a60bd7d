"""Frames beside hand-written operators, Bytewax and polars on one Parquet file; counts by strings beside integers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import dataflow
import megaphone
from bench.registry import benchmark
from bench.run import Run
from dataflow import Stream, Worker, sources, windows
from dataflow.columns import Columns
from dataflow.state import native
from dataflow.state.folds.fold import Fold, fold
from megaphone.frames import PlannedFrame, col, frame

MILLION = 1_000_000
COUNTRIES = 200
SIZE = 1 << 18  # records of a batch that is counted
WORDS = MILLION


@benchmark("frames", "a frame over hand-written operators, Bytewax and polars; counting by strings over by integers")
def frames(run: Run) -> None:
    rows = MILLION if run.quick else 2 * MILLION
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "orders.parquet")
        write_orders(path, rows)
        rounds = []
        for number in run.each("runs", range(2 if run.quick else 6)):
            # by turns: whoever runs behind polars begins with cold caches, which cost it a few percent
            pair = [(_layer, path), (_by_hand, path)][:: 1 if number % 2 else -1]
            took = {measure: measure(given) for measure, given in pair}
            rounds.append((took[_layer], took[_by_hand], _polars(path)))
        layer, by_hand, polars = (rows / median(column) / MILLION for column in zip(*rounds, strict=True))
        run.report("a frame, over hand-written operators (aim: 0.95)", layer, "M rows/s", baseline=by_hand)
        run.report("a frame on one core, over polars streaming on all", layer, "M rows/s", baseline=polars)
        if find_spec("bytewax") is None:
            run.tell("Bytewax is not installed: `pip install bytewax` to have it measured on the same file")
        else:
            rival = rows / median([_bytewax(path) for _ in range(1 if run.quick else 2)]) / MILLION
            run.report("a frame, over Bytewax", layer, "M rows/s", baseline=rival)
    seconds, pairs = (1.0 if run.quick else 2.0), []
    for _ in run.each("counts", range(1 if run.quick else 5)):
        pairs.append((_counted(_texts, by_text, seconds), _counted(_numbers, by_number, seconds)))
    texts, numbers = (median(column) / MILLION for column in zip(*pairs, strict=True))
    run.report("a count by strings, over one by integers (aim: 0.5)", texts, "M records/s", baseline=numbers)


def write_orders(path: Path, rows: int) -> None:
    """Orders in the course of `rows` milliseconds, each up to five seconds out of order."""
    chance = np.random.default_rng(0)
    jitter = chance.integers(-5000, 5000, rows)
    moments = (np.arange(rows) + jitter + 1_790_000_000_000).astype("M8[ms]")
    names = pa.array([f"country {number}" for number in range(COUNTRIES)])
    columns = {
        "t": moments,
        "country": names.take(pa.array(chance.integers(0, COUNTRIES, rows))),
        "price": chance.integers(0, 100, rows),
        "amount": chance.integers(1, 9, rows),
        "note": pa.array(["nothing to say"] * rows),
    }
    pq.write_table(pa.table(columns), path)


def plan_of(path: Path) -> PlannedFrame:
    """What is measured, as a frame."""
    return (
        frame(path, time="t", delay="20s")
        .filter(col("price") > 3)
        .with_columns((col("price") * col("amount")).alias("worth"))
        .group_by("country")
        .window("1m")
        .agg(col("worth").sum(), col("amount").max(), col("price").mean(), col("t").count())
    )


def _layer(path: Path) -> float:
    plan = plan_of(path)
    return _seconds(lambda scope: plan.stream(scope))


def _by_hand(path: Path) -> float:
    return _seconds(lambda scope: by_hand(scope, path))


def by_hand(scope: dataflow.Scope, path: Path) -> Stream[Columns]:
    """The same in operators."""
    orders = scope.source(sources.parquet(path, columns=["amount", "country", "price", "t"]))
    timed = orders.event_time("t", "20s")
    worth = timed.columns.filter(lambda batch: batch["price"] > 3).columns.map(
        lambda batch: {**batch.columns, "worth": batch["price"] * batch["amount"]}
    )
    return megaphone.window(
        scope.control(), worth, windows.tumbling("1m"), key=("country",), time="t", moments=True,
        worth_=("sum", "worth"), amount_=("max", "amount"), price_=("mean", "price"), t_="count",
    )  # fmt: skip


def _seconds(build: Callable[[dataflow.Scope], Stream[Columns]]) -> float:
    """From the building of a dataflow to its end, on one worker in this process."""

    async def main(worker: Worker) -> float:
        start = time.perf_counter()
        with worker.dataflow() as scope:
            probe = build(scope).probe()
        await probe.wait_done()
        return time.perf_counter() - start

    (took,) = dataflow.execute(main, in_process=True)
    return float(took)


def _polars(path: Path) -> float:
    start = time.perf_counter()
    lazy = (
        pl.scan_parquet(path)
        .filter(pl.col("price") > 3)
        .with_columns((pl.col("price") * pl.col("amount")).alias("worth"), pl.col("t").dt.truncate("1m").alias("start"))
        .group_by("country", "start")
        .agg(pl.col("worth").sum(), pl.col("amount").max(), pl.col("price").mean(), pl.len())
    )
    lazy.collect(engine="streaming")
    return time.perf_counter() - start


def _bytewax(path: Path) -> float:
    """The same in Bytewax, row by row, as its users write it; the program tells how long it took."""
    command = [sys.executable, "-m", "bench.rivals.bytewax_windows", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(said.stdout.split()[-1])


@fold(state={"count": "i8"}, output={"word": "key", "count": "i8"})
def by_text(key, value, state):  # type: ignore[no-untyped-def]
    state.count += value
    return key, state.count


@fold(state={"count": "i8"}, output={"word": "i8", "count": "i8"})
def by_number(key, value, state):  # type: ignore[no-untyped-def]
    state.count += value
    return key, state.count


def _numbers(chance: np.random.Generator) -> Columns:
    return Columns({"word": chance.integers(0, WORDS, SIZE), "n": np.ones(SIZE, np.int64)})


def _texts(chance: np.random.Generator) -> Columns:
    """The same words, written out."""
    return Columns({"word": _all_words().take(pa.array(chance.integers(0, WORDS, SIZE))), "n": np.ones(SIZE, np.int64)})


@cache
def _all_words() -> pa.Array:
    return pa.array([f"word {number}" for number in range(WORDS)])


def _counted(make: Callable[[np.random.Generator], Columns], by: Fold, seconds: float) -> float:
    """Records a second of a running count on one worker, once every word has come."""

    async def main(worker: Worker) -> float:
        pool = [make(np.random.default_rng(seed)) for seed in range(16)]
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = native.state_machine(stream, key="word", value="n", fold=by).probe()
        epoch, start, first = 0, time.perf_counter(), 0
        while True:
            handle.send(pool[epoch % 16])
            epoch += 1
            handle.advance_to(epoch)
            await probe.wait_passed(epoch - 3)
            if epoch == 32:  # nearly all words have come
                start, first = time.perf_counter(), epoch
            if epoch > 32 and time.perf_counter() - start > seconds:
                return (epoch - first) * SIZE / (time.perf_counter() - start)

    (rate,) = dataflow.execute(main, in_process=True)
    return float(rate)
