"""A plan goes straight into a strategy and the controller of `megaphone`, and the state arrives where it says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.migration.strategies import Strategy
from planners import BinMap, Intervals, Plan, PlannerError, progressive, schedule, scheduled, ssm, storm

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
    with pytest.raises(PlannerError, match="pieces=False"):
        scheduled(schedule(plan))
