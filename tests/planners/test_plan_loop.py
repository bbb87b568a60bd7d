"""The closed loop around a join on the engine: selectivities change, the loop replans once, and no result changes."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.errors import ConstructionError
from dataflow.testing import simulate
from megaphone.plans import Query
from planners.plans import JoinSample, PlanDriver, ReplanLoop
from planners.plans.watching import watch
from tests.plans.cases import Epochs, oracle

NAMES = ("a", "b", "c", "d")
WINDOW, TIMES, CHANGE, EVERY, KEYS = 12, 120, 48, 12, 6
QUERY = Query(NAMES, WINDOW, on=0)
FIRST = "((a b) c) d"


def records(worker: int, workers: int) -> Epochs:
    """Until the change a is rare, then d. Each worker sends part of it."""
    chance = Random(7)
    epochs: Epochs = []
    for time in range(TIMES):
        rare = "a" if time < CHANGE else "d"
        epoch: dict[str, list[Any]] = {name: [] for name in NAMES}
        for i, name in enumerate(NAMES):
            inside = name != rare or chance.random() < 0.1
            record = (chance.randrange(KEYS) if inside else 1000 + time, f"{name}{time}")
            if (time + i) % workers == worker:
                epoch[name].append(record)
        epochs.append(epoch)
    return epochs


async def main(worker: dataflow.Worker, method: str, strategy: str | None, dry_run: bool) -> Any:
    out: list[Any] = []
    heard: list[JoinSample[Any]] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs, streams = {}, {}
        for name in NAMES:
            inputs[name], streams[name] = scope.input(name)
        watch(streams, EVERY, heard.append, size=200)
        joined = megaphone.window_join(configuration, streams, QUERY, plan=FIRST, bins=4)
        probe = joined.inspect(lambda t, r: out.append((t, r))).probe()
    controller = megaphone.Controller(control, joined)
    loop = ReplanLoop(method, least=10)
    driver = PlanDriver[Any, Any](controller, WINDOW, loop, key_of=QUERY.key_of, dry_run=dry_run,
                                  strategy=megaphone.fluid() if strategy == "fluid" else None)  # fmt: skip
    for time, epoch in enumerate(records(worker.index, worker.peers)):
        for name in NAMES:
            inputs[name].send(epoch[name])
            inputs[name].advance_to(time + 1)
        while heard:
            driver.hear(heard.pop(0))
        driver.step()
        controller.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    plans = controller.plans
    for handle in inputs.values():
        handle.close()
    control.close()
    await probe.wait_done()
    return out, [(d.acts, d.plan) for d in driver.decisions], plans


def expected() -> dict[int, Counter[Any]]:
    return oracle(QUERY, records(0, 1))


@pytest.mark.parametrize(
    ("workers", "method", "strategy"), [(1, "moving-state", None), (2, "hybmig", "fluid"), (3, "parallel-track", None)]
)
def test_the_loop_replans_once_and_no_result_changes(workers: int, method: str, strategy: str | None) -> None:
    for seed in range(2):
        results = simulate(main, method, strategy, False, workers=workers, seed=seed)
        found: dict[int, Counter[Any]] = {}
        for out, _, _ in results:
            for time, result in out:
                found.setdefault(time, Counter())[result] += 1
        assert found == expected() and sum(map(len, found.values())) > 100
        _, decisions, plans = results[0]
        assert [acts for acts, _ in decisions].count(True) == 1, decisions
        when = [acts for acts, _ in decisions].index(True)
        assert CHANGE // EVERY < when + 1 <= CHANGE // EVERY + 3, "after the change, and not long after"
        assert len(set(plans)) == 1 and first_joined(plans[0]) & {"d"}
        assert all(not decided for _, decided, _ in results[1:]), "one worker hears and decides"


def first_joined(plan: str) -> set[str]:
    """The streams of the innermost brackets."""
    return set(plan[plan.rindex("(") + 1 :].partition(")")[0].split())


def test_a_dry_run_decides_and_changes_nothing() -> None:
    ((out, decisions, plans),) = simulate(main, "hybmig", None, True, workers=1, seed=0)
    assert any(acts for acts, _ in decisions)
    assert set(plans) == {str(megaphone.plans.trees.parse(FIRST, NAMES))}
    assert sum(map(Counter.total, expected().values())) == len(out)


async def samples(worker: dataflow.Worker, times: int) -> list[JoinSample[int]]:
    heard: list[JoinSample[int]] = []
    with worker.dataflow() as scope:
        one, first = scope.input("one")
        other, second = scope.input("other")
        watch({"a": first, "b": second}, 5, heard.append, size=8, worker=1)
        probe = first.concat(second).probe()
    for time in range(times):
        one.send([time] * (3 - worker.index))
        if worker.index == 0:
            other.send([time])
        one.advance_to(time + 1)
        other.advance_to(time + 1)
        await probe.wait_passed(time)
    one.close()
    other.close()
    await probe.wait_done()
    return heard


def test_samples_are_of_all_workers_and_whole_intervals() -> None:
    for seed in range(4):
        nothing, heard = simulate(samples, 12, workers=2, seed=seed)
        assert nothing == []
        assert [(sample.begin, sample.end) for sample in heard] == [(0, 5), (5, 10), (10, 15)]
        assert [dict(sample.seen) for sample in heard] == [{"a": 25, "b": 5}, {"a": 25, "b": 5}, {"a": 10, "b": 2}]
        for sample in heard:
            assert all(sample.begin <= time < sample.end for each in sample.records.values() for time in each)
            assert sample.seen["b"] == len(sample.records["b"]) and 7 <= len(sample.records["a"]) <= 9


async def of_columns(worker: dataflow.Worker) -> list[JoinSample[Any]]:
    heard: list[JoinSample[Any]] = []
    with worker.dataflow() as scope:
        handle, stream = scope.input("one")
        watch({"a": stream}, 4, heard.append, size=6)
        probe = stream.probe()
    for time in range(8):
        handle.send({"key": [time, -time], "word": [f"x{time}", "y"]})
        handle.advance_to(time + 1)
    handle.close()
    await probe.wait_done()
    return heard


def test_records_of_columns_are_dictionaries() -> None:
    (heard,) = simulate(of_columns, workers=1)
    assert [sample.seen for sample in heard] == [{"a": 8}, {"a": 8}]
    every = [{"key": key, "word": word} for t in range(4, 8) for key, word in ((t, f"x{t}"), (-t, "y"))]
    assert len(heard[1].records["a"]) == 6 and all(record in every for record in heard[1].records["a"])


async def bad(worker: dataflow.Worker) -> None:
    with worker.dataflow() as scope:
        handle, stream = scope.input("one")
        watch({"a": stream}, 0, print)
        handle.close()


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ConstructionError, match="positive number of times"):
        simulate(bad, workers=1)
