"""Frames against polars on the same rows, and what they read."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import dataflow
import megaphone
from dataflow import Worker
from dataflow.errors import ConstructionError
from dataflow.testing import simulate
from megaphone.frames import PlannedFrame, col, collect, frame

START = datetime(2026, 7, 1, 12)


def orders(seed: int, count: int = 300) -> pl.DataFrame:
    chance = Random(seed)
    return pl.DataFrame(
        {
            "t": [START + timedelta(seconds=n + chance.randint(-9, 9)) for n in range(count)],
            "country": [chance.choice(["DE", "FR", "IT"]) for _ in range(count)],
            "price": [chance.randint(0, 9) for _ in range(count)],
            "amount": [chance.randint(1, 5) for _ in range(count)],
            "note": ["" for _ in range(count)],
        }
    )


def totals(source: Any) -> PlannedFrame:
    return (
        frame(source, time="t", delay="20s")
        .filter(col("price") > 3)
        .with_columns((col("price") * col("amount")).alias("worth"))
        .group_by("country")
        .window("1m")
        .agg(
            col("amount").sum(),
            col("worth").max().alias("best"),
            (col("worth") + 1).mean().alias("mean"),
            col("t").count(),
        )
    )


def expected(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    worth = pl.col("price") * pl.col("amount")
    found = (
        table.filter(pl.col("price") > 3)
        .with_columns(worth.alias("worth"), pl.col("t").dt.truncate("1m").alias("start"))
        .group_by("country", "start")
        .agg(pl.col("amount").sum(), pl.col("worth").max().alias("best"), (pl.col("worth") + 1).mean(), pl.len())
    )
    return sorted(
        (c, s, a, b, round(m, 9), n)
        for c, s, a, b, m, n in found.select("country", "start", "amount", "best", pl.nth(4), pl.nth(5)).rows()
    )


def rows_of(found: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(
        (row["country"], row["window_start"], row["amount"], row["best"], round(row["mean"], 9), row["t"])
        for row in found.to_dicts()
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_frame_is_what_polars_says(seed: int) -> None:
    table = orders(seed)
    found = collect(totals(table), to="polars")
    assert rows_of(found) == expected(table)


@pytest.mark.parametrize("seed", range(6))
def test_a_frame_migrates(seed: int) -> None:
    """On several workers of a simulation, with moves on the scope's own control stream."""
    table = orders(seed, 120)
    parts: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            totals(table).stream(scope).inspect_batch(lambda time, batch: parts.append(batch.to_polars()))
            control = scope.control()
        if worker.index == 0:
            control.send([megaphone.Move(bin, Random(seed).randrange(2)) for bin in range(0, 256, 3)])

    simulate(main, workers=2, seed=seed)
    assert rows_of(pl.concat(parts)) == expected(table)


def test_only_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    table = orders(7)
    pq.write_table(table.to_arrow(), tmp_path / "orders.parquet")
    plan = totals(str(tmp_path / "orders.parquet"))
    text = plan.explain().splitlines()
    assert text[0].endswith("orders.parquet: amount, country, price, t")
    assert text[2] == "in one pass: filter (price > 3); with columns worth = multiply_checked(price, amount)"
    assert "(keyed, migratable)" in text[3]
    assert rows_of(collect(plan, to="polars")) == expected(table)


def test_frames_without_windows_and_steps_behind_them() -> None:
    table = orders(3)
    plain = collect(
        frame(table).filter(~(col("country") == "DE") & col("price").is_in([1, 2])).select("price"), to="polars"
    )
    assert sorted(plain["price"]) == sorted(
        table.filter((pl.col("country") != "DE") & pl.col("price").is_in([1, 2]))["price"]
    )
    behind = collect(totals(table).filter(col("amount") >= 40).select("country", twice=col("amount") * 2))
    assert sorted(behind["twice"].to_pylist()) == sorted(2 * row[2] for row in expected(table) if row[2] >= 40)


def test_bounds_have_the_zone_of_the_times(tmp_path: Path) -> None:
    """Of a frame and of a file, of windows behind windows and of pairs, also where a zone changes its offset."""
    first = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # half an hour before summer time begins
    times = [first + timedelta(minutes=10 * n) for n in range(12)]
    table = pl.DataFrame({"t": times, "k": ["x"] * 12}).with_columns(pl.col("t").dt.convert_time_zone("Europe/Berlin"))
    table.write_parquet(tmp_path / "t.parquet")
    hours = table.group_by_dynamic("t", every="1h", group_by="k").agg(pl.len()).select("t", "len").rows()
    for source in (table, str(tmp_path / "t.parquet")):
        counts = frame(source, time="t").group_by("k").window("1h").agg(col("k").count().alias("n"))
        found = collect(counts, to="polars")
        assert found.schema["window_start"].time_zone == "Europe/Berlin"  # type: ignore[attr-defined]
        assert sorted(found.select("window_start", "n").rows()) == sorted(hours)
        twice = collect(counts.group_by("k").window("1d").agg(col("n").sum()), to="polars")
        assert twice.schema["window_end"].time_zone == "Europe/Berlin" and twice["n"].sum() == 12  # type: ignore[attr-defined]
        pairs = collect(frame(source, time="t").join(frame(source, time="t"), on="k", within="1m"), to="polars")
        assert sorted(pairs["joined_at"].to_list()) == sorted(table["t"].to_list())


def test_workers_are_processes() -> None:
    table = orders(5)
    assert rows_of(collect(totals(table), workers=2, to="polars")) == expected(table)


def test_where_asyncio_runs() -> None:
    table = orders(6)

    async def cell() -> Any:
        return collect(totals(table), to="polars")

    assert rows_of(asyncio.run(cell())) == expected(table)


def test_late_records_are_never_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """An error, a number that is told, or a stream that somebody gets."""
    table = {"t": [50, 90, 10, 95, 5], "k": [1, 1, 2, 1, 3]}
    out: list[Any] = []

    def plan(late: Any) -> PlannedFrame:
        return frame(table, time="t", delay=5, moments=False, late=late).group_by("k").window(10).agg(col("t").count())

    with pytest.raises(dataflow.errors.TimeError, match="2 records came late"):
        collect(plan("error"))
    assert len(collect(plan("count"), to="columns")) == 2 and "2 late records were left out" in capfd.readouterr().err
    with pytest.raises(ConstructionError, match="here nobody does: say late='count'"):
        collect(plan("stream"))
    with pytest.raises(ConstructionError, match="here nobody does"):
        plan("stream").join_asof(plan("error"), on="k").head()

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            (late,) = plan("stream").stream(scope).late
            late.inspect_batch(lambda time, batch: out.extend(batch.rows()))

    simulate(main, workers=2)
    assert sorted(out) == [(2, 10), (3, 5)]


def test_what_is_refused() -> None:
    plan = frame({"t": [1]}, time="t", moments=False)
    for build, message in [
        (lambda: frame(7), "a frame is made of columns"),
        (lambda: plan.filter(True), "filter needs an expression"),  # type: ignore[arg-type]
        (lambda: plan.group_by("t").agg(col("t").sum()), "a stream has no end"),
        (lambda: frame({"t": [1]}).group_by().window(5).agg(col("t").sum()), "windows need the records' time"),
        (lambda: plan.group_by().window(5).agg(col("t").sum(), col("t").max()), "two aggregates have one name"),
        (lambda: plan.group_by().window(5).agg(col("t")), "agg needs aggregates"),  # type: ignore[arg-type]
        (lambda: collect(plan, to="excel"), "collected as 'arrow'"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(ConstructionError, match=message):
            build()
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(col("a") > 3)


def test_what_the_benchmark_compares_is_the_same(tmp_path: Path) -> None:
    """A frame, hand-written operators, and counts by strings and by integers."""
    from bench.experiments import frames as bench

    bench.write_orders(tmp_path / "orders.parquet", 3000)
    parts: dict[str, list[Any]] = {"frame": [], "hand": []}

    async def main(worker: Worker) -> None:
        for name, build in (
            ("frame", bench.plan_of(tmp_path / "orders.parquet").stream),
            ("hand", lambda scope: bench.by_hand(scope, tmp_path / "orders.parquet")),
        ):
            with worker.dataflow() as scope:
                build(scope).inspect_batch(lambda _, batch, name=name: parts[name].extend(batch.rows()))

    dataflow.execute(main, in_process=True)
    assert parts["frame"] and sorted(parts["frame"]) == sorted(parts["hand"])
