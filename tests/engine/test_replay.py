"""Capture and replay, in memory and through a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import dataflow
from dataflow.operators.replay import CapturedBatch, CapturedFrontier
from tests.engine.harness import ALONE, RUNS, Run, bag, timed

EPOCHS = [["a", "b", "c"], [], ["d", ("e", 5)]]


def record(run: Run, writers: list[Any]) -> None:
    """Captures EPOCHS, worker by worker, with `writers[i]`."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            probe = stream.capture(writers[worker.index]).probe()
        for time, records in enumerate(EPOCHS):
            handle.send(records[worker.index :: worker.peers])
            handle.advance_to(time + 1)
            await probe.wait_passed(time)

    run(main)


def play(run: Run, *captures: Any, time: Any = int) -> list[Any]:
    """Replays the captures, dealt to the workers."""
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=time) as scope:
            mine = captures[worker.index :: worker.peers]
            scope.replay(*mine).inspect(lambda t, r: seen.append((t, r)))

    run(main)
    return bag(seen)


def test_a_capture_holds_records_and_frontiers_in_order() -> None:
    events: list[Any] = []
    record(Run(), [events.append])
    assert events == [
        CapturedBatch(0, ("a", "b", "c")),
        CapturedFrontier(((1, +1), (0, -1))),
        CapturedFrontier(((2, +1), (1, -1))),
        CapturedBatch(2, ("d", ("e", 5))),
        CapturedFrontier(((3, +1), (2, -1))),
        CapturedFrontier(((3, -1),)),
    ]


@pytest.mark.parametrize("again", RUNS, ids=str)
def test_what_was_captured_on_some_workers_is_replayed_on_others(again: Run) -> None:
    for first in (Run(1), Run(2), Run(3, seed=1)):
        captures: list[list[Any]] = [[] for _ in range(first.workers)]
        record(first, [events.append for events in captures])
        assert play(again, *captures) == timed(*EPOCHS)


def test_a_capture_passes_its_records_on(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.capture(lambda _: None).inspect(lambda t, r: seen.append((t, r)))
        handle.send(["x"])

    run(main)
    assert seen == [(0, "x")] * run.workers


@pytest.mark.parametrize("run", ALONE, ids=str)
def test_frontiers_are_replayed_too(run: Run) -> None:
    first, last = CapturedBatch(0, (1,)), CapturedBatch(5, (2,))
    events = [first, CapturedFrontier(((5, +1), (0, -1))), last, CapturedFrontier(((5, -1),))]
    again: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.replay(events).capture(again.append)

    run(main)
    assert [event for event in again if isinstance(event, CapturedBatch)] == [first, last]
    frontier = {0}  # several changes may have become one
    for event in again:
        if isinstance(event, CapturedBatch):
            assert min(frontier) <= event.time
        else:
            frontier |= {time for time, change in event.changes if change > 0}
            frontier -= {time for time, change in event.changes if change < 0}
    assert frontier == set() and any(isinstance(event, CapturedFrontier) for event in again)


def test_captures_with_partially_ordered_times() -> None:
    events = [
        CapturedBatch((0, 1), ("a",)),
        CapturedFrontier((((0, 2), +1), ((2, 0), +1), ((0, 0), -1))),
        CapturedBatch((2, 1), ("b",)),
        CapturedFrontier((((0, 2), -1), ((2, 0), -1))),
    ]
    assert play(Run(1, seed=0), events, time=dataflow.Product(int, int)) == [((0, 1), "a"), ((2, 1), "b")]


def test_replay_of_nothing_ends(run: Run) -> None:
    assert play(run) == play(run, [], []) == []


def test_through_a_file(tmp_path: Path, run: Run) -> None:
    paths = [tmp_path / f"worker-{index}" for index in range(2)]
    files = [path.open("wb") for path in paths]
    record(Run(2), [dataflow.EventWriter(file).write for file in files])
    for file in files:
        file.close()
    opened = [path.open("rb") for path in paths]
    assert play(run, *map(dataflow.read_events, opened)) == timed(*EPOCHS)
    for file in opened:
        file.close()


def written() -> bytes:
    buffer = io.BytesIO()
    record(Run(), [dataflow.EventWriter(buffer).write])
    return buffer.getvalue()


def test_the_events_of_a_file_are_those_that_were_captured() -> None:
    events: list[Any] = []
    record(Run(), [events.append])
    assert list(dataflow.read_events(io.BytesIO(written()))) == events


def test_a_file_that_was_cut_off_anywhere_raises_after_its_last_whole_event() -> None:
    whole = written()
    events = list(dataflow.read_events(io.BytesIO(whole)))
    ends = boundaries(whole)
    for cut in range(len(whole)):
        reader = dataflow.read_events(io.BytesIO(whole[:cut]))
        readable = sum(1 for end in ends if 0 < end <= cut)
        assert [next(reader) for _ in range(readable)] == events[:readable]
        with pytest.raises(dataflow.DataflowError, match=r"in the middle of an event|before its stream|not a file"):
            next(reader)


def test_no_bit_can_be_flipped_unnoticed() -> None:
    whole = written()
    for position in range(len(whole)):
        damaged = whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
        with pytest.raises(dataflow.DataflowError):
            list(dataflow.read_events(io.BytesIO(damaged)))


def boundaries(data: bytes) -> list[int]:
    """Where events end, each with its length and checksum before it."""
    here = data.index(b"\n") + 1
    out = []
    while here < len(data):
        here += 8 + int.from_bytes(data[here : here + 4], "little")
        out.append(here)
    return out


def test_a_cut_off_file_ends_a_replay_with_its_error() -> None:
    with pytest.raises(dataflow.DataflowError, match="middle of an event"):
        play(Run(), dataflow.read_events(io.BytesIO(written()[:-3])))


def test_records_before_the_frontier_are_called_damage() -> None:
    events = [CapturedFrontier(((5, +1), (0, -1))), CapturedBatch(2, ("early",))]
    with pytest.raises(dataflow.DataflowError, match="the capture is damaged"):
        play(Run(), events)


def test_a_frontier_that_does_not_fit_is_called_damage() -> None:
    with pytest.raises(dataflow.DataflowError, match="damaged"):
        play(Run(), [CapturedFrontier(((5, -1),))])


def test_what_is_no_event_is_named() -> None:
    with pytest.raises((dataflow.DataflowError, TypeError), match="event"):
        play(Run(), [[CapturedBatch(0, ("a",))]])


@pytest.mark.parametrize("frame", [b"\xc1", b"\x05", b"\x93\x01"], ids=["reserved byte", "a number", "half a list"])
def test_a_garbled_file_is_called_so(frame: bytes) -> None:
    data = len(frame).to_bytes(4, "little") + frame
    with pytest.raises(dataflow.DataflowError):
        list(dataflow.read_events(io.BytesIO(data)))


def test_events_that_are_not_plain_data_cannot_be_written() -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.capture(dataflow.EventWriter(io.BytesIO()).write)
        handle.send([object()])

    with pytest.raises(TypeError, match="a object"):
        Run()(main)
