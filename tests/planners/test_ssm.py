"""`ssm` against plain enumeration, against the paper's repaired recursion, and against a linear relaxation."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from planners import Infeasible, Intervals, Plan, simple_ssm, ssm
from tests.planners.oracles import Case, cheapest, random_case, smallest_tau
from tests.planners.relaxation import most_kept

SIZES, LOADS = [5, 6, 9, 1, 8, 4, 1, 3, 2, 6], [8, 4, 7, 9, 2, 4, 1, 4, 7, 5]


def check_plan(plan: Plan, case: Case) -> None:
    """That the figures of a plan are those of its assignment, and that the assignment is what was asked for."""
    before, after = plan.current.map(), plan.map()
    assert plan.cost == sum(size for size, a, z in zip(case.sizes, before, after, strict=True) if a != z)
    assert plan.moves == [(i, a, z) for i, (a, z) in enumerate(zip(before, after, strict=True)) if a != z]
    assert isinstance(plan.assignment, Intervals)
    assert len(plan.assignment.nodes) == case.nodes
    assert all(plan.loads[node] * case.nodes <= (1 + case.tau) * sum(case.loads) for node in plan.assignment.nodes)
    assert plan.met
    old, new = set(plan.current.nodes), set(plan.assignment.nodes)
    assert old <= new or new <= old, "nodes join or leave, and never both"


def answer(planner: object, case: Case) -> Plan | None:
    """What a planner says, checked; None if it says infeasible, and the tau that it then names is the least."""
    assert callable(planner)
    request = {"nodes": case.nodes, "sizes": case.sizes, "loads": case.loads, "tau": float(case.tau)}
    least = smallest_tau(case.loads, case.nodes)
    if least > case.tau:
        with pytest.raises(Infeasible) as why:
            planner(Intervals(case.cuts), **request)
        assert why.value.smallest_tau == pytest.approx(float(least), abs=1e-12)
        return None
    plan: Plan = planner(Intervals(case.cuts), **request)
    check_plan(plan, case)
    return plan


@pytest.mark.parametrize("seed", range(8))
def test_ssm_is_as_cheap_as_any_assignment(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        case = random_case(chance, tasks=7, nodes=5)
        plan = answer(ssm, case)
        assert (plan and plan.cost) == cheapest(case), case


@pytest.mark.parametrize("seed", range(4))
def test_ssm_equals_the_repaired_recursion(seed: int) -> None:
    chance = random.Random(1000 + seed)
    for _ in range(100):
        case = random_case(chance, tasks=6, nodes=4)
        fast, slow = answer(ssm, case), answer(simple_ssm, case)
        assert (fast and fast.cost) == (slow and slow.cost), case


def test_the_recursion_is_as_cheap_as_any_assignment() -> None:
    chance = random.Random(77)
    for _ in range(150):
        case = random_case(chance, tasks=5, nodes=4)
        plan = answer(simple_ssm, case)
        assert (plan and plan.cost) == cheapest(case), case


@pytest.mark.parametrize(
    ("tau", "costs"),
    [("0.2", [11, 1, None, 9, None]), ("0.5", [11, 1, 1, 9, 9]), ("1.2", [11, 0, 0, 1, 6])],
)
@pytest.mark.parametrize("planner", [ssm, simple_ssm])
def test_the_known_values(planner: object, tau: str, costs: list[int | None]) -> None:
    found = []
    for nodes in range(2, 7):
        plan = answer(planner, Case((0, 4, 7, 10), nodes, tuple(SIZES), tuple(LOADS), Fraction(tau)))
        found.append(plan and plan.cost)
    assert found == costs


@pytest.mark.parametrize(("nodes", "tau"), [(2, 0.098039), (3, 0.117647), (4, 0.254902), (5, 0.176471), (6, 0.294118)])
def test_an_infeasible_request_names_a_tau_that_is_feasible(nodes: int, tau: float) -> None:
    request = {"nodes": nodes, "sizes": SIZES, "loads": LOADS}
    with pytest.raises(Infeasible, match=r"Ask for tau = 0\.\d+ or more") as why:
        ssm(Intervals([0, 4, 7, 10]), tau=0.0, **request)  # type: ignore[arg-type]
    assert why.value.smallest_tau == pytest.approx(tau, abs=5e-7)
    ssm(Intervals([0, 4, 7, 10]), tau=why.value.smallest_tau, **request)  # type: ignore[arg-type]
    with pytest.raises(Infeasible):
        ssm(Intervals([0, 4, 7, 10]), tau=why.value.smallest_tau - 1e-6, **request)  # type: ignore[arg-type]


def test_the_smallest_tau_of_awkward_fractions_is_feasible() -> None:
    chance = np.random.default_rng(5)
    for _ in range(300):
        m, nodes = int(chance.integers(1, 40)), int(chance.integers(1, 12))
        loads = chance.random(m) ** 4 * 10.0 ** float(chance.integers(-9, 9))
        try:
            ssm(Intervals([0, m]), nodes=nodes, sizes=[1] * m, loads=loads, tau=0.0)
        except Infeasible as why:
            ssm(Intervals([0, m]), nodes=nodes, sizes=[1] * m, loads=loads, tau=why.smallest_tau)


def test_table_3_as_it_should_be() -> None:
    units = [1] * 20
    first = ssm(Intervals([0, 13, 20]), nodes=3, sizes=units, loads=units, tau=0.4)
    assert first.cost == 4
    second = ssm(Intervals([0, 9, 11, 20]), nodes=4, sizes=units, loads=units, tau=0.4)
    assert second.cost == 4


def test_what_is_balanced_already_stays() -> None:
    chance = np.random.default_rng(9)
    for dtype in ("i8", "f8"):
        sizes = (chance.random(64) * 100).astype(dtype)
        plan = ssm(Intervals([0, 16, 32, 48, 64], [9, 2, 5, 1]), nodes=4, sizes=sizes, loads=[1] * 64, tau=0.0)
        assert plan.moves == [] and plan.assignment == plan.current


def test_tasks_without_state_stay_if_they_may() -> None:
    plan = ssm(Intervals([0, 3, 6]), nodes=3, sizes=[0] * 6, loads=[1] * 6, tau=0.0)
    assert plan.cost == 0 and len(plan.moves) == 2, "an interval of two must come from somewhere; no more than that"


def test_where_search_is_too_big_the_relaxation_proves_nearly_every_plan_optimal() -> None:
    """Intervals in fractions, by another solver: a bound on what any assignment keeps, and where it is met, a proof."""
    proved = 0
    for seed in range(24):
        chance = random.Random(seed)
        m = chance.choice([20, 30, 40, 60])
        n, nodes = chance.randint(2, 9), chance.randint(2, 9)
        cuts = (0, *sorted(chance.randint(0, m) for _ in range(n - 1)), m)
        sizes = tuple(chance.choice([0, 1, 2, 5, 40]) for _ in range(m))
        loads = tuple(chance.randint(1, 9) for _ in range(m))
        tau = Fraction(chance.choice([4, 6, 12]), 10)
        plan = ssm(Intervals(cuts), nodes=nodes, sizes=sizes, loads=loads, tau=float(tau))
        check_plan(plan, Case(cuts, nodes, sizes, loads, tau))
        bound = most_kept(cuts, nodes, sizes, loads, float(tau))
        stays = sum(sizes) - plan.cost
        assert stays <= bound + 1e-6
        proved += stays >= bound - 1e-6
    assert proved >= 22
