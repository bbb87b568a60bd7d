"""Windows over dates and moments in columns: pandas and polars say the same, and what cannot be is refused."""

from __future__ import annotations

import datetime as dt
import re
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dataflow
from dataflow.columns import Columns
from dataflow.columns.zones import plain, zone_of
from dataflow.errors import ConstructionError
from dataflow.testing import simulate
from dataflow.time.durations import nanoseconds
from tests.columns.moments import BERLIN, START, UNITS, results, zoned


def frame(chance: Random, unit: str, rows: int, zone: str | None) -> pd.DataFrame:
    """Events of a minute or two, at whole milliseconds if the unit has them."""
    step = 1000 if unit == "s" else 1
    ms = [START * 1000 + chance.randrange(0, 100_000, step) for _ in range(rows)]
    t = pd.Series(np.array(ms, "M8[ms]").astype(f"M8[{unit}]"))
    if zone is not None:
        t = t.dt.tz_localize("UTC").dt.tz_convert(zone)
    return pd.DataFrame({"t": t, "k": [chance.choice([1, 2]) for _ in ms], "n": [chance.randint(-9, 9) for _ in ms]})


def by_pandas(frames: list[pd.DataFrame], size: str, slide: str) -> set[tuple[Any, ...]]:
    """Direct evaluation: (end, key, sum, count) of every window that has a record, one window after the other."""
    whole = pd.concat([f.assign(t=f["t"].astype(f["t"].dtype).astype(_as_ns(f))) for f in frames], ignore_index=True)
    length, step = pd.Timedelta(size).value, pd.Timedelta(slide).value
    ticks = whole["t"].astype("int64")
    expected = set()
    for end in range(int(ticks.min()) // step * step, int(ticks.max()) + length + step, step):
        inside = whole[(ticks >= end - length) & (ticks < end)]
        for key, group in inside.groupby("k"):
            expected.add((end, key, int(group["n"].sum()), len(group)))
    return expected


def _as_ns(frame: pd.DataFrame) -> str:
    tz = frame["t"].dt.tz
    return "datetime64[ns]" if tz is None else f"datetime64[ns, {tz}]"


@pytest.mark.parametrize("seed", range(8))
def test_windows_over_moments_are_those_of_pandas(seed: int) -> None:
    chance = Random(seed)
    zone = chance.choice([None, BERLIN])
    units = [chance.choice(UNITS) for _ in range(3)]  # even of one stream
    frames = [frame(chance, unit, 20, zone) for unit in units]
    size, slide = chance.choice([("10s", "10s"), ("30s", "10s"), ("500ms", "250ms"), ("1m", "20s")])
    given = [Columns(f) if seed % 2 else f for f in frames]

    def build(stream: Any) -> Any:
        as_columns = stream.columns.map(lambda batch: batch)
        return as_columns.columns.sliding("t", size, pd.Timedelta(slide), "k", total=("sum", "n"), count="count")

    out = results(build, [Columns(batch) for batch in given], workers=chance.randint(1, 3), seed=seed)
    got = set()
    for time, batch in out:
        assert zone_of(batch["window_end"]) == zone and batch["window_end"].dtype.kind == "M"
        ends = plain(batch["window_end"]).astype("M8[ns]").astype("i8").tolist()
        assert set(ends) == {time}, "a window comes out at its end, in nanoseconds"
        rows = batch.select(["k", "total", "count"]).rows()
        got |= {(end, *row) for end, row in zip(ends, rows, strict=True)}
    assert got == by_pandas(frames, size, slide)


def test_windows_are_those_of_polars() -> None:
    events = pl.from_pandas(frame(Random(5), "us", 60, BERLIN)).sort("t")
    expected = events.group_by_dynamic("t", every="15s", label="right").agg(
        pl.len().alias("n"), pl.col("n").sum().alias("s")
    )
    (*out,) = results(lambda s: s.columns.tumbling("t", "15s", n="count", s=("sum", "n")), [Columns(events)])
    got = Columns.concat([batch for _, batch in out]).to_polars().sort("window_end").rename({"window_end": "t"})
    assert got.cast({"n": pl.UInt32}).equals(expected) and got.schema["t"] == expected.schema["t"]


@pytest.mark.parametrize(
    "size", [dt.timedelta(seconds=10), np.timedelta64(10, "s"), "10s", pd.Timedelta(10, "s"), 10**10]
)
def test_a_size_in_any_form(size: Any) -> None:
    (only,) = results(
        lambda s: s.columns.tumbling("t", size, n="count"), [{"t": np.array([START, START + 3], "M8[s]")}]
    )
    time, batch = only
    assert time == (START + 10) * 10**9 and batch["window_end"].dtype == "M8[s]" and batch["n"].tolist() == [2]


@pytest.mark.parametrize(
    ("column", "size", "kind"),
    [
        (np.array(["2026-01-01", "2026-01-02"], "M8[D]"), "1d", "M8[D]"),
        (np.array(["2026-01-01", "2026-01-02"], "M8[D]"), "12h", "M8[s]"),
        (np.array([0, 1], "M8[s]"), "250ms", "M8[ms]"),
        (np.array([0, 1], "m8[s]"), "1s", "m8[s]"),
        (np.array([0, 1], "M8[h]"), "1h", "M8[h]"),
        (pa.array([dt.date(2026, 1, 1)], pa.date64()), "2d", "M8[D]"),
        (pa.array([dt.date(2026, 1, 1)], pa.date32()), "2d", "M8[D]"),
        (np.array(["2026-01"], "M8[M]"), "1d", "M8[s]"),
    ],
)
def test_ends_are_of_the_column_s_own_type_or_finer(column: Any, size: str, kind: str) -> None:
    out = results(lambda s: s.columns.tumbling("t", size, n="count"), [{"t": column}])
    ticks = Columns({"t": column})["t"].astype("M8[ns]" if kind[0] == "M" else "m8[ns]").astype("i8")
    length = nanoseconds(size)
    assert {batch["window_end"].dtype for _, batch in out} == {np.dtype(kind)}
    assert [time for time, _ in out] == sorted(set((ticks // length * length + length).tolist()))


def test_a_dataflow_that_counts_something_else() -> None:
    batch = {"t": np.array([START], "M8[s]")}
    ((time, out),) = results(lambda s: s.columns.tumbling("t", "10s", n="count"), [batch], time="ms")
    assert time == (START + 10) * 1000 and out["window_end"][0] == np.datetime64(START + 10, "s")
    ((time, out),) = results(lambda s: s.columns.tumbling("t", 10, n="count"), [batch], time="s")
    assert time == START + 10
    ((time, out),) = results(lambda s: s.columns.tumbling("t", "2s", n="count"), [{"t": [5000]}], time="ms")
    assert time == 6000 == out["window_end"][0]  # integers are the dataflow's own
    split = results(
        lambda s: s.columns.tumbling("t", "250ms", n="count"), [{"t": np.array([0, 300], "M8[ms]")}], time="s"
    )
    assert [(time, sorted(batch["window_end"].astype("i8").tolist())) for time, batch in split] == [(1, [250, 500])]


@pytest.mark.parametrize(
    ("build", "batch", "error", "message"),
    [
        (
            lambda s: s.columns.tumbling("t", "10"),
            None,
            ConstructionError,
            "tumbling: '10' is not a duration: say '10s'",
        ),
        (lambda s: s.columns.sliding("t", "10s", "3s"), None, ConstructionError, "multiple of its slide: 10s and 3s"),
        (
            lambda s: s.columns.tumbling("t", "1s"),
            {"t": np.array(["NaT"], "M8[s]")},
            ValueError,
            "'t' has values that are not a time",
        ),
        (
            lambda s: s.columns.tumbling("t", 5),
            {"t": ["x"]},
            TypeError,
            "column 't' holds string; windows are over integers",
        ),
        (lambda s: s.columns.tumbling("t", 5), {"t": [np.nan]}, ValueError, "'t' has values that are no times"),
        (
            lambda s: s.columns.tumbling("t", 5),
            {"t": np.array([2**63], "u8")},
            ValueError,
            "'t' has values that are no times",
        ),
        (
            lambda s: s.columns.tumbling("t", 5),
            {"t": [2**63 - 3]},
            ValueError,
            "the end of that window is beyond 64 bits",
        ),
        (
            lambda s: s.columns.tumbling("t", "1d"),
            {"t": np.array([5], "m8[Y]")},
            ValueError,
            "a unit of no fixed length",
        ),
    ],
)
def test_windows_that_cannot_be(build: Any, batch: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        results(build, [batch or {"t": [1]}])


def test_windows_of_different_zones_or_of_no_moments_are_refused_by_name() -> None:
    moments = [{"t": zoned(numbers=[START])}, {"t": zoned(zone="UTC", numbers=[START])}]
    with pytest.raises(TypeError, match=r"column 't' holds datetime64.us, Europe/Berlin. and datetime64.us, UTC."):
        results(lambda s: s.columns.tumbling("t", 10**12, n="count"), moments)
    mixed = [{"t": np.array([7], "M8[ns]")}, {"t": [7]}]
    with pytest.raises(TypeError, match=r"column 't' holds .* in different batches: make them one type first"):
        results(lambda s: s.columns.tumbling("t", 10, n="count"), mixed)


@pytest.mark.parametrize(
    ("times", "ends", "first"),
    [(np.array(["1960-01-01"], "M8[s]"), "1960-01-01T00:00:01", "1970"), ([-5], "0", "0"), ([-(10**10)], "-9", "0")],
)
def test_windows_before_the_first_time_say_that_there_are_none(times: Any, ends: str, first: str) -> None:
    says = f"tumbling: column 't' has records of the window that ends at {ends}.* times of a dataflow begin at {first}:"
    with pytest.raises(ValueError, match=says):
        results(lambda s: s.columns.tumbling("t", "1s", n="count"), [{"t": times}])
    with pytest.raises(ValueError, match=r"a record of the window that ends at 10 came at 20: too late"):
        _late_in_a_window()


def _late_in_a_window() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.columns.tumbling("t", 10, n="count")
        handle.send({"t": [5]}, at=20)

    simulate(main, workers=1)
