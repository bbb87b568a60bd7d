"""Balanced partitionings: counted, listed, and listed in parts, against trying all."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from planners.errors import BadRequest, Infeasible
from planners.intervals.partitionings import Partitionings, TooMany, check_count
from planners.model import Limits, Tasks
from planners.mtm.problem import MTMProblem
from planners.mtm.transitions import Transitions
from tests.planners import bellman


def some(nodes: int, tau: float) -> Partitionings:
    return Partitionings(Tasks(bellman.SIZES, bellman.LOADS), Limits(nodes, tau))


@pytest.mark.parametrize(("nodes", "count"), [(2, 5), (3, 11), (4, 27)])
def test_the_counts_of_the_example(nodes: int, count: int) -> None:
    assert some(nodes, 0.5).count == count == len(some(nodes, 0.5).cuts())


@pytest.mark.parametrize("seed", range(150))
def test_every_balanced_cut_list_once_and_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, nodes, tau = int(rng.integers(1, 10)), int(rng.integers(1, 7)), float(rng.choice([0, 0.1, 0.5, 1.2]))
    loads = rng.choice([0, 1, 1, 2, 3, 20], m)
    these = Partitionings(Tasks(rng.integers(0, 9, m), loads), Limits(nodes, tau))
    expected = bellman.cut_lists(loads.tolist(), nodes, (1 + tau) * loads.sum() / nodes)
    assert these.count == len(expected)
    assert [tuple(row) for row in these.cuts().tolist()] == expected
    start, stop = sorted(rng.integers(0, these.count + 3, 2).tolist())
    assert [tuple(row) for row in these.cuts(start, stop).tolist()] == expected[start:stop]


def test_the_count_is_known_where_no_list_could_be_held() -> None:
    everything = Partitionings(Tasks([1] * 64, [1] * 64), Limits(8, 7.0))  # any interval is within eight times the mean
    assert everything.count == sum(comb(63, inner) for inner in range(8))
    huge = Partitionings(Tasks([1] * 4096, [1] * 4096), Limits(64, 63.0))
    assert huge.count == sum(comb(4095, inner) for inner in range(64))  # far beyond 64 bits
    with pytest.raises(TooMany):
        huge.cuts(0, 10)


def test_parts_in_the_middle_of_very_many() -> None:
    everything = Partitionings(Tasks([1] * 64, [1] * 64), Limits(8, 7.0))
    part = everything.cuts(10**8, 10**8 + 1000)
    assert len(part) == 1000 and (np.diff(part[:, :-1].astype(int), axis=1) >= 0).all()
    assert np.array_equal(part[500:], everything.cuts(10**8 + 500, 10**8 + 1000))
    as_numbers = [tuple(row) for row in part.tolist()]
    assert as_numbers == sorted(set(as_numbers))


def test_too_many_is_refused_with_the_count_and_a_grid_that_fits() -> None:
    problem = MTMProblem(Tasks([1] * 64, [1] * 64), Transitions([8], [[1.0]]), tau=2.0, gamma=0.5)
    count = problem.partitionings(8).count
    with pytest.raises(TooMany, match=f"{count:,} balanced.*a grid of") as refused:
        problem.check(100_000)
    assert refused.value.count == count


def test_limits_add_up_over_node_counts() -> None:
    assert check_count([some(2, 0.5), some(3, 0.5)], 16) == 16
    with pytest.raises(TooMany, match="16"):
        check_count([some(2, 0.5), some(3, 0.5)], 15)


def test_no_balanced_partitioning_is_infeasible_and_says_what_would_do() -> None:
    assert some(4, 0.2).count == 0 and len(some(4, 0.2).cuts()) == 0
    with pytest.raises(BadRequest, match="balanced"):
        some(4, 0.2).tree()
    problem = MTMProblem(Tasks(bellman.SIZES, bellman.LOADS), Transitions([4], [[1.0]]), tau=0.2, gamma=0.8)
    with pytest.raises(Infeasible) as refused:
        problem.check(1000)
    assert refused.value.smallest_tau == pytest.approx(0.254902, abs=1e-6)


def test_more_tasks_than_a_cut_can_tell_are_refused() -> None:
    many = Tasks([1] * 40_000, [1] * 40_000)
    with pytest.raises(BadRequest, match="merge bins"):
        Partitionings(many, Limits(2, 0.5))
    with pytest.raises(BadRequest, match="merge bins"):
        MTMProblem(many, Transitions([2], [[1.0]]), tau=0.5, gamma=0.5)
