"""A plan goes straight into a strategy and the controller of `megaphone`, and the state arrives where it says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.migration.strategies import Strategy
from planners import BinMap, Intervals, Plan, PlannerError, Tasks, progressive, schedule, scheduled, ssm, storm

BINS, TIMES, WORKERS = 16, 40, 3
SIZES = [1 + 5 * (b % 4 == 0) for b in range(BINS)]
LOADS = [1 + b % 3 for b in range(BINS)]

STRATEGIES = ["all at once", "batched", "matched", "progressive", "scheduled"]


def make(name: str, plan: Plan) -> Strategy:
    return {
        "all at once": megaphone.all_at_once,
        "batched": lambda: megaphone.batched(2),
        "matched": megaphone.matched,
        "progressive": lambda: progressive(2),
        "scheduled": lambda: scheduled(schedule(plan, pieces=False)),
    }[name]()


def count(time: int, records: list[int], state: dict[int, int], notificator: Any) -> Any:
    for key in records:
        state[key] = state.get(key, 0) + 1
    yield from ((key, state[key]) for key in set(records))


async def main(worker: dataflow.Worker, name: str) -> Any:
    """From where bins begin to an even split, and then to two nodes, each time as a planner says."""
    out: list[Any] = []
    plans: list[Plan] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS, interval=0.0)
        probe = counts.inspect(lambda t, r: out.append((t, r))).probe()
    controller = megaphone.Controller(control, counts)
    for time in range(TIMES):
        data.send([(time * 7 + worker.index) % 23, time % 3])
        if worker.index == 0 and time >= 2 and len(plans) < 2 and not controller.busy:
            if not plans:
                current = BinMap(controller.configuration, range(WORKERS))
                plan = storm(current, nodes=WORKERS, sizes=SIZES, loads=LOADS)
            else:
                arrived = BinMap(controller.configuration, range(WORKERS)).intervals()
                plan = ssm(arrived, nodes=2, sizes=SIZES, loads=LOADS, tau=0.3)
            plans.append(plan)
            controller.migrate(to=plan.map(), strategy=make(name, plan))
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(TIMES - 1)
    return out, controller.configuration, plans


def expected() -> Counter[Any]:
    state: Counter[int] = Counter()
    out: Counter[Any] = Counter()
    for time in range(TIMES):
        keys = [key for index in range(WORKERS) for key in ((time * 7 + index) % 23, time % 3)]
        state.update(keys)
        out.update((time, (key, state[key])) for key in set(keys))
    return out


@pytest.mark.parametrize("name", STRATEGIES)
def test_bins_end_where_the_plan_says_and_no_result_changes(name: str) -> None:
    for seed in range(3):
        results = simulate(main, name, workers=WORKERS, seed=seed)
        assert sum((Counter(out) for out, _, _ in results), Counter()) == expected()
        first, second = results[0][2]
        assert first.assignment == second.current, "the second plan begins where the first ended"
        assert len(set(second.map().tolist())) == 2
        for _, configuration, _ in results:
            assert list(configuration) == second.map().tolist()


def test_a_schedule_for_another_assignment_is_refused() -> None:
    plan = ssm(Intervals([0, 8, 16]), nodes=3, sizes=SIZES, loads=LOADS, tau=0.3)
    strategy = scheduled(schedule(plan, pieces=False))
    assert sorted(m.bin for step in strategy.steps(plan.current.map(), plan.map()) for m in step) == [
        task for task, _, _ in plan.moves
    ]
    with pytest.raises(PlannerError, match="plan again from where bins are now"):
        strategy.steps([1] * 16, plan.map())
    with pytest.raises(PlannerError, match="moves task 15, and counts are of 2 tasks"):
        scheduled(schedule(plan), counts=[8, 8])


def in_pieces() -> Plan:
    """From four bins of four finest ones each, of different sizes, to others."""
    return Plan.between(
        "by hand", BinMap([0, 0, 1, 2], range(3)), BinMap([1, 2, 0, 2], range(3)), Tasks([9, 3, 6, 1], [1] * 4)
    )


def test_a_schedule_in_pieces_cuts_bins_along_their_finest_ones() -> None:
    plan = in_pieces()
    when = schedule(plan, uplinks={0: 1.0, 1: 2.0, 2: 1.0})
    assert when.distance == pytest.approx(0) and max(Counter(t.task for t in when.transfers).values()) > 1
    fine = np.repeat(plan.current.map(), 4), np.repeat(plan.map(), 4)
    steps = scheduled(when, counts=[4] * 4).steps(*fine)
    moved = [number for step in steps for move in step for number in move.numbers]
    assert sorted(moved) == np.flatnonzero(fine[0] != fine[1]).tolist()
    phase = {number: place for place, step in enumerate(steps) for move in step for number in move.numbers}
    assert len(steps) == len(when.phases)
    assert any(len({phase[4 * task + i] for i in range(4)}) > 1 for task in (0, 1, 2)), "some bin goes in pieces"


async def pieces_main(worker: dataflow.Worker) -> Any:
    """Bins are laid as the plan has them, and then go in pieces, as scheduled."""
    out: list[Any] = []
    plan = in_pieces()
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        data, stream = scope.input("data")
        counts = megaphone.unary(configuration, stream, key=lambda k: k, fold=count, bins=BINS, interval=0.0)
        probe = counts.inspect(lambda t, r: out.append((t, r))).probe()
    controller = megaphone.Controller(control, counts)
    for time in range(TIMES):
        data.send([(time * 7 + worker.index) % 23, time % 3])
        if worker.index == 0 and time == 0:
            controller.migrate(to=np.repeat(plan.current.map(), 4))
        if worker.index == 0 and time == 10:
            assert not controller.busy
            controller.migrate(to=np.repeat(plan.map(), 4), strategy=scheduled(schedule(plan), counts=[4] * 4))
        controller.advance_to(time + 1)
        data.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(TIMES - 1)
    return out, controller.configuration, controller.progress.steps_done


@pytest.mark.parametrize("seed", range(3))
def test_the_controller_runs_a_schedule_in_pieces(seed: int) -> None:
    results = simulate(pieces_main, workers=WORKERS, seed=seed)
    assert sum((Counter(out) for out, _, _ in results), Counter()) == expected()
    assert list(results[0][1]) == np.repeat(in_pieces().map(), 4).tolist()
    assert results[0][2] == len(schedule(in_pieces()).phases) > 1
