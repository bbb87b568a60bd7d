"""The operator behind a source with partitions: who reads what, at which times, and where it stood."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import dataflow
from dataflow import sources
from dataflow.errors import ConstructionError
from dataflow.operators.positions import Positions
from tests.connectors.lives import Crashed, Lives, Paced
from tests.engine.harness import Run, bag, notes, repeatable

Seen = list[tuple[Any, int, Any]]  # (time, worker, record)
RUNS = [Run(1), Run(3), *(Run(workers, seed=seed) for workers in (1, 2, 3) for seed in range(2))]


class Numbers(sources.Partitions[str]):
    """Partition a has 5 records a0 to a4, and so on: its letter's place in the alphabet says how many."""

    def __init__(self, names: str, **options: Any) -> None:
        self.names = list(names)
        self.acknowledged: list[tuple[str, Any]] = []
        for name, value in options.items():
            setattr(self, name, value)

    async def partitions(self) -> Collection[str]:
        return self.names

    def read(self, partition: str, position: Any) -> Iterator[Any]:
        for number in range(position or 0, 5):
            yield number + 1, number * 10 if self.timed else None, [f"{partition}{number}"]

    async def acknowledge(self, partition: str, position: Any) -> None:
        self.acknowledged.append((partition, position))


def run_source(run: Run, source: sources.Partitions[Any], **options: Any) -> Seen:
    """What a source gives, on which worker."""
    seen: Seen = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.source(source, **options)
            stream.inspect(lambda time, record: seen.append((time, worker.index, record)))

    run(main)
    return seen


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_every_partition_is_read_once_by_one_worker(run: Run) -> None:
    seen = run_source(run, Numbers("abcdefg"))
    assert bag(record for _, _, record in seen) == bag(f"{name}{n}" for name in "abcdefg" for n in range(5))
    by = {name: {worker for _, worker, record in seen if record[0] == name} for name in "abcdefg"}
    assert all(len(workers) == 1 for workers in by.values())
    assert len(set.union(*by.values())) == min(run.workers, 7)
    for worker in range(run.workers):  # a batch at each time, counted from 0
        times = [time for time, other, _ in seen if other == worker]
        assert times == list(range(len(times)))


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_a_source_that_names_its_times(run: Run) -> None:
    seen = run_source(run, Numbers("abc", timed=True), ahead=1)
    assert bag((time, record) for time, _, record in seen) == bag((n * 10, f"{p}{n}") for p in "abc" for n in range(5))


@pytest.mark.parametrize("timed", [False, True])
def test_no_partitions_at_all(timed: bool) -> None:
    for run in RUNS:
        assert run_source(run, Numbers("", timed=timed)) == []


def test_few_partitions_are_open_at_once() -> None:
    most = 0

    class Counted(Numbers):
        open = 0

        async def read(self, partition: str, position: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            nonlocal most
            self.open += 1
            most = max(most, self.open)
            for item in super().read(partition, position):
                await trio.sleep(1)
                yield item
            self.open -= 1

    seen = run_source(Run(1, seed=0), Counted("abcdefgh", at_once=3))
    assert len(seen) == 40 and most == 3


def test_a_source_is_no_further_ahead_than_it_may_be() -> None:
    """Two partitions on each of two workers, behind a sink that takes its time."""
    for timed in (False, True):
        given: list[int] = []
        written: list[int] = []
        far = 0

        async def write(time: int, batch: list[str], written: list[int] = written, given: list[int] = given) -> None:
            nonlocal far
            await trio.sleep(1)
            far = max(far, len(set(given)) - len(set(written)))
            written.append(time)

        async def main(worker: dataflow.Worker, timed: bool = timed, given: list[int] = given) -> None:
            with worker.dataflow() as scope:
                stream = scope.source(Numbers("abcd", timed=timed), ahead=2)
                stream.inspect(lambda time, _: given.append(time)).sink(write)

        Run(2, seed=1)(main)
        assert len(written) == 20 and far <= 4


# With a clock


def test_a_silent_worker_holds_nobody_back_and_new_partitions_are_found() -> None:
    class Growing(sources.Partitions[str]):
        follow = True
        look_every = 0.5

        def __init__(self) -> None:
            self.known = {"a": trio.open_memory_channel[str](99)}

        async def partitions(self) -> Collection[str]:
            return list(self.known)

        async def read(self, partition: str, position: Any) -> AsyncIterator[Any]:
            number = position or 0
            async for record in self.known[partition][1]:
                yield (number := number + 1), None, [record]

    source = Growing()
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.source(source)
            probe = stream.inspect(lambda _, record: seen.append((worker.index, record))).probe()
        if worker.index == 0:
            await trio.sleep(3)
            source.known["a"][0].send_nowait("one")
            await probe.wait_passed(29)  # tenths of a second
            assert 3 <= trio.current_time() < 4
            source.known["b"] = trio.open_memory_channel[str](99)
            source.known["b"][0].send_nowait("two")
            await probe.wait_passed(60)
            assert bag(seen) == [(0, "one"), (1, "two")]
            worker.drop_dataflow(scope)

    Run(3, seed=4)(main)


# What is wrong with a source


class Wrong(sources.Partitions[Any]):
    def __init__(self, found: Any = ("a",), items: Any = (), timed: bool = False) -> None:
        self.found, self.items, self.timed = found, items, timed

    async def partitions(self) -> Any:
        return self.found

    def read(self, partition: str, position: Any) -> Iterator[Any]:
        yield from self.items


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Wrong("abc"), "must give a list of names, not 'abc'"),
        (Wrong([1, 2]), r"must give a list of names, not \[1, 2\]"),
        (Wrong(items=["x"]), r"read\(\) must give \(position, time, batch\), and gave 'x'"),
        (Wrong(items=[(1, 7, ["x"])]), "clicks gave a batch at 7, and says that it names no times"),
        (
            Wrong(items=[(1, 7, ["x"]), (2, 6, ["y"])], timed=True),
            "clicks is at 7 in partition 'a' and cannot go back to 6",
        ),
        (Wrong(items=[(1, None, "word")]), "a list of records, not a str"),
    ],
)
def test_what_is_wrong_with_a_source_is_told(source: Wrong, message: str) -> None:
    with pytest.raises((sources.SourceError, dataflow.TimeError, TypeError), match=message) as failure:
        run_source(Run(2, seed=0), source, name="clicks")
    assert "clicks" in notes(failure.value)


def test_what_a_source_decides_itself_cannot_be_said_twice() -> None:
    with pytest.raises(ConstructionError, match=r"batch, every and timed are .* own business"):
        run_source(Run(), Numbers("a"), batch=7)
    with pytest.raises(ConstructionError, match="ahead must be at least 1"):
        run_source(Run(), Numbers("a"), ahead=0)


# Positions


@repeatable
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 2)), max_size=20),
    st.integers(0, 30),
)
def test_positions_are_those_behind_the_last_record_before_the_cut(steps: list[tuple[str, int, int]], cut: int) -> None:
    """The oracle keeps everything. The limit follows behind time, as the cut stream does."""
    positions, everything = Positions({"a": -1}), [("a", -1, -1)]
    for partition in "ab":
        positions.take_up(partition)
    time = limit = 0
    for number, (partition, forward, behind) in enumerate(steps):
        time += forward
        limit = max(limit, time - behind)
        positions.note(partition, time, number, limit)
        everything.append((partition, time, number))
    cut = max(cut, limit)
    assert positions.before(cut) == {partition: number for partition, time, number in everything if time < cut}


# With snapshots


def counted_rows(folder: Path) -> list[str]:
    return sorted(line for path in folder.glob("*.jsonl") for line in path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("timed", [False, True])
def test_after_a_crash_it_goes_on_where_it_was(tmp_path: Path, seed: int, timed: bool) -> None:
    source = crash_until_done(tmp_path, seed, timed)
    assert counted_rows(tmp_path) == sorted(f'"{name}{n}"' for name in "abcdefg" for n in range(5))
    last = dict(source.acknowledged)
    assert last == dict.fromkeys("abcdefg", 5)
    for name in "abcdefg":
        positions = [position for other, position in source.acknowledged if other == name]
        assert positions == sorted(positions)


def crash_until_done(folder: Path, seed: int, timed: bool) -> Numbers:
    from dataflow import sinks

    chance = random.Random(seed)
    source = Numbers("abcdefg", timed=timed)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(Paced(source, seed), ahead=3).sink(sinks.json_lines(folder))

    lives = Lives(every=chance.choice([1e-9, 0.1, 0.5]))
    for life in range(20):
        try:
            lives.live(main, chance.choice([1, 2, 3]), seed, chance.randrange(20, 250) if life < 6 else None)
            return source
        except Crashed:
            continue
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("workers", [1, 3])
def test_sources_do_not_wait_for_snapshots(workers: int, tmp_path: Path) -> None:
    """The clock of a simulation goes on only when nobody can do anything: here, until everything has been read."""
    read_at: list[float] = []

    async def main(worker: dataflow.Worker) -> None:
        from dataflow import sinks

        with worker.dataflow() as scope:
            stream = scope.source(Numbers("abcdefg"), ahead=1)
            stream.inspect(lambda *_: read_at.append(trio.current_time())).sink(sinks.json_lines(tmp_path))

    Lives(every=1000.0).live(main, workers, 0)
    assert len(read_at) == 35 and max(read_at) < 1


def _one_too_few(self: Positions, cut: Any) -> dict[str, Any]:
    return {name: position - 1 for name, position in right(self, cut).items()}


def _at_the_cut_too(self: Positions, cut: Any) -> dict[str, Any]:
    return right(self, cut + 1)


right = Positions.before


@pytest.mark.parametrize("wrong", [_one_too_few, _at_the_cut_too], ids=lambda wrong: wrong.__name__)
def test_wrong_positions_are_found(tmp_path: Path, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by one record, or by one time: some seed shows it."""
    monkeypatch.setattr(Positions, "before", wrong)
    for seed in range(48):
        folder = tmp_path / str(seed)
        crash_until_done(folder, seed // 2, timed=seed % 2 == 1)
        if counted_rows(folder) != sorted(f'"{name}{n}"' for name in "abcdefg" for n in range(5)):
            return
    raise AssertionError("nobody noticed")
