"""Windows know what their columns hold from the first batch on: what differs later is refused, wherever it falls."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dataflow
from dataflow.columns import Columns
from dataflow.columns.zones import with_zone
from dataflow.testing import Starving, simulate

BERLIN, ROME = "Europe/Berlin", "Europe/Rome"
FAR = 10**9  # microseconds: windows are of a second


def moments(*numbers: int, zone: str | None = None, unit: str = "us") -> Any:
    return with_zone(np.array(numbers, "M8[us]").astype(f"M8[{unit}]"), zone)


def run(batches: list[Any], workers: int = 1, seed: int = 0, every: int = 1, **aggregates: Any) -> list[Any]:
    """What windows of a second by `k` give for batches, each at a time of its own. Workers send `every` so many."""
    out: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time="us") as scope:
            handle, stream = scope.input()
            windows = stream.columns.tumbling("t", "1s", "k", **(aggregates or {"n": "count"}))
            windows.inspect_batch(lambda time, batch: out.extend(batch.rows()))
        for number, batch in enumerate(batches):
            handle.advance_to(number)
            if number // every % workers == worker.index:
                handle.send(batch)

    scheduler = {"scheduler": Starving()} if seed % 3 else {}
    simulate(main, workers=workers, seed=seed, debug=seed % 2 == 1, **scheduler)
    return sorted(out)


OTHERS = {
    "another zone": (moments(FAR, zone=ROME), "datetime64[us, Europe/Rome]"),
    "no zone": (moments(FAR), "datetime64[us]"),
    "time spans": (np.array([FAR], "m8[us]"), "timedelta64[us]"),
    "integers": (np.array([FAR]), "int64"),
}


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("other", OTHERS)
def test_what_a_time_column_holds_stays_in_whatever_window(other: str, near: bool) -> None:
    column, told = OTHERS[other]
    column = column - (FAR if column.dtype.kind == "i" else np.timedelta64(FAR, "us")) if near else column
    batches = [{"k": [1], "t": moments(0, zone=BERLIN)}, {"k": [2], "t": column}]
    both = [f"datetime64[us, {BERLIN}]", told]
    for seed in range(3):
        with pytest.raises(TypeError, match=_says("t", both)):
            run(batches, seed=seed)
        with pytest.raises(TypeError, match=f"{_says('t', both)}|{_says('t', both[::-1])}"):
            run(batches, workers=2, seed=seed)


@pytest.mark.parametrize("seed", range(20))
def test_workers_whose_keys_never_meet_compare_their_zones(seed: int) -> None:
    """Each key is counted on one worker; that one may never see the other zone."""
    batches = [{"k": [seed], "t": moments(0, zone=BERLIN)}, {"k": [seed + 1], "t": moments(0, zone=ROME)}]
    with pytest.raises(TypeError, match=r"tumbling: column 't' holds datetime64\[us, Europe/"):
        run([*batches, {"k": [0], "t": moments(0, zone=BERLIN)}], workers=3, seed=seed)


@pytest.mark.parametrize("seed", range(10))
def test_a_worker_compares_its_own_batches_whoever_gets_them(seed: int) -> None:
    batches = [{"k": [seed], "t": moments(0, zone=BERLIN)}, {"k": [seed + 1], "t": moments(FAR, zone=ROME)}]
    with pytest.raises(TypeError, match=_says("t", [f"datetime64[us, {zone}]" for zone in (BERLIN, ROME)])):
        run(batches, workers=4, every=2, seed=seed)


def test_a_window_that_gets_two_zones_from_two_workers_names_the_column() -> None:
    """Whether it learns of the other's zone before the window is complete is up to the schedule."""
    batches = [{"k": [1], "t": moments(0, zone=BERLIN)}, {"k": [1], "t": moments(1, zone=ROME)}]
    for seed in range(100):
        with pytest.raises(TypeError, match=r"tumbling: column 't' holds datetime64\[us, Europe/"):
            run(batches, workers=2, seed=seed)


@pytest.mark.parametrize("column", ["k", "when"])
def test_columns_that_are_grouped_by_or_aggregated_too(column: str) -> None:
    def batch(t: int, zone: str) -> dict[str, Any]:
        zoned = moments(5, zone=zone)
        return {"k": zoned if column == "k" else [t], "when": zoned, "t": np.array([t])}

    for workers in (1, 2):
        with pytest.raises(TypeError, match=f"column '{column}' holds datetime64"):
            run([batch(0, BERLIN), batch(FAR, ROME)], workers, last=("max", "when"))


def test_units_widths_and_empty_batches_are_free() -> None:
    parts = [moments(0, zone=BERLIN), moments(FAR, zone=BERLIN, unit="ms"), moments(zone=ROME), moments()]
    rows = run([{"k": np.arange(len(t)), "t": t} for t in parts], workers=2)
    assert [(row[0].isoformat(), *row[1:]) for row in rows] == [
        ("1970-01-01T01:00:01+01:00", 0, 1),
        ("1970-01-01T01:16:41+01:00", 0, 1),
    ]
    mixed = [np.array([1], "i4"), np.array([2.5]), np.array([3], "u8")]
    assert run([{"k": [1], "t": t} for t in mixed]) == [(1_000_000, 1, 3)]


def test_rows_and_missing_columns_are_refused_by_the_operator() -> None:
    with pytest.raises(TypeError, match="tumbling works on columns, and rows came") as raised:
        run([[1, 2]])
    assert not any("types" in note for note in raised.value.__notes__)
    with pytest.raises(KeyError, match="there is no column 't'; there are k"):
        run([Columns({"k": [1]})])


def _says(column: str, kinds: list[str]) -> str:
    return re.escape(f"tumbling: column {column!r} holds {' and '.join(kinds)} in different batches: make them one")
