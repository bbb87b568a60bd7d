"""Planning from tables that are made while the dataflow runs: the log, the tables, and the whole loop with Spark."""

from __future__ import annotations

import runpy
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import trio

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.load.statistics import as_columns
from planners.errors import BadRequest
from planners.live import LiveTables, LoadLog, drift, spark_maker
from planners.loop import Driver, Loop, by_intervals
from planners.model import Intervals, Tasks
from planners.mtm import tables as table_files
from planners.mtm.problem import MTMProblem
from planners.mtm.projection import project
from planners.mtm.transitions import from_history
from planners.spark.command import main as make_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BINS = 16


def count(time: int, records: list[int], state: dict[int, int], notificator: Any) -> Any:
    for key in records:
        state[key] = state.get(key, 0) + 1
    yield from ((key, state[key]) for key in set(records))


# The log


async def logging_main(worker: dataflow.Worker, folder: str) -> Any:
    """Some epochs of a few keys, one of which is pinned in the middle; the log, and the history that it is made of."""
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(
            configuration, stream, key=lambda k: k, fold=count, bins=BINS, interval=0.0, by_key=True
        )
        probe = counts.probe()
    controller = megaphone.Controller(control, counts)
    statistics = controller.statistics
    statistics.history = []
    log = LoadLog(folder, cost="records", every=5, pinned=lambda: controller.pinned, bins_of=controller.bins_of)
    if worker.index == 0:
        statistics.listeners.append(log.hear)
    for time in range(12):
        data.send([7] * 5 + list(range(10)))
        if worker.index == 0 and time == 4:
            controller.migrate(controller.configuration, pins={7: 1})
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time)
    log.flush()
    pinned = sum(load.apart for load in statistics.history)
    columns = as_columns(statistics.history)
    names = ("interval", "worker", "bin", "records")
    return {name: list(map(int, columns[name])) for name in names}, pinned


@pytest.mark.parametrize("seed", range(3))
def test_the_log_is_what_was_reported_and_what_pinned_keys_did(seed: int, tmp_path: Path) -> None:
    (columns, pinned), _ = simulate(logging_main, str(tmp_path), workers=2, seed=seed)
    logged = pq.read_table(tmp_path).to_pylist()
    in_bins = [row for row in logged if row["bytes"]]
    reported = Counter(zip(columns["interval"], columns["worker"], columns["bin"], columns["records"], strict=True))
    wanted = Counter((row["interval"], row["worker"], row["bin"], row["records"]) for row in in_bins)
    assert wanted == Counter({key: n for key, n in reported.items() if key in wanted}) and wanted
    assert all(row["cost"] == row["records"] for row in logged)
    apart = [row for row in logged if not row["bytes"] and row["records"]]
    assert pinned and sum(row["records"] for row in apart) >= pinned  # a sketch may say more, and never less
    assert len({row["bin"] for row in apart}) == 1 and {row["worker"] for row in apart} == {1}


def test_intervals_go_on_after_a_restart(tmp_path: Path) -> None:
    simulate(logging_main, str(tmp_path), workers=2, seed=0)
    first = pq.read_table(tmp_path).column("interval").to_pylist()
    simulate(logging_main, str(tmp_path), workers=2, seed=0)
    both = pq.read_table(tmp_path).column("interval").to_pylist()
    assert len(both) == 2 * len(first) and max(both) == 2 * max(first) + 1
    (tmp_path / "part-999998.parquet").write_bytes(b"not a table")
    with pytest.raises(BadRequest, match="is no log of statistics"):
        LoadLog(tmp_path)
    with pytest.raises(BadRequest, match="cost is 'records' or 'nanoseconds', not 'money'"):
        LoadLog(tmp_path / "other", cost="money")


# The tables

SIZES = [4, 1, 3, 2, 5, 1, 2, 2]
EVEN = [3, 2, 4, 3, 2, 4, 3, 3]


def write_tables(loads: list[int], out: Path) -> None:
    problem = MTMProblem(Tasks(SIZES, loads), from_history([2, 3, 2, 4, 3, 2]), tau=0.8, gamma=0.8)
    table_files.write(out, project(problem))


def settled(live: LiveTables, loads: list[int]) -> list[str]:
    """What is said until nothing more is: waits for what is being made, and for nothing else."""
    said: list[str] = []
    while True:
        if live._making is not None:
            live._making[1].exception()
        text = live.step(loads)
        if not text:
            return said
        said.append(text)


def ask(live: LiveTables, nodes: int, loads: list[int]) -> str:
    live.plan(Intervals([0, 3, 6, 8]), nodes=nodes, sizes=SIZES, loads=loads, tau=0.9)
    return live.last


def test_tables_are_made_used_and_made_anew_when_loads_drift(tmp_path: Path) -> None:
    now = list(EVEN)
    live = LiveTables(tmp_path, lambda out: write_tables(now, out))
    assert ask(live, 2, EVEN) == "ssm, because there are no tables yet"
    assert settled(live, now) == ["tables 1 are being made: there are no tables yet", "tables 1 are in use"]
    assert ask(live, 4, EVEN) == "mtm_aware, from tables 1" and settled(live, now) == []
    now[0], now[7] = 9, 1  # the drift
    begun = live.step(now)
    assert "of the load is elsewhere than in the tables" in begun and live.making
    assert ask(live, 2, EVEN) == "mtm_aware, from tables 1"  # while others are being made
    assert settled(live, now) == ["tables 2 are in use"]
    assert ask(live, 2, now) == "mtm_aware, from tables 2"
    live.close()
    again = LiveTables(tmp_path, lambda out: None)
    assert again.version == 2 and ask(again, 3, now) == "mtm_aware, from tables 2"


def test_what_tables_do_not_know_is_planned_by_ssm_and_has_them_made_anew(tmp_path: Path) -> None:
    live = LiveTables(tmp_path, lambda out: write_tables(EVEN, out))
    settled(live, EVEN)
    assert ask(live, 5, EVEN).startswith("ssm, because the tables are for [2, 3, 4] nodes, not for 5")
    assert settled(live, EVEN)[-1] == "tables 2 are in use"
    ask(live, 5, EVEN)
    assert settled(live, EVEN) == []  # they would be no better
    moved = [100, *EVEN[1:]]
    assert len(settled(live, moved)) == 2 and settled(live, moved) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"tables-{live.version - 1:04d}",
        f"tables-{live.version:04d}",
    ]
    live.close()


def test_tables_that_cannot_be_made_leave_the_old_ones_in_use(tmp_path: Path) -> None:
    write_tables(EVEN, tmp_path / "tables-0003")
    (tmp_path / "tables-0004").mkdir()  # of a run that was killed
    live = LiveTables(tmp_path, spark_maker(tmp_path / "nowhere", ["--tau", "no number"]))
    assert live.version == 3
    drifted = [50, *EVEN[1:]]
    assert "being made" in live.step(drifted)
    assert live._making is not None and live._making[1].exception() is not None
    assert "tables 4 could not be made: python -m planners.spark ended with 2" in live.step(drifted)
    assert ask(live, 2, EVEN) == "mtm_aware, from tables 3"
    rests = [live.step(EVEN), live.step(EVEN)]
    assert rests[0] == "" and rests[1] == "tables 4 are being made: the last making failed"
    live.close()
    with pytest.raises(BadRequest, match="limit above 0"):
        LiveTables(tmp_path, lambda out: None, limit=0.0)


@pytest.mark.parametrize("seed", range(30))
def test_drift_is_what_would_have_to_move(seed: int) -> None:
    """Against an oracle that moves units of load one by one."""
    chance = np.random.default_rng(seed)
    then, now = (np.bincount(chance.integers(0, 6, 40), minlength=6) for _ in range(2))
    moved = sum(max(0, int(a) - int(b)) for a, b in zip(then, now, strict=True))
    assert drift(then, now) == pytest.approx(moved / 40) and drift(then, 7 * then) == 0


# The whole loop

RATES = [1, 1, 2, 3, 2, 1, 2, 3, 3, 2, 1, 2]  # by epoch: so many workers are needed
CAPACITY = 64.0
EPOCHS = 48


async def live_main(worker: dataflow.Worker, live: LiveTables, log: LoadLog) -> Any:
    """A changing rate; after a third the load drifts to other bins. Worker 0 steers."""
    said: list[str] = []
    found: dict[int, int] = {}  # by key, the last count that came here
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS, interval=0.0)
        probe = counts.inspect(lambda _, row: found.update([row])).probe()
    controller = megaphone.Controller(control, counts)
    planner = by_intervals(live.plan, 1.0, capacity=CAPACITY)
    driver = Driver(controller, Loop(planner, patience=1, cool_down=0), least=0)
    if worker.index == 0:
        controller.statistics.listeners.append(log.hear)
        controller.migrate([bin * worker.peers // BINS for bin in range(BINS)])
    for time in range(EPOCHS):
        rate = RATES[time % len(RATES)]
        keys = range(BINS) if time < EPOCHS // 2 else range(BINS // 2)
        if worker.index == 0:
            data.send([key for key in keys for _ in range(int(CAPACITY * rate * 0.9) // len(keys))])
            decision = driver.step()
            said += [live.last] if decision is not None and decision.acts else []
            log.flush()
            if time >= 12 and (text := live.step(controller.statistics.records)):
                said.append(text)
                while live.making and live._making is not None and not live._making[1].done():
                    await trio.to_thread.run_sync(partial(live._making[1].exception))
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time)
    return found, said


def test_the_whole_loop_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    options = ["--nodes", "1:3", "--capacity", str(CAPACITY), "--tau", "1.0", "--tasks", "2", "--bins", str(BINS)]
    options += ["--gamma", "0.3", "--tolerance", "0.01"]  # a few sweeps: Spark takes about a second for each
    made: list[str] = []

    def make(out: Path) -> None:
        made.append(threading.current_thread().name)
        assert make_tables(["run", "--logs", str(log.folder), "--out", str(out), *options], start=lambda _: spark) == 0

    log = LoadLog(tmp_path / "log", cost="records", every=1000)
    live = LiveTables(tmp_path / "tables", make, limit=0.3)
    results = dataflow.execute(live_main, live, log, workers=3, in_process=True)
    live.close()
    answers: Counter[int] = Counter()
    for found, _ in results:
        answers |= Counter(found)  # the greater of two: the last, wherever its bin was then
    right: Counter[int] = Counter()
    for time in range(EPOCHS):
        keys = range(BINS) if time < EPOCHS // 2 else range(BINS // 2)
        right.update({key: int(CAPACITY * RATES[time % len(RATES)] * 0.9) // len(keys) for key in keys})
    assert answers == right
    said = results[0][1]
    assert said[0].startswith("ssm, because there are no tables yet"), said
    assert "tables 1 are in use" in said and any("of the load is elsewhere" in text for text in said), said
    assert "mtm_aware, from tables 1" in said and live.version >= 2, said
    assert 2 <= len(made) <= 4 and all(name.startswith("tables") for name in made)  # beside the stream


EXAMPLE = Path(__file__).parents[2] / "examples" / "live_planning.py"


@pytest.mark.soak
def test_the_example(spark: SparkSession, tmp_path: Path) -> None:
    """The example, with the session of the tests in place of a process of its own. It ends when tables that were made
    after a drift have planned, and checks every total."""
    program = runpy.run_path(str(EXAMPLE))
    made: list[str] = []

    def make(out: Path) -> None:
        made.append(threading.current_thread().name)
        log.flush()
        options = [text for text in program["OPTIONS"] if text not in ("--master", "local[1]")]
        assert make_tables(["run", "--logs", str(log.folder), "--out", str(out), *options], start=lambda _: spark) == 0

    log = LoadLog(tmp_path / "log", cost="records", every=10_000)
    live = LiveTables(tmp_path / "tables", make, limit=0.3)
    said = program["check"](dataflow.execute(program["main"], live, log, workers=3, in_process=True))
    live.close()
    assert said[0] == "ssm, because there are no tables yet", said
    assert "tables 1 are in use" in said and any("of the load is elsewhere" in text for text in said), said
    assert said[-1] == "mtm_aware, from tables 2", said
    assert len(made) >= 2 and all(name.startswith("tables") for name in made)  # beside the stream
    logged = pq.read_table(log.folder).to_pylist()
    assert any(row["records"] and not row["bytes"] for row in logged)  # the key that lives apart
