"""Windows on random out-of-order input, in random batches, on several workers, with migrations: as the oracle says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import trio

import megaphone
from dataflow import Recovery, Worker, windows
from dataflow.errors import ConstructionError
from dataflow.testing import Crashed, simulate
from dataflow.windows.aggregates import WindowAggregates
from dataflow.windows.kinds import WindowKind
from dataflow.windows.operator import fold_of
from tests.events.oracle import Event, split_late
from tests.events.test_event_time import case, feed
from tests.windows import oracle

KINDS: dict[str, tuple[WindowKind, Callable[[list[Event]], list[oracle.Found]]]] = {
    "tumbling": (windows.tumbling(5), lambda events: oracle.sliding(events, 5, 5)),
    "sliding": (windows.sliding(6, every=2), lambda events: oracle.sliding(events, 6, 2)),
    "session": (windows.session(3), lambda events: oracle.sessions(events, 3)),
    "count": (windows.count(3), lambda events: oracle.counted(events, 3)),
}


def wanted(value: Any) -> dict[str, Any]:
    return {
        "n": "count",
        "total": ("sum", value),
        "least": ("min", value),
        "most": ("max", value),
        "mean": ("mean", value),
        "variance": ("variance", value),
        "first": ("first", value),
        "last": ("last", value),
        "distinct": ("distinct", value),
        "about": ("approximate_distinct", value),
        "median": ("quantile", value, 0.5),
        "text": ("fold", value, str, lambda text, more: text + str(more)),
    }


LISTS: dict[str, Any] = {"top": ("top", lambda e: e[2], 3), "frequent": ("frequent", lambda e: e[2], 2)}


def run(seed: int, kind: WindowKind, columns: bool, moves: bool, early: int | None = None) -> list[tuple[int, Any]]:
    """(time, row) of all that comes out."""
    dealt, delay = case(seed)
    chance = Random(seed + 99)
    updates = [
        (chance.randint(0, 30), megaphone.Move(chance.randrange(8), chance.randrange(len(dealt)))) for _ in "12345"
    ]
    out: list[tuple[int, Any]] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            control, configuration = scope.input()
            timed = stream.event_time("t" if columns else (lambda e: e[0]), delay, late="count")
            what: dict[str, Any] = {"early": early}
            what |= {"key": "key", "time": "t", **wanted("value")} if columns else {"key": lambda e: e[1], **LISTS}
            what |= {} if columns else wanted(lambda e: e[2])
            if moves:
                result = megaphone.window(configuration, timed, kind, bins=8, **what)
            else:
                result = windows.window(timed, kind, **what)
            result.inspect_batch(lambda time, batch: out.extend((time, row) for row in as_rows(batch)))
        if worker.index == 0:
            for time, move in sorted(updates, key=lambda pair: pair[0]):
                control.send([move], at=time)
        control.close()
        feed(worker, handle, dealt[worker.index], Random(seed * 10 + worker.index), columns)

    simulate(main, workers=len(dealt), seed=seed)
    return out


def as_rows(batch: Any) -> list[dict[str, Any]]:
    if isinstance(batch, list):
        return batch
    return [dict(zip(batch.names, row, strict=True)) for row in batch.rows()]


def on_time(seed: int) -> list[Event]:
    dealt, delay = case(seed)
    return [event for mine in dealt for event in split_late(mine, delay)[0]]


def require(row: dict[str, Any], records: list[Event], columns: bool) -> None:
    expected = oracle.aggregated(records) | ({} if columns else oracle.listed(records))
    low, high = oracle.median_range(records)
    assert low <= row["median"] <= high
    for name, value in expected.items():
        same = math.isnan(value) if isinstance(value, float) and math.isnan(value) else None
        assert math.isnan(row[name]) if same else row[name] == pytest.approx(value), name


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_windows_are_what_they_are_said_to_be(name: str, columns: bool, moves: bool, seed: int) -> None:
    kind, evaluate = KINDS[name]
    expected = {(key, start, end): records for key, start, end, records in evaluate(on_time(seed))}
    found = run(seed, kind, columns, moves)
    where = Counter((row["key"], row["window_start"], row["window_end"]) for _, row in found)
    assert where == Counter(expected.keys())
    for time, row in found:
        assert time == row["window_end"]
        require(row, expected[row["key"], row["window_start"], row["window_end"]], columns)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_early_results_have_what_has_come_and_final_ones_come_once(name: str, moves: bool, seed: int) -> None:
    kind, evaluate = KINDS[name]
    events = on_time(seed)
    found = run(seed, kind, False, moves, early=4)
    final = Counter((row["key"], row["window_start"], row["window_end"]) for _, row in found if row["final"])
    assert final == Counter((key, start, end) for key, start, end, _ in evaluate(events))
    early = [(time, row) for time, row in found if not row["final"]]
    assert early or len(events) < 10
    for time, row in early:
        assert time % 4 == 0 and (name == "count" or row["window_end"] > time)
        if name in ("tumbling", "sliding"):
            inside = [
                event
                for event in events
                if event[1] == row["key"] and row["window_start"] <= event[0] < row["window_end"] and event[0] <= time
            ]
            require(row, inside, False)


def test_state_is_what_open_windows_need() -> None:
    """Nothing is left when all windows have ended, and never more than a few panes."""

    class Wakes:
        def __init__(self) -> None:
            self.due: dict[int, list[Any]] = {}

        def notify_at(self, time: int, record: Any) -> None:
            self.due.setdefault(time, []).append(record)

    for kind in (windows.tumbling(5), windows.sliding(20, every=5), windows.session(3)):
        fold = fold_of("test", kind, WindowAggregates({"n": "count"}, ()), None, "ns")
        wakes, state = Wakes(), {}
        for time in range(2000):
            records = [("a", time, (None,))] if time < 1900 and time % 7 < 4 else []
            fold(time, [*records, *wakes.due.pop(time, [])], state, wakes)  # type: ignore[arg-type]
            assert len(state) <= 1 and all(len(entry[0]) <= 5 and len(entry[1]) <= 3 for entry in state.values())
        assert not state and not wakes.due


def test_recovery_goes_on_with_open_windows() -> None:
    """With times that the source names, windows are saved and restored: results are as without a crash."""
    events = [(n + (3 if n % 4 else 0), "ab"[n % 2], n) for n in range(60)]
    out: dict[tuple[str, int], int] = {}

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            result = windows.window(
                stream, windows.sliding(6, every=3), key=lambda e: e[1], time=lambda e: e[0], n="count"
            )
            result.inspect(lambda _, row: out.__setitem__((row["key"], row["window_end"]), row["n"]))
        for now in range(worker.resume_at, 60):
            handle.advance_to(now)
            if worker.index == 0:
                handle.send([events[now]])
            worker.save(now)
            await trio.sleep(1)

    crashes, kept = 0, Recovery("memory://windows", every=5)
    for turns in (200, 300, 400, None):
        try:
            simulate(main, workers=2, seed=turns or 0, recovery=kept, crash_after=turns)
            break
        except Crashed:
            crashes += 1
    assert crashes
    assert out == {(key, end): len(records) for key, _, end, records in oracle.sliding(events, 6, 3)}


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (windows.tumbling(5), {}, "a window needs an aggregate at least"),
        (windows.tumbling(0), {"n": "count"}, "the size of a window is at least 1, not 0"),
        (windows.sliding(5, every=2), {"n": "count"}, "must be a multiple of its slide: 5 and 2"),
        (windows.session("x"), {"n": "count"}, "'x' is not a duration"),
        (7, {"n": "count"}, "needs a kind of window, such as windows.tumbling"),
        (windows.tumbling(5), {"n": "sum"}, "n='sum' is not an aggregate"),
        (windows.tumbling(5), {"q": ("quantile", "v", 2)}, "'quantile' needs a share between 0 and 1, not 2"),
        (windows.tumbling(5), {"window_end": "count"}, "give the aggregate another name than 'window_end'"),
        (windows.tumbling(5), {"key": "k", "n": "count"}, "columns need time="),
        (windows.tumbling(5), {"key": "k", "time": "t", "n": ("top", "v", 2)}, "lists are no columns"),
    ],
)
def test_what_is_refused(kind: Any, arguments: dict[str, Any], message: str) -> None:
    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            windows.window(stream, kind, **arguments)

    with pytest.raises(ConstructionError, match=message):
        simulate(main, workers=1)


def test_times_and_durations_are_what_python_numpy_and_json_have() -> None:
    def counted(stream: Any) -> Any:
        timed = stream.event_time("t", delay=np.timedelta64(5, "m"), every="1s", idle_after=timedelta(seconds=3))
        kind = windows.sliding(timedelta(minutes=2), every=np.timedelta64(1, "m"))
        return windows.window(timed, kind, n="count", moments="Europe/Berlin")

    texts = ["2026-01-01T01:02:00+01:00", "2026-01-01T00:03:00Z"]
    times = [date(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 5), np.datetime64("2026-01-01T00:01:00"), *texts]
    out: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow(time="s") as scope:
            counted(scope.source([{"t": time} for time in times])).inspect(lambda _, row: out.append(row))

    simulate(main, workers=1)
    hour = datetime(2026, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    found = [((row["window_start"] - hour) // timedelta(minutes=1), row["n"]) for row in out]
    assert found == [(-1, 2), (0, 3), (1, 2), (2, 2), (3, 1)]
    assert str(out[0]["window_end"]) == "2026-01-01 01:01:00+01:00"


def test_a_count_window_has_a_record() -> None:
    with pytest.raises(ConstructionError, match="at least one, not 0"):
        windows.count(0)


def test_a_record_after_the_end_of_its_window_is_an_error() -> None:
    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            windows.window(stream, windows.tumbling(5), time=lambda e: e, n="count")
        handle.send([3], at=7)

    with pytest.raises(ValueError, match="a record of 3 came at 7, after the end of its window at 5"):
        simulate(main, workers=1)
