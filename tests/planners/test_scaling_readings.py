"""From counters to work: what was counted between two readings, on all workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from planners.scaling import OperatorWork, RecordFlow, SourceWork, work_between, workers_needed


@dataclass(frozen=True)
class Edge:
    source: int
    records: int


@dataclass(frozen=True)
class Counted:
    number: int
    name: str
    busy: float
    records_out: int
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Graph:
    number: int
    operators: tuple[Counted, ...]


@dataclass(frozen=True)
class Reading:
    worker: int
    pid: int
    when: float
    busy: float
    dataflows: tuple[Graph, ...]
    thread: float


def reading(worker: int, when: float, times: int, busy: float) -> Reading:
    """A worker that has counted the same again and again: an input, a map named like it, and a loop."""
    operators = (
        Counted(0, "numbers", 0.1 * times, 100 * times, (Edge(-1, 0),)),
        Counted(1, "numbers", 1.0 * times, 100 * times, (Edge(0, 100 * times),)),
        Counted(2, "loop", 0.5 * times, 60 * times, (Edge(1, 100 * times), Edge(2, 60 * times))),
    )
    return Reading(worker, 40 + worker, when, busy, (Graph(0, operators),), thread=busy)


def test_what_was_counted_between_two_readings() -> None:
    before = [reading(0, 10.0, 1, 2.0), reading(1, 10.0, 3, 5.0)]
    after = [reading(1, 14.0, 4, 7.0), reading(0, 14.0, 3, 6.0)]
    work = work_between(before, after, {"numbers": 500.0}, {"numbers": 9.0})
    assert work is not None and (work.seconds, work.workers) == (4.0, 2)
    assert work.sources == [SourceWork("numbers (0.0)", 300, pytest.approx(0.3), 500.0, 9.0)]
    assert work.operators == [
        OperatorWork("numbers (0.1)", 300, pytest.approx(3.0)),
        OperatorWork("loop (0.2)", 480, pytest.approx(1.5)),
    ]
    assert set(work.flows) == {
        RecordFlow("numbers (0.0)", "numbers (0.1)", 300),
        RecordFlow("numbers (0.1)", "loop (0.2)", 300),
        RecordFlow("loop (0.2)", "loop (0.2)", 180),
    }
    assert work.overhead == pytest.approx(6.0 - 4.8)
    # 300 records took 6 seconds of workers, overhead included, and 500 per second are offered.
    assert workers_needed(work).exact == pytest.approx(6.0 / 300 * 500)


def test_to_wait_for_a_processor_is_no_useful_time() -> None:
    one, two = reading(0, 10.0, 1, 1.0), reading(0, 14.0, 2, 5.0)
    alone = work_between([one], [two])
    crowded = work_between([replace(one, thread=0.5)], [replace(two, thread=2.5)])
    assert alone is not None and crowded is not None
    assert workers_needed(crowded).exact == pytest.approx(workers_needed(alone).exact / 2)  # it ran for 2 of 4 seconds


def test_what_main_computes_does_not_count() -> None:
    one, two = reading(0, 10.0, 1, 1.0), reading(0, 14.0, 2, 2.0)
    alone = work_between([one], [two])
    beside_main = work_between([one], [replace(two, thread=4.0)])
    assert alone == beside_main


def test_readings_that_cannot_be_compared() -> None:
    one, two = [reading(0, 10.0, 1, 1.0)], [reading(0, 12.0, 2, 2.0)]
    assert work_between(one, two) is not None
    assert work_between(one, [*two, reading(1, 12.0, 2, 2.0)]) is None  # one has joined
    assert work_between(one, [replace(two[0], pid=99)]) is None  # one was replaced, and counts anew
    assert work_between(one, one) is None and work_between([], []) is None
