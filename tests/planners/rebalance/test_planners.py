"""Every planner against the oracle, and what holds for all of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import megaphone
from planners.rebalance import RebalancePlan, llfd, min_mig, min_table, mixed
from tests.planners.rebalance import oracle
from tests.planners.rebalance.cases import ORACLES, PLANNERS, cases, run
from tests.planners.rebalance.oracle import Case

TOY = {"home": [0, 0, 0, 1, 1, 1], "current": [0, 0, 1, 1, 0, 1], "instances": 2, "theta": 0.0}
TOY_COSTS = [7, 4, 2, 1, 5, 1]  # k1 to k6 of Figure 4


def consistent(case: Case, plan: RebalancePlan) -> None:
    """What a plan says of itself is so, and no key is lost or doubled."""
    where = plan.assignment.tolist()
    assert len(where) == len(case.cost) and all(0 <= d < case.instances for d in where)
    loads, mean = case.loads(where), sum(case.cost) / case.instances
    assert plan.loads.tolist() == loads
    assert plan.table.keys.tolist() == [k for k, d in enumerate(where) if d != case.home[k]]
    assert plan.table.instances.tolist() == [where[k] for k in plan.table.keys]
    assert plan.moves.keys.tolist() == [k for k, d in enumerate(where) if d != case.current[k]]
    assert plan.moves.origins.tolist() == [case.current[k] for k in plan.moves.keys]
    assert plan.moves.destinations.tolist() == [where[k] for k in plan.moves.keys]
    assert plan.moved == case.moved(where)
    assert plan.balance == pytest.approx(max(abs(load - mean) for load in loads) / mean if mean else 0.0)
    assert plan.balanced == (max(loads) <= case.limit)
    assert plan.fits == (case.entries(where) <= case.table) and plan.met == (plan.balanced and plan.fits)


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_a_planner_decides_as_the_oracle_does(name: str, case: Case) -> None:
    plan = run(case, name)
    consistent(case, plan)
    assert plan.assignment.tolist() == ORACLES[name](case)


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=100, deadline=None)
@given(case=cases(), r=st.integers(0, 4), means=st.booleans())
def test_in_compact_form_no_key_is_lost_and_the_figures_are_those_of_keys(
    name: str, case: Case, r: int, means: bool
) -> None:
    consistent(case, run(case, name, r=r, means=means))


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_balanced_keys_stay_where_they_are(name: str, case: Case) -> None:
    case.current = list(case.home)
    if max(case.loads(case.home)) <= case.limit:
        plan = run(case, name)
        assert plan.moves.size == 0 and plan.moved == 0 and plan.table.size == 0 and plan.met


def test_the_toy_example_of_figure_4() -> None:
    alone, clean = llfd(TOY_COSTS, TOY_COSTS, **TOY), min_table(TOY_COSTS, TOY_COSTS, **TOY)
    assert alone.loads.tolist() == clean.loads.tolist() == [10, 10]
    assert alone.assignment.tolist() == [1, 0, 1, 0, 0, 1]  # the running example, step by step
    assert (alone.table.size, clean.table.size) == (4, 2)
    assert clean.assignment.tolist() == [0, 1, 0, 0, 1, 1]
    assert alone.met and clean.met and alone.balance == clean.balance == 0


def test_beta_decides_who_goes_first() -> None:
    """Section III-B: k1 and k2 of Figure 4 have equal γ at β = 1; less β and k2 goes first, more and k1 does."""
    case = {"home": [0, 0, 1], "current": [0, 0, 1], "instances": 2, "theta": 0.5}
    costs = [7, 4, 1]
    assert min_mig(costs, costs, beta=0.5, **case).moves.keys.tolist() == [1]
    assert min_mig(costs, costs, beta=2.0, **case).moves.keys.tolist() == [0]


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=6), min_size=2, max_size=6),
    theta=st.floats(0, 0.16),
    seed=st.integers(0, 2**32 - 1),
)
def test_theorem_1(parts: list[list[int]], theta: float, seed: int) -> None:
    """Where a perfect assignment exists, no key is at the mean or above, and theta is below the bound: within the
    bound."""
    target = max(map(sum, parts)) + 1  # each instance is filled up to the same sum: a perfect assignment
    costs = np.array([c for part in parts for c in [*part, target - sum(part)]])
    rng = np.random.default_rng(seed)
    costs = rng.permutation(costs)
    instances = len(parts)
    bound = (1 - 1 / instances) / 3
    home = rng.integers(0, instances, costs.size)
    current = np.where(rng.random(costs.size) < 0.5, home, rng.integers(0, instances, costs.size))
    plan = llfd(costs, costs, home=home, current=current, instances=instances, theta=min(theta, bound))
    assert plan.loads.max() <= target * (1 + bound) * (1 + 1e-9)


@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_brute_force_moves_no_more_than_mixed_and_min_table_is_mixeds_last_resort(case: Case) -> None:
    one, all_of_them, clean = run(case, "mixed"), run(case, "mixed_bf"), run(case, "min_table")
    if one.met:
        assert all_of_them.met and all_of_them.moved <= one.moved
    if not one.fits:
        assert one.assignment.tolist() == clean.assignment.tolist()


@settings(max_examples=200, deadline=None)
@given(case=cases())
def test_the_other_reading_of_brute_force_moves_back_no_more_than_need_be(case: Case) -> None:
    fewest, cheapest = run(case, "mixed_bf", best="fewest"), run(case, "mixed_bf")
    assert fewest.assignment.tolist() == oracle.plan_mixed_bf_fewest(case)
    assert fewest.met == cheapest.met and cheapest.moved <= fewest.moved
    one = run(case, "mixed")
    if one.met:
        assert fewest.cleaned <= one.cleaned
    with pytest.raises(ValueError, match="best is 'cheapest' or 'fewest'"):
        run(case, "mixed_bf", best="dearest")


def test_mixed_cleans_more_with_each_trial() -> None:
    """Entries to move back accumulate: one excess after the other, and not each from the start."""
    rng = np.random.default_rng(5)
    cost = rng.integers(1, 50, 400)
    home, current = rng.integers(0, 4, 400), rng.integers(0, 4, 400)
    arguments = {"home": home, "current": current, "instances": 4, "theta": 0.02, "beta": 1.0}
    tables = [250, 150, 60, 0]
    plans = [mixed(cost, cost, table=size, **arguments) for size in tables]
    assert [plan.fits for plan in plans] == [True, True, True, False]
    assert all(a.cleaned < b.cleaned for a, b in pairwise(plans))
    assert plans[1].trials > 2 and plans[-1].cleaned == int((home != current).sum())


def test_a_key_that_fits_nowhere_goes_to_the_least_loaded_and_the_result_says_so() -> None:
    plan = llfd([100, 1, 1, 1], [1, 1, 1, 1], home=[0, 0, 1, 1], current=[0, 0, 1, 1], instances=2, theta=0.1)
    assert not plan.balanced and not plan.met and plan.assignment.tolist() == [0, 0, 1, 1]


def test_the_example_of_the_issue() -> None:
    rng = np.random.default_rng(0)
    cost = rng.zipf(1.85, 100_000).clip(max=5_000).astype(float)
    state = cost * rng.uniform(0.5, 2.0, cost.size)
    home = rng.integers(0, 10, cost.size)
    plan = mixed(cost, state, home=home, current=home, instances=10, theta=0.08, table=3_000, beta=1.5)
    assert plan.met and plan.loads.max() <= 1.08 * cost.sum() / 10
    assert (plan.assignment[plan.table.keys] == plan.table.instances).all()


@pytest.mark.parametrize("name", PLANNERS)
def test_large_lists_are_sorted_as_small_ones(name: str) -> None:
    """Radix sort and cursors, at a size where they matter: against the oracle's results for properties only it can
    check."""
    rng = np.random.default_rng(3)
    keys = 300
    case = Case(
        rng.integers(0, 2000, keys).tolist(),
        rng.integers(1, 50, keys).tolist(),
        (home := rng.integers(0, 3, keys)).tolist(),
        np.where(rng.random(keys) < 0.9, home, 0).tolist(),
        3,
        theta=Fraction(1, 1000),
        table=40,
        beta=2,
    )
    assert run(case, name).assignment.tolist() == ORACLES[name](case)


def test_bins_are_keys_and_a_plan_is_what_a_strategy_takes() -> None:
    rng = np.random.default_rng(2)
    cost, home = rng.integers(1, 40, 64), np.arange(64) % 3
    plan = mixed(cost, cost, home=home, current=np.zeros(64, int), instances=3, theta=0.05, table=64)
    place = [0] * 64
    for step in megaphone.batched(5).steps(place, plan.assignment.tolist()):
        for move in step:
            place[move.bin] = move.worker
    assert plan.met and place == plan.assignment.tolist()


def test_state_by_interval_is_summed_over_the_window() -> None:
    cost, state = [9, 8, 1], np.array([[30, 1, 1], [1, 5, 1], [1, 5, 1]])
    arguments = {"home": [0, 0, 1], "current": [0, 0, 1], "instances": 2, "theta": 0.2, "beta": 1.0}
    assert min_mig(cost, state, window=2, **arguments).moves.keys.tolist() == [0]
    assert min_mig(cost, state, **arguments).moves.keys.tolist() == [1]  # over all three, key 0 holds the most


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instances": 0}, "at least one instance"),
        ({"theta": -0.1}, "theta is how far"),
        ({"theta": float("nan")}, "theta is how far"),
        ({"table": -1}, "routing table of size -1"),
        ({"beta": 0.0}, "beta weighs"),
        ({"cost": [1.0, -2.0]}, "cost must be finite and not negative, and is not at key 1"),
        ({"cost": [1.0, float("nan")]}, "not at key 1"),
        ({"cost": [[1.0, 2.0]]}, "one number for each key"),
        ({"state": [1.0]}, "cost has 2 keys and state 1"),
        ({"state": [[1.0, 1.0], [1.0, -1.0]]}, "key 1 of interval 1"),
        ({"home": [0, 2]}, "home names instances 0 to 1"),
        ({"current": [0.0, 1.0]}, "number of an instance"),
        ({"window": 0}, "at least one interval"),
        ({"window": 3}, "state by interval and key"),
        ({"r": 31}, "r from 0 to 30"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, object], message: str) -> None:
    good = {"cost": [1, 2], "state": [1, 2], "home": [0, 1], "current": [0, 1], "instances": 2, "theta": 0.1}
    with pytest.raises(ValueError, match=message):
        mixed(**{**good, **change})
    assert mixed(**good).assignment.tolist() == [0, 1]
