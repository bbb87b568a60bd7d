"""From what workers count to rates, and from rates to a page: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dataflow
import megaphone
from dataflow.notebook.looks import Look, look
from dataflow.notebook.page import page
from dataflow.run.readings import WorkerReading, read_worker
from dataflow.testing import simulate


def readings(epochs: int) -> list[WorkerReading]:
    """Of three workers, after some epochs of 12 records each."""
    found: list[WorkerReading] = []

    def fold(key: int, value: int, state: Any) -> Any:
        return value, [value]

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("numbers") as scope:
            numbers, stream = scope.input()
            pairs = stream.map(lambda n: (n, 1 // n), errors="stream")
            probe = megaphone.state_machine(scope.control(), pairs, fold=fold, bins=8, name="totals").probe()
        for time in range(epochs):
            numbers.send(range(4))
            numbers.advance_to(time + 1)
        await probe.wait_passed(epochs - 1)
        found.append(read_worker(worker._pump))

    simulate(main, workers=3, seed=1)
    return found


def at(when: float, workers: list[WorkerReading]) -> list[WorkerReading]:
    return [replace(worker, when=when, since=90.0, pid=7) for worker in workers]


def test_rates_are_differences() -> None:
    before, now = at(100.0, readings(2)), at(104.0, readings(6))
    (flow,) = look(before, now).dataflows
    assert flow.rate == (6 - 2) * 12 / 4.0 and flow.records == 72
    (failed,) = [each for each in flow.operators if each.name == "map"]
    assert failed.failed == 18 and failed.rate == 12.0
    (state,) = flow.state
    assert state.name == "totals" and [count for _, count in state.bins] == [3, 3, 2]
    (first,) = look([], before).dataflows
    assert round(first.rate, 6) == 2.4, "since it began"


def test_a_worker_that_was_replaced_counts_from_its_beginning() -> None:
    before, now = at(100.0, readings(2)), at(104.0, readings(2))
    now[0] = replace(now[0], pid=8, since=102.0)
    (flow,) = look(before, now).dataflows
    assert flow.rate == 2 * 4 / 2.0


def test_the_page_says_it_all() -> None:
    looks = [look(at(100.0, readings(2)), at(104.0, readings(6)))]
    shown = page("my <run>", "running", looks)
    texts = ("my &lt;run&gt;", "3 workers", "12 records/s, 72 so far", "complete before", "18 records failed")
    assert all(text in shown for text in texts), shown
    assert shown.count("<svg") == 4 and "worker 2: 2 bins" in shown
    assert "totals" in shown and shown.count("<div") == shown.count("</div>")
    assert "<pre" in page("x", "failed", [], "a < b") and "a &lt; b" in page("x", "failed", [], "a < b")
    assert isinstance(looks[0], Look)
