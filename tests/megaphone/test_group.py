"""Several operators that migrate together: a step is done when all are done, and has the bytes of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.load.statistics import UNKNOWN, Load, Statistics
from megaphone.migration.strategies import Strategy, all_at_once, batched

BINS, TIMES = 8, 40


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "other": "i8", "count": "i8"}, compiled=False)
def count(key, state):
    state.count += 1
    return key, 7 * key, state.count


@megaphone.fold(state={"count": "i8", "more": ("i8", 6)}, output={"other": "i8", "count": "i8"}, compiled=False)
def count_again(key, state):
    state.count += 1
    return key, state.count


def keys_at(time: int, worker: int) -> list[int]:
    return list(range(worker, 300, 2)) if time == 0 else [1 + (time + worker) % 2]


async def main(worker: dataflow.Worker, strategy: Strategy, interval: float | None, at: int) -> Any:
    """Two operators, one behind the other; everything goes to worker 1. What came out, and what was known when."""
    out: list[Any] = []
    told: list[Any] = []
    options: dict[str, Any] = {"bins": BINS, "interval": interval}
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        first = megaphone.state_machine(configuration, stream, key="key", fold=count, **options)
        second = megaphone.state_machine(configuration, first, key="other", fold=count_again, name="2", **options)
        probe = second.inspect_batch(lambda t, batch: out.extend(batch.rows())).probe()
    group = megaphone.Group([first, second])
    controller = megaphone.Controller(control, group)
    for time in range(TIMES):
        data.send({"key": np.array(keys_at(time, worker.index))})
        data.advance_to(time + 1)
        if time == at and worker.index == 0:
            controller.migrate(to=[1] * BINS, strategy=strategy)
        controller.advance_to(time + 1)
        sizes = [handle.statistics.bytes.copy() for handle in (group, first.handle, second.handle)]
        told.append((controller.configuration, sizes, controller.progress))
        await probe.wait_passed(time)
    late = megaphone.Group([first, second])
    assert (late.statistics.bytes == group.statistics.bytes).all()
    assert late.statistics.heavy.keys() == group.statistics.heavy.keys()
    return out, told, controller.busy


def run(strategy: Strategy, interval: float | None = 0.0, at: int = 4, seed: int = 0) -> list[Any]:
    """What worker 0's controller said; the results are those of no migration."""
    results = simulate(main, strategy, interval, at, workers=2, seed=seed)
    totals = Counter(7 * key for time in range(TIMES) for worker in range(2) for key in keys_at(time, worker))
    rows = Counter(row for out, *_ in results for row in out)
    assert rows == Counter((key, n) for key, total in totals.items() for n in range(1, total + 1))
    assert not any(busy for *_, busy in results)
    assert results[0][1][-1][0] == (1,) * BINS
    told: list[Any] = results[0][1]
    return told


def steps_of(told: list[Any]) -> list[list[int]]:
    """The bins of each step."""
    pairs = pairwise(configuration for configuration, *_ in told)
    steps = [[b for b in range(BINS) if before[b] != after[b]] for before, after in pairs]
    return [step for step in steps if step]


@pytest.mark.parametrize("usual", [False, True], ids=["asked for", "the usual one"])
@pytest.mark.parametrize("seed", range(3))
def test_a_budget_counts_the_bytes_of_all_operators(seed: int, usual: bool) -> None:
    together, first, second = run(all_at_once(), seed=seed)[4][1]
    assert (together == first + second).all() and (first[::2] > 0).all() and (second > first).any()
    budget = int(second[::2].max() + 2 * first[::2].max())
    strategy = replace(batched(BINS), usual=budget) if usual else batched(BINS, budget=budget)
    steps = steps_of(run(strategy, seed=seed))
    assert all(together[step].sum() <= budget or len(step) == 1 for step in steps)
    alone = [step for step in steps if len(step) == 1]
    assert len(steps) > 2 and (alone or len(steps) < BINS // 2)


@pytest.mark.parametrize("asked", [None, 1 << 40])
def test_before_anybody_has_told_sizes_bins_go_one_by_one(asked: int | None) -> None:
    """The first report comes after a quarter of an hour."""
    told = run(batched(BINS, budget=asked), interval=1000.0)
    assert not told[-1][1][0].any()
    assert steps_of(told) == [[0], [2], [4], [6]]
    assert told[-1][2] == megaphone.migration.controller.MigrationProgress(4, 4, 4, 4)


def test_an_operator_that_shall_tell_no_sizes_moves_what_is_asked_for() -> None:
    assert steps_of(run(batched(BINS), interval=None)) == [[0, 2, 4, 6]]
    assert steps_of(run(all_at_once(), interval=1000.0)) == [[0, 2, 4, 6]]


def load(worker: int, bins: list[int], sizes: list[int], interval: int = 0, **more: Any) -> Load:
    counts = np.ones(len(bins), np.int64)
    return Load(worker, interval, 1.0, np.array(bins, np.int64), counts, 10 * counts, np.array(sizes, np.int64), **more)


def sizes_of(statistics: Statistics, places: list[int]) -> list[int]:
    return statistics.sizes_of(np.arange(len(places)), np.array(places, np.uint16)).tolist()


def test_a_bin_is_empty_only_if_its_worker_has_told_so() -> None:
    statistics = Statistics(4)
    assert sizes_of(statistics, [0, 1, 0, 1]) == [UNKNOWN] * 4
    statistics.heard(load(1, [1], [50]))
    assert sizes_of(statistics, [0, 1, 0, 1]) == [UNKNOWN, 50, UNKNOWN, 0]
    assert sizes_of(statistics, [0, 0, 0, 1]) == [UNKNOWN, 50, UNKNOWN, 0], "it moved: its last size is known"
    statistics.heard(load(0, [0], [60]))
    assert sizes_of(statistics, [0, 1, 0, 1]) == [60, 50, 0, 0]


def test_a_report_in_parts_tells_of_empty_bins_when_all_of_it_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("megaphone.load.statistics._AT_ONCE", 2)
    statistics = Statistics(4)
    statistics.heard(load(0, [3], [50]))  # the last part may be heard first
    assert sizes_of(statistics, [0] * 4) == [UNKNOWN, UNKNOWN, UNKNOWN, 50]
    statistics.heard(load(0, [0], [60], is_last=False))
    assert sizes_of(statistics, [0] * 4) == [60, 0, 0, 50]


def build(make: Callable[[Any, Any], Any], pins: Any = None) -> None:
    """Builds a group on one worker, and pins keys of it."""

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            _, stream = scope.input("data")
            group = make(scope, lambda by=configuration, bins=BINS: machine(by, stream, bins))
        controller = megaphone.Controller(control, group)
        assert not controller.pins_keys and controller.pinned == {}
        controller.migrate([0] * BINS, pins=pins)

    simulate(main, workers=1)


def machine(configuration: Any, stream: Any, bins: int) -> Any:
    return megaphone.state_machine(configuration, stream, key="key", fold=count, bins=bins)


@pytest.mark.parametrize(
    ("make", "pins", "complaint"),
    [
        (lambda scope, one: megaphone.Group([]), None, "a group needs one operator at least"),
        (lambda scope, one: megaphone.Group([one(), one(bins=4)]), None, "a group of operators with 8 and 4 bins"),
        (lambda scope, one: megaphone.Group([one(), one(scope.input()[1])]), None, "one control stream, and these"),
        (lambda scope, one: megaphone.Group([one(), one().map(str)]), None, "that migratable operators returned"),
        (lambda scope, one: megaphone.Group([one(), one()]), {5: 0}, "a group pins no keys"),
        (lambda scope, one: one().map(str), None, "or a Group of several"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(make: Any, pins: Any, complaint: str) -> None:
    with pytest.raises((dataflow.errors.ConstructionError, TypeError, megaphone.ControlError), match=complaint):
        build(make, pins)


def test_reports_of_a_worker_are_merged_when_every_operator_has_told() -> None:
    from megaphone.migration.group import GroupStatistics

    members = [Statistics(4), Statistics(4)]
    merged = GroupStatistics(members)
    merged.history = []
    members[0].heard(load(0, [0, 2], [5, 6], span=3, until=10))
    assert merged.reports == 0 and merged.bytes.tolist() == [5, 0, 6, 0], "sizes are known at once, reports are not"
    assert sizes_of(merged, [0] * 4) == [UNKNOWN] * 4, "the other operator may have much more"
    members[0].heard(load(0, [0, 2], [7, 6], interval=1, span=4, until=14))
    members[1].heard(load(0, [2, 3], [100, 200], span=9, until=12))
    (report,) = merged.history
    assert (report.bins.tolist(), report.bytes.tolist()) == ([0, 2, 3], [7, 106, 200])
    assert (report.records.tolist(), report.nanoseconds.tolist()) == ([1, 2, 1], [10, 20, 10])
    assert (report.worker, report.interval, report.until, report.span) == (0, 0, 14, 11), "from 4 to 14"
    assert merged.reports == 1 and merged.heavy == {0: report}
    assert sizes_of(merged, [0] * 4) == [7, 0, 106, 200]
    assert sizes_of(merged, [0, 1, 0, 1]) == [7, UNKNOWN, 106, UNKNOWN]


def test_a_step_is_done_when_the_slowest_operator_has_done_it() -> None:
    """Two operators side by side; the second one's input stands still for a while."""

    async def main(worker: dataflow.Worker) -> Any:
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            quick, stream = scope.input("quick")
            slow, other = scope.input("slow")
            operators = [machine(configuration, each, BINS) for each in (stream, other)]
            probes = [operator.probe() for operator in operators]
        controller = megaphone.Controller(control, megaphone.Group(operators))
        if worker.index == 0:
            controller.migrate([1] * BINS, megaphone.fluid())
        seen = []
        for time in range(8 * BINS):
            if time == 20:
                seen.append((controller.progress.steps_done, operators[0].handle.passed(10)))
            controller.advance_to(time + 1)
            quick.advance_to(time + 1)
            if time >= 20:
                slow.advance_to(time + 1)
            await probes[time >= 20].wait_passed(time)
        return seen, controller.progress.steps_done

    (seen, done), _ = simulate(main, workers=2, seed=3)
    assert seen == [(0, True)] and done == BINS // 2
