"""Sources whose times are those of their records: windows over them, through crashes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from dataflow import Recovery, Worker, sources, windows
from dataflow.columns import Columns
from dataflow.errors import ConstructionError, TimeError
from dataflow.testing import Crashed, simulate
from tests.events.oracle import Event, some_events, split_late
from tests.windows import oracle

RESUMED: list[int] = []  # where lives began


def parts(seed: int) -> dict[str, list[Event]]:
    chance = Random(seed)
    return {name: some_events(chance, chance.randint(0, 40), 4) for name in ("x", "y", "z")[: chance.randint(1, 3)]}


def source(given: dict[str, list[Event]], batch: int) -> Any:
    def read(partition: str, position: object) -> Any:
        start = position if isinstance(position, int) else 0
        return ((number + 1, event) for number, event in enumerate(given[partition]) if number >= start)

    return sources.shares(read, list(given), batch=batch)


def expected(given: dict[str, list[Event]], delay: int) -> dict[tuple[str, int], int]:
    kept = [event for events in given.values() for event in split_late(events, delay)[0]]
    return {(key, end): len(records) for key, _, end, records in (oracle.sliding(kept, 6, 3) if kept else [])}


@pytest.mark.parametrize("seed", range(10))
def test_windows_through_crashes(seed: int) -> None:
    """The same results, each window's as without a crash, whatever the number of workers of each life."""
    given = parts(seed)
    chance = Random(seed)
    delay, batch = chance.choice([0, 2, 10]), chance.randint(1, 5)
    out: dict[tuple[str, int], int] = {}

    async def main(worker: Worker) -> None:
        RESUMED.append(worker.resume_at)
        with worker.dataflow() as scope:
            stream = scope.source(sources.event_timed(source(given, batch), lambda e: e[0], delay, late="count"))
            counts = windows.window(
                stream, windows.sliding(6, every=3), key=lambda e: e[1], time=lambda e: e[0], n="count"
            )
            counts.inspect(lambda _, row: out.__setitem__((row["key"], row["window_end"]), row["n"]))

    kept = Recovery(f"memory://timed {seed}", every=0.001)
    for turns in (chance.randint(20, 120), chance.randint(20, 200), None):
        try:
            simulate(main, workers=chance.randint(1, 3), seed=seed, recovery=kept, crash_after=turns)
            break
        except Crashed:
            continue
    assert out == expected(given, delay)


def test_some_lives_went_on_from_a_snapshot() -> None:
    for seed in range(10):
        if not any(RESUMED):
            test_windows_through_crashes(seed)
    assert any(RESUMED)


def test_columns_and_files_of_different_days() -> None:
    """Partitions wait for each other, so that none is late."""
    days = {"a": range(50), "b": range(50, 100)}

    class Tables(sources.Partitions[Any]):
        async def partitions(self) -> list[str]:
            return list(days)

        def read(self, partition: str, position: object) -> Any:
            for first in range(0, 50, 5):
                some = np.array(days[partition][first : first + 5])
                yield first, None, Columns({"t": some, "one": np.ones(len(some), "i8")})

    async def main(worker: Worker) -> list[int]:
        out: list[int] = []
        with worker.dataflow() as scope:
            stream = scope.source(sources.event_timed(Tables(), "t", 0))
            sums = windows.window(stream, windows.tumbling(10), key=(), time="t", total=("sum", "one"))
            sums.inspect_batch(lambda time, batch: out.extend(batch["total"].tolist()))
        return out

    for seed in range(5):
        assert [n for some in simulate(main, workers=2, seed=seed) for n in some] == [10] * 10


def test_late_records_are_an_error_or_counted(capfd: pytest.CaptureFixture[str]) -> None:
    async def main(worker: Worker, late: Any) -> None:
        with worker.dataflow() as scope:
            scope.source(
                sources.event_timed(source({"x": [(30, "a", 1), (3, "a", 2)]}, 5), lambda e: e[0], 5, late=late)
            )

    with pytest.raises(TimeError, match="partition 'x': 1 records came late, by up to 22"):
        simulate(main, "error", workers=1)
    simulate(main, "count", workers=1)
    assert "partition 'x': 1 late records were left out" in capfd.readouterr().err


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_late_records_are_a_stream(seed: int, columns: bool) -> None:
    """Each record comes once, on time or late, as the oracle says; through crashes at least once."""
    given = parts(seed)
    chance = Random(seed)
    delay, batch = chance.choice([0, 2, 10]), chance.randint(1, 5)
    kept, late = [], []

    class Batches(sources.Partitions[Any]):
        async def partitions(self) -> list[str]:
            return list(given)

        def read(self, partition: str, position: object) -> Any:
            for first in range(0, len(given[partition]), batch):
                some = given[partition][first : first + batch]
                names = zip(("t", "k", "v"), zip(*some, strict=True), strict=True)
                yield first, None, Columns({name: list(column) for name, column in names}) if columns else some

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            time: Any = "t" if columns else lambda e: e[0]
            stream = scope.source(sources.event_timed(Batches(), time, delay, late="stream"))
            stream.inspect(lambda now, event: kept.append((now, event)))
            stream.late.inspect(lambda _, event: late.append(event))

    simulate(main, workers=chance.randint(1, 3), seed=seed)
    both = [split_late(events, delay) for events in given.values()]
    assert sorted(event for _, event in kept) == sorted(event for on_time, _ in both for event in on_time)
    assert sorted(late) == sorted(event for _, behind in both for event in behind)
    assert all(now <= event[0] for now, event in kept)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sources.event_timed([1], "t"), "needs a source with partitions that names no times itself"),  # type: ignore[arg-type]
        (lambda: sources.event_timed(source({}, 1), "t", unit="year"), "'year' is not a unit of times"),
        (lambda: sources.event_timed(source({}, 1), "t", late="never"), "late is 'error', 'stream' or 'count'"),  # type: ignore[call-overload]
        (lambda: sources.event_timed(sources.event_timed(source({}, 1), "t"), "t"), "names no times itself"),
    ],
)
def test_what_is_refused(build: Any, message: str) -> None:
    with pytest.raises(ConstructionError, match=message):
        build()
