"""The baselines do what the papers say of them; and what every planner owes, whichever it is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from planners import BinMap, Infeasible, Intervals, Plan, consistent_hashing, oms, redist, simple_ssm, ssm, storm
from planners.intervals.baselines import ring
from tests.planners.oracles import random_case


def one_step_of_oms(current: Intervals, *, nodes: int, sizes: object, loads: object, tau: float) -> Plan:
    return oms(current, steps=[(nodes, tau)], sizes=sizes, loads=loads)[0]  # type: ignore[arg-type]


PLANNERS = [ssm, simple_ssm, one_step_of_oms, storm, consistent_hashing, redist]


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda p: p.__name__)
def test_every_planner_gives_every_task_to_one_of_as_many_nodes_as_asked_for(planner: Callable[..., Plan]) -> None:
    chance = random.Random(11)
    for _ in range(60):
        case = random_case(chance, tasks=5, nodes=4)
        names = chance.sample(range(9), len(case.cuts) - 1)
        current = Intervals(case.cuts, names)
        try:
            plan = planner(current, nodes=case.nodes, sizes=case.sizes, loads=case.loads, tau=float(case.tau))
        except Infeasible:
            continue
        assert len(plan.map()) == case.tasks
        assert set(plan.map().tolist()) <= set(plan.assignment.nodes)
        assert len(plan.assignment.nodes) == case.nodes
        assert set(names) <= set(plan.assignment.nodes) or set(plan.assignment.nodes) <= set(names)
        moved = {task for task, _, _ in plan.moves}
        assert plan.cost == sum(case.sizes[task] for task in moved)
        mean = sum(case.loads) / case.nodes
        expected = max(plan.loads.values()) / mean - 1 if mean else 0.0
        assert plan.balance == pytest.approx(expected)
        assert plan == Plan.between(plan.planner, current, plan.assignment, plan.tasks, plan.tau)


def test_storm_splits_evenly() -> None:
    for m in range(1, 40):
        for nodes in range(1, 12):
            plan = storm(Intervals([0, m]), nodes=nodes, sizes=[1] * m, loads=[1] * m)
            assert isinstance(plan.assignment, Intervals)
            lengths = np.diff(plan.assignment.cuts)
            assert lengths.max() - lengths.min() <= 1
            assert plan.assignment.nodes == tuple(range(nodes))


def test_consistent_hashing_moves_only_what_it_must() -> None:
    for seed in range(20):
        four, five = ring(200, [0, 1, 2, 3], seed).map(), ring(200, [0, 1, 2, 3, 4], seed).map()
        assert set(five[four != five]) <= {4}, "what moves goes to the node that joined"
        request = {"nodes": 4, "sizes": [1] * 200, "loads": [1] * 200, "seed": seed}
        plan = consistent_hashing(ring(200, [0, 1, 2, 3, 4], seed), **request)  # type: ignore[arg-type]
        assert {origin for _, origin, _ in plan.moves} <= {4}, "what moves comes from the node that left"
        assert (plan.map() == four).all()


def test_consistent_hashing_is_even_in_the_mean_and_differs_by_seed() -> None:
    counts: Counter[int] = Counter()
    for seed in range(50):
        counts.update(ring(64, [0, 1, 2, 3], seed).map().tolist())
    assert all(abs(count / (50 * 16) - 1) < 0.15 for count in counts.values())
    assert (ring(64, [0, 1], 1).map() != ring(64, [0, 1], 2).map()).any()


def test_redist_leaves_what_is_balanced_and_balances_the_rest() -> None:
    chance = np.random.default_rng(3)
    loads = chance.integers(1, 9, 100)
    even = storm(BinMap(chance.integers(0, 4, 100).tolist()), nodes=4, sizes=loads, loads=loads).assignment
    assert redist(even, nodes=4, sizes=loads, loads=loads, tau=0.5).moves == []
    skewed = BinMap([0] * 70 + [1] * 10 + [2] * 10 + [3] * 10)
    plan = redist(skewed, nodes=4, sizes=loads, loads=loads, tau=0.05)
    assert plan.met and plan.balance <= 0.05
    assert {origin for _, origin, _ in plan.moves} == {0}


def test_redist_says_when_it_missed_the_bound() -> None:
    plan = redist(BinMap([0, 1]), nodes=2, sizes=[1, 1], loads=[3, 1], tau=0.0)
    assert not plan.met
