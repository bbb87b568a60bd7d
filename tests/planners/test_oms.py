"""`oms` against plain enumeration of every sequence, and the corrected Table 3."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise, product

import pytest

from planners import Infeasible, Intervals, Limits, PlannerError, oms, ssm
from planners.intervals.partitionings import TooMany
from tests.planners.oracles import balanced, kept, random_case, smallest_tau


def cheapest_sequence(
    cuts: tuple[int, ...], steps: list[tuple[int, Fraction]], sizes: tuple[int, ...], loads: tuple[int, ...]
) -> int:
    """The least sum of costs over all sequences of balanced cut lists. Who owns what need not be told apart: whichever
    node has an interval, the next step can keep as much of it."""
    every = [list(balanced(loads, nodes, tau)) for nodes, tau in steps]
    total = sum(sizes)
    return min(
        sum(total - kept(before, after, sizes) for before, after in zip((cuts, *chosen), chosen, strict=False))
        for chosen in product(*every)
    )


@pytest.mark.parametrize("seed", range(6))
def test_oms_is_as_cheap_as_any_sequence(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        case = random_case(chance, tasks=5, nodes=3)
        counts = [chance.randint(1, 3) for _ in range(chance.randint(1, 3))]
        leeway = chance.choice([Fraction(0), Fraction(1, 5), Fraction(1)])
        steps = [(count, max(0, smallest_tau(case.loads, count)) + leeway) for count in counts]
        plans = oms(
            Intervals(case.cuts), steps=[(n, float(tau)) for n, tau in steps], sizes=case.sizes, loads=case.loads
        )
        assert sum(plan.cost for plan in plans) == cheapest_sequence(case.cuts, steps, case.sizes, case.loads)
        for before, after in pairwise(plans):
            assert after.current == before.assignment
        assert [len(plan.assignment.nodes) for plan in plans] == counts
        assert all(plan.met for plan in plans)


@pytest.mark.parametrize("seed", range(4))
def test_sizes_and_loads_may_change_along_the_sequence(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        case = random_case(chance, tasks=5, nodes=3)
        counts = [chance.randint(1, 3) for _ in range(chance.randint(1, 3))]
        sizes = [[chance.randint(0, 9) for _ in case.sizes] for _ in counts]
        loads = [[chance.randint(1, 9) for _ in case.sizes] for _ in counts]
        taus = [max(0, smallest_tau(each, count)) + Fraction(1, 5) for each, count in zip(loads, counts, strict=True)]
        steps = [(n, float(tau)) for n, tau in zip(counts, taus, strict=True)]
        plans = oms(Intervals(case.cuts), steps=steps, sizes=sizes, loads=loads)
        every = [list(balanced(tuple(each), n, tau)) for each, n, tau in zip(loads, counts, taus, strict=True)]
        least = min(
            sum(sum(s) - kept(a, z, tuple(s)) for a, z, s in zip((case.cuts, *chosen), chosen, sizes, strict=False))
            for chosen in product(*every)
        )
        assert sum(plan.cost for plan in plans) == least
        assert [plan.tasks.sizes.tolist() for plan in plans] == sizes and all(plan.met for plan in plans)
    with pytest.raises(PlannerError, match="there are 2 steps, and 3 rows of sizes"):
        oms(Intervals([0, 2]), steps=[(1, 0.5), (2, 0.5)], sizes=[[1, 1]] * 3, loads=[1, 1])


def test_table_3_has_a_cheaper_sequence_than_printed() -> None:
    units = [1] * 20
    plans = oms(Intervals([0, 13, 20]), steps=[Limits(3, 0.4), Limits(4, 0.4)], sizes=units, loads=units)
    assert sum(plan.cost for plan in plans) == 6
    for tau in (0.2, 0.3):
        plans = oms(Intervals([0, 13, 20]), steps=[(3, tau), (4, tau)], sizes=units, loads=units)
        assert sum(plan.cost for plan in plans) == 8


def test_one_step_is_ssm() -> None:
    sizes, loads = [3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]
    (plan,) = oms(Intervals([0, 3, 8]), steps=[(3, 0.5)], sizes=sizes, loads=loads)
    assert plan.cost == ssm(Intervals([0, 3, 8]), nodes=3, sizes=sizes, loads=loads, tau=0.5).cost


def test_what_oms_refuses() -> None:
    units = [1] * 40
    with pytest.raises(TooMany, match="there are"):
        oms(Intervals([0, 40]), steps=[(8, 1.2), (9, 1.2)], sizes=units, loads=units, most=1000)
    with pytest.raises(Infeasible):
        oms(Intervals([0, 40]), steps=[(8, 1.2), (9, 0)], sizes=units, loads=units)
    with pytest.raises(PlannerError, match="at least one step"):
        oms(Intervals([0, 40]), steps=[], sizes=units, loads=units)
