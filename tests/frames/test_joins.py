"""Joins of frames against polars, on random rows out of order, random batches, workers and moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import megaphone
from dataflow import Worker
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.joins import folds
from dataflow.testing import simulate
from megaphone.frames import PlannedFrame, col, collect, frame

JITTER = 4
HOWS = ["inner", "left", "right", "outer"]
FILLS = {"t": -1, "v": -1, "t_right": -1, "w": -1}  # what stands for what is missing


def rows(seed: int, value: str) -> pl.DataFrame:
    """Rows nearly in the order of time; no two of a key are at one time."""
    chance = Random(f"{seed} {value}")
    places = [(t, k) for t in range(5, 45) for k in ("a", "b", "c", None) if chance.random() < 0.3]
    places.sort(key=lambda place: place[0] + chance.uniform(0, JITTER))
    return pl.DataFrame(
        {"t": [t for t, _ in places], "k": [k for _, k in places], value: range(len(places))},
        schema={"t": pl.Int64, "k": pl.String, value: pl.Int64},
    )


def near(left: pl.DataFrame, right: pl.DataFrame, where: pl.Expr, how: str) -> list[Any]:
    """Pairs, and rows that are in none, as (t, k, v, t_right, w)."""
    left, right = left.with_row_index("i"), right.with_row_index("j")
    pairs = left.join(right, on="k").filter(where)
    parts = [pairs.select("t", "k", "v", "t_right", "w")]
    if how in ("left", "outer"):
        parts.append(left.join(pairs, on="i", how="anti").select("t", "k", "v", t_right=-1, w=-1))
    if how in ("right", "outer"):
        parts.append(right.join(pairs, on="j", how="anti").select("k", "w", t_right="t", t=-1, v=-1))
    return ordered(pl.concat(parts, how="diagonal_relaxed"))


def as_of(left: pl.DataFrame, right: pl.DataFrame, tolerance: int | None, how: str) -> list[Any]:
    given = right.with_columns(t_right="t", j=pl.int_range(pl.len())).sort("t")
    # polars has nulls equal each other here, and in its joins not
    met = left.sort("t").join_asof(given.filter(pl.col("k").is_not_null()), on="t", by="k", tolerance=tolerance)
    parts = [met if how in ("left", "outer") else met.filter(pl.col("w").is_not_null())]
    if how in ("right", "outer"):
        alone = given.join(met.filter(pl.col("j").is_not_null()), on="j", how="anti")
        parts.append(alone.select("k", "w", "t_right", t=-1, v=-1))
    return ordered(pl.concat(parts, how="diagonal_relaxed"))


def ordered(table: pl.DataFrame) -> list[Any]:
    return sorted(table.select("t", "k", pl.col("v", "t_right", "w").fill_null(-1)).rows(), key=repr)


def run(seed: int, join: Any) -> list[Any]:
    """What a join gives, of streams in random batches on several workers, while bins move."""
    chance = Random(seed)
    peers = chance.randint(1, 3)
    out: list[Any] = []

    async def main(worker: Worker) -> None:
        mine = Random(f"{seed} {worker.index}")
        with worker.dataflow() as scope:
            handles, sides = [], []
            for value in ("v", "w"):
                handle, stream = scope.input()
                handles.append(handle)
                sides.append(frame(stream, time="t", delay=JITTER, moments=False).select("t", "k", value))
            plan: PlannedFrame = join(*sides)
            plan.stream(scope).inspect_batch(lambda time, batch: out.append((time, batch)))
            control = scope.control()
        if worker.index == 0:
            for bin in range(0, 256, 3):
                control.send([megaphone.Move(bin, chance.randrange(peers))])
        for handle, value in zip(handles, ("v", "w"), strict=True):
            table = rows(seed, value)
            table = table.filter(pl.int_range(pl.len()) % peers == worker.index)
            while len(table):
                size = mine.randint(1, 9)
                handle.send(Columns(table[:size]))
                handle.advance_to(handle.time + 1)
                table = table[size:]

    simulate(main, workers=peers, seed=seed)
    stamp = join.__defaults__[0]
    assert all((batch[stamp] >= time).all() for time, batch in out)  # no batch is after one of its rows
    tables = [batch.to_polars() for _, batch in out]
    return ordered(pl.concat(tables)) if tables else []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("how", HOWS)
def test_within(how: Any, seed: int) -> None:
    before, after = Random(seed).choice([(0, 0), (3, 0), (0, 5), (4, 4)])

    def join(left: PlannedFrame, right: PlannedFrame, stamp: str = "joined_at") -> PlannedFrame:
        times = {"within": 4} if before == after == 4 else {"before": before, "after": after}
        return left.join(right, on="k", how=how, missing=FILLS, **times)  # type: ignore[arg-type]

    where = (pl.col("t_right") - pl.col("t")).is_between(-before, after)
    assert run(seed, join) == near(rows(seed, "v"), rows(seed, "w"), where, how)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", HOWS)
def test_in_windows(how: Any, seed: int) -> None:
    def join(left: PlannedFrame, right: PlannedFrame, stamp: str = "window_end") -> PlannedFrame:
        return left.join(right, on="k", window=7, how=how, missing=FILLS)

    where = pl.col("t_right") // 7 == pl.col("t") // 7
    assert run(seed, join) == near(rows(seed, "v"), rows(seed, "w"), where, how)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("tolerance", "how"), [(None, "inner"), (None, "left"), *((5, how) for how in HOWS), (0, "outer")]
)
def test_as_of(tolerance: Any, how: Any, seed: int) -> None:
    stamped = "joined_at" if how in ("right", "outer") else "t"

    def join(left: PlannedFrame, right: PlannedFrame, stamp: str = stamped) -> PlannedFrame:
        return left.join_asof(right, on="k", tolerance=tolerance, how=how, missing=FILLS)

    assert run(seed, join) == as_of(rows(seed, "v"), rows(seed, "w"), tolerance, how)


@pytest.mark.parametrize("seed", range(6))
def test_with_a_table(seed: int) -> None:
    """Rows whose value is a multiple of three take theirs out."""

    def join(left: PlannedFrame, right: PlannedFrame, stamp: str = "t") -> PlannedFrame:
        table = right.with_columns(gone=col("w").is_in(range(0, 99, 3)))
        return left.join_table(table, on="k", removed="gone", how="left", missing=FILLS)

    found = as_of(rows(seed, "v"), rows(seed, "w"), None, "left")
    assert run(seed, join) == sorted(
        [(t, k, v, -1, -1) if w % 3 == 0 else (t, k, v, t_right, w) for t, k, v, t_right, w in found], key=repr
    )


@pytest.mark.parametrize(
    ("owner", "method", "mutant", "test", "how"),
    [
        (folds.PairFold, "meets", lambda self, key: True, test_within, ("inner",)),
        (folds.IntervalFold, "_pairs", lambda self, key, new, others, side: iter(()), test_in_windows, ("inner",)),
        (folds.AsOfFold, "_needs", lambda self, waiting, kept, now: [], test_as_of, (5, "outer")),
    ],
)
def test_a_mutant_is_caught(
    owner: Any, method: str, mutant: Any, test: Any, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, mutant)

    def all_seeds() -> None:
        for seed in range(4):
            test(*how, seed)

    with pytest.raises(AssertionError):
        all_seeds()


# What people write

START = datetime(2026, 7, 1, 12, tzinfo=UTC)


def clicks(count: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    chance = Random(1)
    who = ["ann", "bob", "eve"]
    moments = [START + timedelta(seconds=n + chance.randint(-3, 3)) for n in range(count)]
    views = pl.DataFrame({"t": moments, "user": [chance.choice(who) for _ in moments], "page": range(count), "x": 1})
    later = [moment + timedelta(milliseconds=chance.randint(0, 9000)) for moment in moments]
    return views, pl.DataFrame({"at": later, "who": [chance.choice(who) for _ in later], "price": 2.5, "note": ""})


def test_moments_names_files_and_windows_behind_it(tmp_path: Path) -> None:
    """Only what is needed is read, of both files; windows follow."""
    views, sales = clicks()
    pq.write_table(views.to_arrow(), tmp_path / "views.parquet")
    pq.write_table(sales.to_arrow(), tmp_path / "sales.parquet")
    left = frame(tmp_path / "views.parquet", time="t", delay="30s")
    right = frame(tmp_path / "sales.parquet", time="at", delay="30s").filter(col("price") > 1)
    plan = left.join(right, left_on="user", right_on="who", after="5s")
    plan = plan.group_by("user").window("20s").agg(col("price").sum(), col("page").count().alias("n"))
    text = plan.explain().splitlines()
    assert [line.partition(": ")[2] for line in text if line.startswith("  read")] == ["t, user", "at, price, who"]
    assert "inner join, right from 0 before to 5s after, by user = who (keyed, migratable)" in text
    found = collect(plan, workers=2, to="polars")
    pairs = views.join(sales, left_on="user", right_on="who").filter(
        (pl.col("at") - pl.col("t")).is_between(timedelta(0), timedelta(seconds=5))
    )
    start = pl.max_horizontal("t", "at").dt.truncate("20s").alias("start")
    expected = pairs.group_by("user", start).agg(pl.col("price").sum(), pl.len())
    assert sorted(found.select("user", "window_start", "price", "n").rows()) == sorted(expected.rows())


def test_types_stay_and_what_is_missing() -> None:
    views, sales = clicks()
    left, right = frame(views, time="t", delay="30s"), frame(sales, time="at", delay="30s")
    table = collect(
        left.join_asof(right.select("who", "at", user=col("who"), late=col("at")), on="user", tolerance="2s")
    )
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "t": "timestamp[us, tz=UTC]", "user": "large_string", "page": "int64", "x": "int32", "who": "large_string",
        "at": "timestamp[us, tz=UTC]", "late": "timestamp[us, tz=UTC]",
    }  # fmt: skip
    outer = collect(left.join(right, left_on="user", right_on="who", within=0, how="outer"), to="polars")
    assert outer.schema["page"] == pl.Float64 and outer["page"].is_nan().any() and outer["user"].null_count() == 0
    assert outer["t"].null_count() + outer["price"].is_nan().sum() == len(outer) - len(outer.drop_nulls().drop_nans())


def test_joins_of_joins_and_of_windows() -> None:
    numbers = {"t": [1, 2, 12], "k": [1, 1, 1], "n": [5, 6, 7]}
    counted = frame(numbers, time="t", moments=False).group_by("k").window(10).agg(col("n").sum())
    rates = frame({"t": [0, 15], "k": [1, 1], "rate": [2, 3]}, time="t", moments=False)
    names = frame({"t": [0], "k": [1], "name": ["one"]}, time="t", moments=False)
    plan = counted.join_asof(rates, on="k", how="inner").join_table(names.select("k", "t", "name"), on="k")
    worth = collect(plan.select("window_end", "name", worth=col("n") * col("rate")), to="polars")
    assert sorted(worth.rows()) == [(10, "one", 22), (20, "one", 21)]
    itself = collect(names.join(names, on="k", within=0), to="polars")
    assert itself.columns == ["t", "k", "name", "t_right", "name_right", "joined_at"] and len(itself) == 1


def test_what_is_refused() -> None:
    one = frame({"t": [1], "k": ["a"], "b": [True]}, time="t", moments=False)
    stream = frame(Columns({"t": [1]}), time="t", moments=False)

    async def unknown(worker: Worker) -> None:
        with worker.dataflow() as scope:
            frame(scope.input()[1], time="t", moments=False).join(one, on="k", within=1)

    async def untyped(worker: Worker) -> None:
        with worker.dataflow() as scope:
            other = frame(scope.input()[1], time="t", moments=False).select("t", "k", "x")
            one.join(other, on="k", within=1, how="left")

    for build, message in [
        (lambda: one.join(one, on="k"), "say within='10s', or before= and after=, or window='1m'"),
        (lambda: one.join(one, on="k", within=1, window=1), "one of these"),
        (lambda: one.join(7, on="k", within=1), "a frame is joined with a frame"),  # type: ignore[arg-type]
        (lambda: one.join(one, within=1), "name the columns of the key"),
        (lambda: one.join(one, left_on=["k", "t"], right_on="k", within=1), "of one length"),
        (lambda: one.join(stream, on="k", within=1), "the right side has no column 'k'"),
        (lambda: one.join(frame({"k": ["a"]}), on="k", within=1), "the right side has no time"),
        (lambda: one.join(frame({"k": ["a"], "t": [1]}, time="t"), on="k", within=1), "moments and those of the other"),
        (lambda: one.join(one, on="k", within=1, how="full"), "how is 'inner', 'left', 'right' or 'outer'"),  # type: ignore[arg-type]
        (lambda: one.join(one, on="k", within=-1), "before is at least 0"),
        (lambda: one.join_asof(one.select("t", "k"), on="k", how="outer"), "without tolerance= the last of them"),
        (lambda: one.join_table(one, on="k", how="right"), "a row of a table is there until it is replaced"),  # type: ignore[arg-type]
        (lambda: one.join(one, on="k", within=1, how="left"), "'b_right' on the right side holds bool, of which none"),
        (lambda: simulate(unknown, workers=1), "which columns the left side has is not known"),
        (lambda: simulate(untyped, workers=1), "the type of 't_right' on the right side is not known"),
        (
            lambda: one.join(one.with_columns(k_right=col("k"), b_right=col("b")), on="k", within=1),
            "give another suffix",
        ),
    ]:
        with pytest.raises(ConstructionError, match=message):
            build()
