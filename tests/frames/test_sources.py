"""Frames over sources with partitions: their times are the source's own, so that there is recovery and scaling."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
import trio

from dataflow import Recovery, Worker, sources
from dataflow.columns import Columns
from dataflow.testing import Crashed, simulate
from megaphone import col, collect, frame
from megaphone.frames.plan import PlannedFrame

ROWS = 30


class Shops(sources.Partitions[Any]):
    """Each has a row every second, out of order by up to two; one is silent for long."""

    async def partitions(self) -> list[str]:
        """Their names."""
        return ["a", "b", "c"]

    async def read(self, partition: str, position: Any) -> Any:
        """The rest of one."""
        for number in range(position or 0, ROWS):
            await trio.sleep(100 if (partition, number) == ("c", 20) else 0.1)
            yield number + 1, None, Columns({"t": [number + number % 3], "shop": [partition], "one": [1]})


def plan(idle_after: str | None = None) -> PlannedFrame:
    given = frame(Shops(), time="t", delay=2, moments=False, late="stream", idle_after=idle_after)
    return given.group_by("shop").window(5).agg(col("one").sum())


def expected() -> Counter[Any]:
    return Counter((shop, (n + n % 3) // 5 * 5) for shop in "abc" for n in range(ROWS))


@pytest.mark.parametrize("seed", range(6))
def test_through_crashes(seed: int) -> None:
    chance = Random(seed)
    out: dict[Any, int] = {}
    late: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = plan().stream(scope)
            stream.inspect(lambda _, row: out.__setitem__(row[:2], row[3]))
            stream.late[0].inspect(lambda _, row: late.append(row))

    kept = Recovery(f"memory://frames {seed}", every=0.3)
    for turns in (chance.randint(50, 600), chance.randint(50, 600), None):
        try:
            simulate(main, workers=chance.randint(1, 3), seed=seed, recovery=kept, crash_after=turns)
            break
        except Crashed:
            continue
    assert out == expected() and not late


@pytest.mark.parametrize("seed", range(4))
def test_workers_join_and_leave_and_nobody_waits_for_the_silent(seed: int) -> None:
    out: Counter[Any] = Counter()
    late: list[Any] = []
    states: list[str] = []
    seen: list[float] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = plan("1s").stream(scope)
            stream.inspect(lambda _, row: (out.update({row[:2]: row[3]}), seen.append(trio.current_time())))
            stream.late[0].inspect(lambda _, row: late.append(row))
        if worker.index == 0:
            change = worker.scale(1 + 2 * (seed % 2))
            await change.over()
            states.append(change.state)

    simulate(main, workers=2, seed=seed, turns=200_000)
    assert states == ["done"]
    assert sum(out.values()) + len(late) == 3 * ROWS and {row[1] for row in late} <= {"c"}
    assert {key: n for key, n in out.items() if key[0] != "c"} == {k: n for k, n in expected().items() if k[0] != "c"}
    assert sum(moment < 20 for moment in seen) >= 10, "windows come while one partition is silent"


def test_files_of_different_days_wait_for_each_other(tmp_path: Path) -> None:
    """And windows of so many rows are cut by time."""
    for day in range(4):
        table = pl.DataFrame({"t": range(day * 100, day * 100 + 100), "k": ["x", "y"] * 50})
        table.write_parquet(tmp_path / f"{3 - day}.parquet")
    given = frame(str(tmp_path), time="t", moments=False)
    found = collect(given.group_by("k").window(50).agg(col("t").count().alias("n")), workers=1, to="polars")
    assert sorted(found["window_start"].to_list()) == sorted([*range(0, 400, 50)] * 2) and set(found["n"]) == {25}
    found = collect(given.group_by("k").count(20).agg(col("t").min(), col("t").count().alias("n")), to="polars")
    assert sorted(found.filter(pl.col("k") == "x")["t"].to_list()) == list(range(0, 400, 40))
    assert set(found["n"]) == {20}
