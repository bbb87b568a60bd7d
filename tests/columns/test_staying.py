"""Columns stay columns: through sources, captures, row operators and outputs, and on the way to the caller."""

from __future__ import annotations

import datetime
import io
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dataflow
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.operators.replay import CapturedBatch
from dataflow.testing import simulate

BATCH = Columns({"k": np.arange(5), "word": ["a", "b", None, "d", "e"]})
FRAMES: dict[str, Callable[[], Any]] = {
    "Columns": lambda: BATCH,
    "mapping": lambda: BATCH.to_dict(),
    "lists": lambda: {"k": [0, 1, 2, 3, 4], "word": ["a", "b", None, "d", "e"]},
    "Arrow": BATCH.to_arrow,
    "record batch": lambda: BATCH.to_arrow().to_batches()[0],
    "pandas": BATCH.to_pandas,
    "polars": BATCH.to_polars,
}


def seen(build: Callable[[Any], Any], workers: int = 1, seed: int = 0) -> list[tuple[Any, Any]]:
    """Every (time, batch) of the stream that `build(scope)` gives on worker 0 (None: on none)."""
    batches: list[tuple[Any, Any]] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            build(scope).inspect_batch(lambda time, batch: batches.append((time, batch)))

    simulate(main, workers=workers, seed=seed)
    return batches


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_is_a_source_of_columns(frame: str) -> None:
    assert seen(lambda scope: scope.source(FRAMES[frame]())) == [(0, BATCH)]
    assert seen(lambda scope: scope.source(FRAMES[frame])) == [(0, BATCH)]
    cut = [(0, BATCH.slice(0, 2)), (1, BATCH.slice(2, 4)), (2, BATCH.slice(4, 5))]
    assert seen(lambda scope: scope.source(FRAMES[frame](), batch=2)) == cut


@pytest.mark.parametrize("frame", [name for name in FRAMES if name not in ("mapping", "lists")])
def test_a_frame_among_records_is_a_batch_of_its_own(frame: str) -> None:
    def items() -> Iterator[Any]:
        yield from ("x", FRAMES[frame](), BATCH.slice(0, 0), FRAMES[frame](), {"a": 1}, "y")

    expected = [(0, ["x"]), (1, BATCH), (2, BATCH), (3, [{"a": 1}, "y"])]
    assert seen(lambda scope: scope.source(items())) == expected
    times = [time for time, _ in seen(lambda scope: scope.source(items(), batch=3))]
    assert times == [0, 1, 2, 3, 4, 5]

    async def later() -> AsyncIterator[Any]:
        for item in items():
            yield item

    assert seen(lambda scope: scope.source(later()))[1:3] == expected[1:3]


def test_frames_with_times() -> None:
    pairs = [(3, BATCH.to_pandas()), (5, {"k": [1]})]
    assert seen(lambda scope: scope.source(pairs, timed=True)) == [(3, BATCH), (5, Columns({"k": [1]}))]
    with pytest.raises(ConstructionError, match=r"give \(time, columns\) pairs"):
        seen(lambda scope: scope.source(BATCH.to_pandas(), timed=True))


def test_a_stream_of_batches_is_read_batch_by_batch() -> None:
    table = pa.Table.from_batches([BATCH.to_arrow().to_batches()[0]] * 3)
    assert seen(lambda scope: scope.source(table.to_reader())) == [(0, BATCH), (1, BATCH), (2, BATCH)]


@pytest.mark.parametrize("series", [pd.Series([1, 2]), pl.Series([1, 2]), pa.chunked_array([[1], [2]])], ids=repr)
def test_a_single_column_is_an_iterable_of_records(series: Any) -> None:
    values = list(series)
    assert seen(lambda scope: scope.source(series)) == [(0, values)]

    async def main(worker: dataflow.Worker) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.inspect(lambda _, record: out.append(record))
        handle.send(series)
        return out

    assert simulate(main, workers=1) == [values]


def test_what_a_step_gives_is_columns_if_it_is_a_mapping_or_a_frame() -> None:
    def giving(batch: Any) -> Any:
        def step(input: Any, output: Any) -> None:
            for message, _ in input:
                output.give(message, batch)

        return seen(lambda scope: scope.source(["x"]).unary("give", lambda _: step))

    for frame in FRAMES.values():
        assert giving(frame()) == [(0, BATCH)]
    with pytest.raises(TypeError, match="must give a list of records, not 'text'"):
        giving("text")


# Capture and replay


def captured(into: Callable[[Any], Any]) -> None:
    seen(lambda scope: scope.source([BATCH, "row", BATCH.slice(0, 2)]).capture(into))


def test_a_capture_keeps_columns() -> None:
    events: list[Any] = []
    captured(events.append)
    records = [event for event in events if isinstance(event, CapturedBatch)]
    assert records == [CapturedBatch(0, BATCH), CapturedBatch(1, ("row",)), CapturedBatch(2, BATCH.slice(0, 2))]
    expected = [(0, BATCH), (1, ["row"]), (2, BATCH.slice(0, 2))]
    assert seen(lambda scope: scope.replay(events)) == expected
    columns = [event for event in events if event != CapturedBatch(1, ("row",))]
    filtered = seen(lambda scope: scope.replay(columns).columns.filter(lambda batch: batch["k"] > 0))
    assert filtered == [(0, BATCH.slice(1, 5)), (2, BATCH.slice(1, 2))]


def test_a_captured_file_keeps_columns() -> None:
    file, events = io.BytesIO(), list[Any]()
    writer = dataflow.EventWriter(file)
    captured(lambda event: (writer.write(event), events.append(event)))
    file.seek(0)
    assert list(dataflow.read_events(file)) == events


# Row operators on columns


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.filter(lambda row: row[0] != 3),
        lambda stream: stream.branch(lambda row: row[0] != 3)[0],
        lambda stream: stream.partition(3, lambda row: 2 if row[0] == 3 else 1)[1],
        lambda stream: stream.exchange(lambda row: row[1]).filter(lambda row: row[0] != 3),
        lambda stream: stream.delay(lambda time, row: time + row[0]).filter(lambda row: row[0] != 3),
        lambda stream: stream.broadcast().filter(lambda row: row[0] != 3),
        lambda stream: stream.inspect(lambda time, row: None).concat(stream.filter(lambda _: False)).filter(
            lambda row: row[0] != 3
        ),
        lambda stream: stream.iterate(
            lambda inner: (inner.filter(lambda row: False), inner.filter(lambda row: row[0] != 3))
        ),
    ],
    ids=["filter", "branch", "partition", "exchange", "delay", "broadcast", "inspect and concat", "iterate"],
)
def test_row_operators_that_pass_records_on_leave_columns_columns(build: Any, workers: int) -> None:
    found: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.source(BATCH if worker.index == 0 else [])
            build(stream).inspect_batch(lambda _, batch: found.append(batch))

    simulate(main, workers=workers)
    assert {type(batch) for batch in found} == {Columns} and {batch.names for batch in found} == {BATCH.names}
    rows = {row for batch in found for row in batch.rows()}
    assert rows == {row for row in BATCH.rows() if row[0] != 3}


def test_delayed_rows_and_columns_both_arrive() -> None:
    delayed = seen(lambda scope: scope.source(["x", BATCH]).delay(lambda time, record: 7))
    assert delayed == [(7, ["x"]), (7, BATCH)]


# Results and sinks


def test_columns_come_back_from_two_workers_and_through_sinks() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        written: list[Any] = []

        async def write(time: int, batch: Any) -> None:
            written.append((time, batch))

        with worker.dataflow() as scope:
            stream = scope.source(BATCH if worker.index == 0 else [])
            stream.columns.exchange("k").sink(write)
            probe = stream.probe()
        await probe.wait_done()
        return {"batch": BATCH, "written": written}

    first, second = dataflow.execute(main, workers=2)
    assert first["batch"] == second["batch"] == BATCH
    parts = [batch for result in (first, second) for _, batch in result["written"]]
    assert len(parts) == 2 and sorted(row for part in parts for row in part.rows()) == BATCH.rows()


# Masks


MASKED = np.ma.array([1, 3, 2], mask=[False, False, True])


class Quantity(np.ndarray[Any, Any]):
    """An array with a unit."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: Columns({"a": MASKED}),
        lambda: Columns({"a": np.arange(3)}).with_columns({"b": MASKED}),
        lambda: Columns({"a": [1, np.ma.masked]}),
        lambda: Columns({"a": [1, 2, 3]}).filter(np.ma.array([True] * 3, mask=[False, True, False])),
        lambda: seen(lambda scope: scope.source({"a": MASKED}).columns.aggregate(total=("sum", "a"))),
    ],
)
def test_masked_values_are_refused_as_missing_ones_are(make: Any) -> None:
    with pytest.raises(TypeError, match=r"masked values.* fill them in"):
        make()


def test_arrays_of_other_classes() -> None:
    whole = np.ma.array([1, 2], mask=[False, False])
    assert type(Columns({"a": whole})["a"]) is np.ndarray and Columns({"a": whole}).rows() == [(1,), (2,)]
    with pytest.raises(TypeError, match=r"column 'a' is a .*Quantity, and what that adds .*numpy\.asarray"):
        Columns({"a": np.arange(3).view(Quantity)})


def test_moments_with_a_zone_can_be_columns_again() -> None:
    moment = datetime.datetime(2026, 3, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    batch = Columns({"at": [moment]})
    assert Columns({"at": batch["at"]}) == batch
    assert batch.with_columns({"n": batch["at"].astype("i8")}).select(["at"]).rows() == [(moment,)]
    assert type(Columns({"n": batch["at"].astype("i8")})["n"]) is np.ndarray


def test_a_mapped_file_is_an_array(tmp_path: Any) -> None:
    np.arange(4).tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", np.int64, "r")
    assert type(Columns({"a": mapped})["a"]) is np.ndarray and Columns({"a": mapped}).rows() == [(0,), (1,), (2,), (3,)]
