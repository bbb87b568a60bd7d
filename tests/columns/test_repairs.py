"""Missing numbers and decimals at the edge: what a column cannot hold becomes what was asked for, or is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow.columns import Columns
from dataflow.columns.repairs import Repairs
from dataflow.errors import ConstructionError
from megaphone.frames import col, collect, frame

GIVEN = pa.table(
    {
        "n": pa.array([1, None, 3]),
        "x": pa.array([0.5, 1.5, None]),
        "t": pa.array([1, 2, None], pa.timestamp("ms")),
        "word": pa.array(["a", None, "c"]),
        "price": pa.array([Decimal("3.14"), Decimal("-0.05"), None]),
    }
)
MONEY = {"price": 2}


def test_what_is_missing_is_filled_in_dropped_or_not_a_number() -> None:
    filled = Repairs({"n": 0, "x": -1.0, "t": np.datetime64(7, "ms").astype(object), "price": 0}, MONEY).columns(GIVEN)
    assert filled["n"].tolist() == [1, 0, 3] and filled["n"].dtype == np.int64
    assert filled["price"].tolist() == [314, -5, 0] and filled["t"].astype(int).tolist() == [1, 2, 7]
    assert filled["word"].to_pylist() == ["a", None, "c"]
    dropped = Repairs("drop", MONEY).columns(GIVEN)
    assert dropped.select(["n", "word", "price"]).rows() == [(1, "a", 314)]
    nan = Repairs("nan", MONEY).columns(GIVEN)
    assert nan["n"].tolist()[::2] == [1.0, 3.0] and math.isnan(nan["n"][1]) and np.isnat(nan["t"][2])


def test_without_a_word_it_is_refused_and_the_error_says_what_to_say() -> None:
    with pytest.raises(TypeError, match=r"'n' has 1 missing values.*missing= at the source"):
        Columns(GIVEN)
    with pytest.raises(TypeError, match=r"decimal128\(3, 2\).*decimals=\{'price': 2\} at the source"):
        Columns(GIVEN.select(["price"]))


@pytest.mark.parametrize(
    ("missing", "decimals", "error", "message"),
    [
        ("skip", {}, ConstructionError, "missing= is 'error', 'drop', 'nan'"),
        ("drop", {"price": 99}, ConstructionError, "a number of digits up to 18"),
        ("drop", {"price": 1}, ValueError, "of which 1 digits lose something"),
        ("drop", {"x": 1}, TypeError, "decimals= is for decimals"),
        ({"n": "?"}, MONEY, TypeError, "cannot have '\\?' for what is missing"),
        ({"n": 0}, MONEY, TypeError, "'x' has 1 missing values"),
    ],
)
def test_what_cannot_be_done_is_said(missing: Any, decimals: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Repairs(missing, decimals).columns(GIVEN)


@pytest.mark.parametrize("seed", range(10))
def test_decimals_are_exact_both_ways(seed: int) -> None:
    chance = Random(seed)
    digits = chance.randint(0, 6)
    values = [Decimal(chance.randint(-(10**12), 10**12)).scaleb(-digits) for _ in range(50)]
    table = pa.table({"d": pa.array(values, pa.decimal128(30, digits))}).slice(chance.randint(0, 5))
    columns = Repairs(decimals={"d": digits}).columns(table)
    assert columns["d"].tolist() == [int(value.scaleb(digits)) for value in table["d"].to_pylist()]
    assert columns.to_arrow(decimals={"d": digits})["d"].to_pylist() == table["d"].to_pylist()


def test_too_large_a_decimal_is_refused() -> None:
    with pytest.raises(ValueError, match="no integers of 64 bits"):
        Repairs(decimals={"d": 0}).columns(pa.table({"d": pa.array([Decimal(10**19)])}))


def test_a_frame_over_a_file_with_both(tmp_path: Path) -> None:
    chance = Random(5)
    rows = [
        (n, chance.choice("ab"), chance.choice([None, Decimal(chance.randint(0, 999)).scaleb(-2)])) for n in range(200)
    ]
    table = pa.table({"t": [r[0] for r in rows], "k": [r[1] for r in rows], "p": pa.array([r[2] for r in rows])})
    pq.write_table(table, tmp_path / "prices.parquet")
    for source in (tmp_path / "prices.parquet", table):
        plan = frame(source, time="t", moments=False, missing="drop", decimals={"p": 2}).group_by("k").window(50)
        found = collect(plan.agg(col("p").sum()), to="polars")
        expected: pl.DataFrame = (
            pl.DataFrame({"t": [r[0] for r in rows], "k": [r[1] for r in rows], "p": [r[2] for r in rows]})
            .drop_nulls()
            .group_by("k", (pl.col("t") // 50 * 50 + 50).alias("window_end"))
            .agg((pl.col("p").sum() * 100).cast(pl.Int64))
        )
        assert sorted(found.select("k", "window_end", "p").rows()) == sorted(
            expected.select("k", "window_end", "p").rows()
        )
