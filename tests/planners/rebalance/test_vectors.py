"""The compact form: HLHE against the paper's rule, vectors against a Counter, plans against plans on keys."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planners.rebalance import compact, hlhe, llfd, min_table, mixed
from planners.rebalance.hlhe import TABLED
from tests.planners.rebalance.cases import PLANNERS, cases, run
from tests.planners.rebalance.oracle import Case


def discretised(values: list[int], r: int) -> tuple[Counter[int], Fraction]:
    """Each value in turn, largest first: how often each representative was taken, and the deviation that is left."""
    big = 2**r
    linear = {big * i for i in range(1, max(values) // big + 1)}
    ladder = sorted(linear | {2**i for i in range(r) if 2**i <= max(values)})
    deviation, taken = Fraction(0), Counter[int]()
    for value in sorted(values, reverse=True):
        low = max(y for y in ladder if y <= value)
        choices = [low, *[y for y in ladder if y > value][:1]]
        best = min(choices, key=lambda y: (abs(deviation + value - y), y))
        deviation += value - best
        taken[best] += 1
    return taken, deviation


def test_the_worked_example() -> None:
    found = hlhe([8, 6, 3, 2, 2, 1, 1, 1, 1, 1], r=2)
    assert set(found.values) <= {8, 4, 2, 1} and found.deviation.tolist() == [0]


@settings(max_examples=300, deadline=None)
@given(values=st.lists(st.integers(1, 200), max_size=40), r=st.integers(0, 8))
def test_hlhe_takes_the_representatives_that_the_rule_takes(values: list[int], r: int) -> None:
    values = [*values, 1]  # the unit
    found = hlhe(values, r)
    taken, deviation = discretised(values, r)
    assert Counter(found.values.astype(int).tolist()) == taken
    assert found.deviation.tolist() == [float(deviation)] == [sum(values) - found.values.sum()]


def test_values_above_the_table_are_treated_alike() -> None:
    rng = np.random.default_rng(1)
    values = [*rng.integers(1, 3 * TABLED, 300).tolist(), 1]
    taken, deviation = discretised(values, 0)
    found = hlhe(values, 0)
    assert max(values) > TABLED and Counter(found.values.astype(int).tolist()) == taken
    assert deviation == found.deviation[0]


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.floats(0, 1e9), max_size=60), r=st.integers(0, 8), groups=st.integers(1, 3))
def test_each_group_keeps_its_own_deviation_and_zero_stays_zero(values: list[float], r: int, groups: int) -> None:
    group = np.arange(len(values)) % groups
    found = hlhe(values, r, group=group, groups=groups)
    array = np.array(values, float)
    assert (found.values[array == 0] == 0).all()
    for g in range(groups):
        kept = array[group == g].sum() - found.values[group == g].sum()
        assert kept == pytest.approx(found.deviation[g], rel=1e-9, abs=1e-9 * max([1.0, *values]))
        alone = hlhe([*array[group == g], *array], r, group=[0] * int((group == g).sum()) + [1] * len(values), groups=2)
        assert alone.values[: int((group == g).sum())].tolist() == found.values[group == g].tolist()


@settings(max_examples=150, deadline=None)
@given(case=cases(), r=st.integers(0, 4))
def test_vectors_hold_every_key_once(case: Case, r: int) -> None:
    places = {"home": np.array(case.home, int), "current": np.array(case.current, int), "instances": case.instances}
    for means in (True, False):
        found = compact(case.cost, case.state, r=r, means=means, **places)
        assert found.count.sum() == len(case.cost) and (found.next == found.current).all()
        rows = list(zip(found.current, found.home, found.cost, found.state, strict=True))
        assert means or len(set(rows)) == found.size
        by_place = Counter(zip(case.current, case.home, strict=True))
        counted: Counter[tuple[int, int]] = Counter()
        for (d, h, *_), count in zip(rows, found.count, strict=True):
            counted[int(d), int(h)] += int(count)
        assert counted == by_place
    found = compact(case.cost, case.state, r=r, **places)
    loads = np.bincount(found.current, weights=found.cost * found.count, minlength=case.instances)
    assert loads == pytest.approx(case.loads(case.current))


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_where_keys_of_a_vector_are_alike_a_plan_is_worth_as_much(name: str, case: Case) -> None:
    """R = 1 loses nothing of whole numbers: the load bound is met in one form if it is met in the other."""
    case.cost = [1 if k == 0 else max(1, c) for k, c in enumerate(case.cost)]  # 1 is then the unit
    case.state = [1] * len(case.cost)
    if name in ("llfd", "min_table", "min_mig"):
        plain, vectors = run(case, name), run(case, name, r=0)
        assert vectors.error == pytest.approx(0.0, abs=1e-9)
        assert sorted(vectors.loads.tolist()) == sorted(plain.loads.tolist()) or vectors.balanced == plain.balanced
    else:
        assert run(case, name, r=0).error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("means", [True, False])
@pytest.mark.parametrize("r", [0, 2, 4])
@pytest.mark.parametrize("planner", [llfd, min_table, mixed])
def test_plain_and_compact_agree_within_the_stated_error(planner: object, r: int, means: bool) -> None:
    rng = np.random.default_rng(7)
    keys = 20_000
    cost = rng.permutation(rng.poisson(30_000 / np.arange(1, keys + 1) ** 0.85) + 1.0)
    state = cost * rng.uniform(0.5, 2.0, keys)
    home = rng.integers(0, 8, keys)
    current = np.where(rng.random(keys) < 0.97, home, rng.integers(0, 8, keys))
    arguments = {"home": home, "current": current, "instances": 8, "theta": 0.05}
    plain = planner(cost, state, **arguments)  # type: ignore[operator]
    vectors = planner(cost, state, r=r, means=means, **arguments)  # type: ignore[operator]
    mean = cost.sum() / 8
    assert plain.balanced and vectors.vectors < keys / 2
    assert vectors.estimate.max() <= 1.05 * mean * (1 + 1e-9), "on vectors, the bound is met"
    assert vectors.loads.max() <= (1.05 + vectors.error) * mean * (1 + 1e-9), "on keys, up to the error"
    assert vectors.error <= (0.001 if means else 0.05)
    assert vectors.moved == pytest.approx(plain.moved, rel=0.25)
