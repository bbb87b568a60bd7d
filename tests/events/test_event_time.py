"""Records in any order become timestamps and frontiers: against a plain program, under seeds."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
import trio

import dataflow
from dataflow import Worker
from dataflow.columns import Columns
from dataflow.errors import ConstructionError, TimeError
from dataflow.events.watermarks import Watermarks
from dataflow.testing import simulate
from tests.events.oracle import Event, some_events, split_late

SEEDS = range(25)


def case(seed: int) -> tuple[list[list[Event]], int]:
    """The events of each worker, and a delay."""
    chance = Random(seed)
    peers = chance.randint(1, 3)
    dealt = [some_events(chance, chance.randint(0, 30), chance.choice([0, 2, 8])) for _ in range(peers)]
    return dealt, chance.choice([0, 1, 3, 20])


def feed(worker: Worker, handle: Any, mine: list[Event], chance: Random, columns: bool) -> None:
    """Sends records in random batches, at times that mean nothing."""
    place, now = 0, 0
    while place < len(mine):
        size = chance.randint(1, 6)
        part = mine[place : place + size]
        if columns:
            times, keys, values = zip(*part, strict=True)
            handle.send({"t": np.array(times), "key": list(keys), "value": np.array(values)})
        else:
            handle.send(part)
        place += size
        now += chance.randint(0, 2)
        handle.advance_to(now)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("columns", [False, True])
def test_records_come_out_at_their_times_and_late_ones_beside(seed: int, columns: bool) -> None:
    dealt, delay = case(seed)
    counted: list[Any] = []
    late: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            timed = stream.event_time("t" if columns else (lambda e: e[0]), delay, every=1, late="stream")
            timed.count(lambda e: e[1]).inspect(lambda time, pair: counted.append((time, pair)))
            timed.late.inspect(lambda _, record: late.append(tuple(record)))
        feed(worker, handle, dealt[worker.index], Random(seed * 10 + worker.index), columns)

    simulate(main, workers=len(dealt), seed=seed)
    expected: Counter[Any] = Counter()
    expected_late: list[Event] = []
    for mine in dealt:
        on_time, too_late = split_late(mine, delay)
        expected.update((time, key) for time, key, _ in on_time)
        expected_late += too_late
    assert sorted(counted) == sorted((time, (key, n)) for (time, key), n in expected.items())
    assert sorted(late) == sorted(expected_late)


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_sent_whole_and_not_after_any_of_their_rows(seed: int) -> None:
    dealt, delay = case(seed)
    sent: list[tuple[int, list[int]]] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            timed = stream.event_time("t", delay, late="count")
            timed.inspect_batch(lambda time, batch: sent.append((time, batch["t"].tolist())))
        feed(worker, handle, dealt[worker.index], Random(seed), True)

    simulate(main, workers=len(dealt), seed=seed)
    assert all(time <= min(times) for time, times in sent)
    kept = sorted(time for _, times in sent for time in times)
    assert kept == sorted(event[0] for mine in dealt for event in split_late(mine, delay)[0])


def test_a_source_is_not_paced_by_times_of_another_line() -> None:
    async def main(worker: Worker) -> list[int]:
        out: list[int] = []
        with worker.dataflow() as scope:
            numbers = scope.source([n // 40 for n in range(400)], batch=2, ahead=2)
            numbers.event_time(lambda n: n, 1).count().inspect(lambda time, n: out.append(n))
        return out

    assert simulate(main, workers=1) == [[40] * 10]


def test_moments_have_units_and_zones() -> None:
    start = datetime(2026, 7, 1, 14, tzinfo=UTC).astimezone()

    async def main(worker: Worker) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow(time="s") as scope:
            handle, stream = scope.input()
            timed = stream.event_time(lambda moment: moment, delay="1m")
            timed.inspect(lambda time, moment: out.append(time))
        handle.send([start + timedelta(seconds=90, milliseconds=1), start + timedelta(seconds=30)])
        return out

    second = int(start.timestamp())
    assert sorted(simulate(main, workers=1)[0]) == [second + 30, second + 90]


def test_partitions_have_watermarks_of_their_own() -> None:
    records = [("x", 100), ("y", 3), ("x", 101), ("y", 4), ("y", 1)]

    async def main(worker: Worker) -> tuple[list[Any], list[Any]]:
        out: list[Any] = []
        late: list[Any] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            timed = stream.event_time(lambda r: r[1], 2, partition=lambda r: r[0], late="stream")
            timed.inspect(lambda time, record: out.append((time, record)))
            timed.late.inspect(lambda time, record: late.append(record))
        handle.send(records)
        return out, late

    ((out, late),) = simulate(main, workers=1)
    assert sorted(out) == sorted((time, (part, time)) for part, time in records[:4])
    assert late == [("y", 1)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("idle", [None, "10s"])
def test_a_silent_worker_holds_nobody_back_if_told_so(seed: int, idle: str | None) -> None:
    """Worker 1 keeps its input open and sends nothing: times complete if and only if it may be idle."""

    async def main(worker: Worker) -> bool:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.event_time(lambda t: t, 5, idle_after=idle).probe()
        if worker.index == 0:
            handle.send([10, 40])
        with trio.move_on_after(1000):
            await probe.wait_passed(30)
        passed = probe.passed(30)
        handle.close()
        return passed

    assert set(simulate(main, workers=2, seed=seed)) == {idle is not None}


def test_idle_partitions_of_one_worker() -> None:
    async def main(worker: Worker) -> tuple[bool, bool, list[Any]]:
        late: list[Any] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            timed = stream.event_time(lambda r: r[1], 5, partition=lambda r: r[0], idle_after="10s", late="stream")
            timed.late.inspect(lambda time, record: late.append(record))
            probe = timed.probe()
        handle.send([("x", 50), ("y", 10)])
        for step in range(8):
            await trio.sleep(4)
            handle.send([("x", 60 + step)])
            if step == 0:
                await trio.sleep(1)
                before = probe.passed(30)
        await trio.sleep(1)
        after = probe.passed(30)
        handle.send([("y", 11)])
        handle.close()
        await probe.wait_done()
        return before, after, late

    assert simulate(main, workers=1) == [(False, True, [("y", 11)])]


def test_late_records_are_an_error_unless_somebody_says(capfd: pytest.CaptureFixture[str]) -> None:
    async def main(worker: Worker, late: Any) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.event_time(lambda t: t, 5, late=late, name="clock")
        handle.send([30, 26, 3])

    with pytest.raises(TimeError, match=r"clock: 1 records came late, by up to 22 .* longer delay=") as error:
        simulate(main, "error", workers=1)
    assert "the first: 3" in str(error.value.__notes__)
    simulate(main, "count", workers=1)
    assert capfd.readouterr().err == "clock: 1 late records were left out, late by up to 22 units of time\n"
    with pytest.raises(ConstructionError, match="late is 'error', 'stream' or 'count', not 'maybe'"):
        simulate(main, "maybe", workers=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": 3}, "needs the name of a column or a function of a record, not 3"),
        ({"delay": "soon"}, "event_time: delay: 'soon' is not a duration"),
        ({"delay": -1}, "event_time: delay is at least 0, not -1"),
        ({"every": 0}, "event_time: every is at least 1, not 0"),
        ({"idle_after": 0}, "idle_after is a duration above zero, not 0"),
        ({"partition": 7}, "partition= names a column or is a function of a record, not 7"),
    ],
)
def test_what_is_refused_when_it_is_built(arguments: dict[str, Any], message: str) -> None:
    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            stream.event_time(**{"time": lambda r: r, **arguments})

    with pytest.raises(ConstructionError, match=message):
        simulate(main, workers=1)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([None], "None is no time: give an integer, a datetime or a datetime64"),
        ([{"t": -4}], "a record is before 1970"),
        (Columns({"t": np.array(["NaT"], "M8[s]")}), "not a time"),
        (Columns({"t": ["soon"]}), "column 't' holds string"),
        (Columns({"t": np.array([np.nan])}), "values that are no times"),
    ],
)
def test_what_is_no_time(batch: Any, message: str) -> None:
    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.event_time((lambda r: r) if batch == [None] else "t")
        handle.send(batch)

    with pytest.raises((TypeError, ValueError, TimeError), match=message):
        simulate(main, workers=1)


def test_marks_one_by_one_and_all_at_once_are_the_same() -> None:
    chance = Random(3)
    for _ in range(200):
        delay = chance.randint(0, 4)
        one, all_ = Watermarks(delay), Watermarks(delay)
        for _ in range(3):
            times = [chance.randint(0, 20) for _ in range(chance.randint(0, 8))]
            places = one.late_of("p", times)
            assert np.flatnonzero(all_.late_in("p", np.array(times, np.int64))).tolist() == places
            assert one.of("p") == all_.of("p")


def test_a_program_with_recovery_is_refused() -> None:
    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            stream.event_time(lambda r: r)

    with pytest.raises(dataflow.DataflowError, match="snapshots know one time line"):
        simulate(main, workers=1, recovery="memory://event time")
