"""Partitions of timed sources that fall silent: nobody waits for them, and what they say later is late, or not."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio

from dataflow import Recovery, Worker, sources, windows
from dataflow.columns import Columns
from dataflow.errors import CapabilityError, ConstructionError, TimeError
from dataflow.operators.timed_reading import IdleReading
from dataflow.testing import Crashed, simulate

SPEECH = 20  # records of a partition


class Talkers(sources.Partitions[Any]):
    """Each partition has records at 0, 1, ..., 19; before some of them it is silent for long."""

    def __init__(self, pauses: dict[str, dict[int, float]], columns: bool = False) -> None:
        self._pauses, self._columns = pauses, columns

    async def partitions(self) -> list[str]:
        """Their names."""
        return list(self._pauses)

    async def read(self, partition: str, position: Any) -> Any:
        """The rest of one."""
        for number in range(position or 0, SPEECH):
            await trio.sleep(self._pauses[partition].get(number, 0.1))
            records = [(number, partition)]
            yield number + 1, None, Columns({"t": [number], "p": [partition]}) if self._columns else records


def talkers(chance: Random, columns: bool) -> tuple[Talkers, set[str]]:
    """Some, and those that are never silent for a second."""
    names = ["a", "b", "c", "d"][: chance.randint(2, 4)]
    pauses = {name: {chance.randrange(SPEECH): chance.choice([0.2, 5.0, 100.0])} for name in names}
    quick = {name for name in names if max(pauses[name].values()) < 1}
    return Talkers(pauses, columns), quick


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_each_record_comes_once_on_time_or_late(seed: int, columns: bool) -> None:
    """Those that speak are never late, and their windows come before the silent ones speak again."""
    chance = Random(seed)
    source, quick = talkers(chance, columns)
    out, late = [], []
    passed: list[float] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            time: Any = "t" if columns else lambda record: record[0]
            stream = scope.source(sources.event_timed(source, time, 0, late="stream", idle_after="1s"))
            stream.late.inspect(lambda _, record: late.append(record))
            probe = stream.inspect(lambda now, record: out.append((now, record))).probe()
        await probe.wait_passed(SPEECH - 2)
        passed.append(trio.current_time())
        await probe.wait_done()

    simulate(main, workers=chance.randint(1, 3), seed=seed)
    everything = [(number, name) for name in source._pauses for number in range(SPEECH)]
    assert sorted([record for _, record in out] + late) == sorted(everything)
    assert all(now <= record[0] for now, record in out)
    assert not quick & {name for _, name in late}
    if quick:
        assert max(passed) < 20, "nobody waits for one that is silent for 100 s"


@pytest.mark.parametrize("late", ["count", "error"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_late_records_are_counted_or_an_error(workers: int, late: Any, capfd: pytest.CaptureFixture[str]) -> None:
    source = Talkers({"quick": {}, "slow": {3: 100.0}})

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(sources.event_timed(source, lambda record: record[0], 0, late=late, idle_after="1s"))

    for seed in range(4):
        if late == "error":
            with pytest.raises(TimeError, match="partition 'slow': 1 records came late"):
                simulate(main, workers=workers, seed=seed)
        else:
            simulate(main, workers=workers, seed=seed)
            assert "partition 'slow': 16 late records were left out" in capfd.readouterr().err


def test_one_that_waits_for_room_is_not_silent() -> None:
    """Partitions hold each other up for longer than `idle_after` while what is behind them is slow."""
    late = []

    async def main(worker: Worker) -> None:
        async def slowly(record: Any) -> Any:
            await trio.sleep(3)
            return record

        with worker.dataflow() as scope:
            talkers = Talkers({"a": {}, "b": {}})

            def time(record: Any) -> int:
                return int(record[0]) * (1 if record[1] == "a" else 2)

            source = sources.event_timed(talkers, time, 0, late="stream", idle_after="1s")
            stream = scope.source(source, ahead=1)
            stream.late.inspect(lambda _, record: late.append(record))
            stream.map_async(slowly, concurrency=1).inspect(lambda *_: None)

    for seed in range(3):
        simulate(main, workers=1 + seed % 2, seed=seed)
    assert not late


@pytest.mark.parametrize("seed", range(12))
def test_through_crashes(seed: int) -> None:
    """Each record counts once, on time or late, in whichever life; also if silence lasts from one to the next."""
    chance = Random(seed)
    source, quick = talkers(chance, False)
    counts: dict[int, int] = {}
    late: dict[Any, int] = {}

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            given = sources.event_timed(source, lambda record: record[0], 2, late="stream", idle_after="1s")
            stream = scope.source(given)
            kept = windows.window(stream, windows.tumbling(5), key=lambda _: 0, time=lambda r: r[0], n="count")
            kept.inspect(lambda _, row: counts.__setitem__(row["window_end"], row["n"]))
            behind = windows.window(
                stream.late, windows.tumbling(1000), key=lambda r: r[1], time=lambda _: 500, name="late", n="count"
            )
            behind.inspect(lambda _, row: late.__setitem__(row["key"], row["n"]))

    kept = Recovery(f"memory://idle {seed}", every=0.3)
    lives = [*(chance.randint(50, 600) for _ in range(3)), None]
    for turns in lives:
        try:
            simulate(main, workers=chance.randint(1, 3), seed=seed, recovery=kept, crash_after=turns)
            break
        except Crashed:
            continue
    assert sum(counts.values()) + sum(late.values()) == SPEECH * len(source._pauses)
    assert not quick & set(late)


@pytest.mark.parametrize("seed", range(8))
def test_workers_join_and_leave_while_partitions_are_silent(seed: int) -> None:
    chance = Random(seed)
    source, quick = talkers(chance, False)
    out, late, states = [], [], []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.source(
                sources.event_timed(source, lambda record: record[0], 0, late="stream", idle_after="1s")
            )
            stream.late.inspect(lambda _, record: late.append(record))
            stream.inspect(lambda _, record: out.append(record))
        if worker.index == 0:
            for workers in (3, 1, 2):
                await trio.sleep(chance.choice([0.5, 3.0]))
                change = worker.scale(workers)
                await change.over()
                states.append(change.state)

    simulate(main, workers=2, seed=seed, turns=200_000)
    assert sorted(out + late) == sorted((number, name) for name in source._pauses for number in range(SPEECH))
    assert states[0] == "done" and not quick & {name for _, name in late}


def test_the_tests_find_workers_that_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tidings a silent worker stays where it is, and everybody waits for it."""
    monkeypatch.setattr(IdleReading, "_tell", lambda self, active: None)
    caught = 0
    for seed in range(12):
        try:
            test_each_record_comes_once_on_time_or_late(seed, False)
        except AssertionError as error:
            caught += "nobody waits" in str(error)
    assert caught


def test_the_tests_find_partitions_that_are_silent_while_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataflow.operators.silence.Silence.begin", lambda self, partition: None)
    with pytest.raises((AssertionError, CapabilityError)):
        test_one_that_waits_for_room_is_not_silent()


def test_what_is_refused() -> None:
    with pytest.raises(ConstructionError, match="idle_after is a duration above zero"):
        sources.event_timed(Talkers({}), "t", idle_after=0)
