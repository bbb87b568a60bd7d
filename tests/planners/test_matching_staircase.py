"""The staircase against a general assignment solver, and the search over all targets against trying all."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from planners.intervals.matching import cost, costs, first_best, match
from planners.intervals.partitionings import Partitionings
from planners.model import Limits, Tasks, prefix
from planners.mtm.search import cheapest
from tests.planners import bellman


def random_cuts(rng: np.random.Generator, m: int) -> tuple[int, ...]:
    """Any cuts, with empty intervals anywhere."""
    return (0, *sorted(rng.integers(0, m + 1, rng.integers(0, 7)).tolist()), m)


@pytest.mark.parametrize("seed", range(20))
def test_the_cost_is_that_of_the_best_assignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        m = int(rng.integers(1, 16))
        sizes = rng.choice([0, 0, 1, 2, 3, 50], m)
        before, after = random_cuts(rng, m), random_cuts(rng, m)
        expected = bellman.cost(before, after, sizes.tolist())
        assert cost(before, after, prefix(sizes)) == expected
        assert costs(before, np.array([after, after], np.int16), prefix(sizes)).tolist() == [expected, expected]
        kept = match(before, after, prefix(sizes))
        owners = [owner for owner in kept if owner is not None]
        assert len(set(owners)) == len(owners)
        stays = [
            sizes[max(before[i], c) : min(before[i + 1], d)].sum()
            for i, (c, d) in zip(kept, pairwise(after), strict=True)
            if i is not None
        ]
        assert sizes.sum() - sum(stays) == expected
        assert all(stays)  # nobody is given an interval for nothing


@pytest.mark.parametrize("seed", range(120))
def test_the_cheapest_target_is_that_of_trying_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 11))
    tasks = Tasks(rng.choice([0, 1, 2, 5, 9], m), rng.integers(0, 5, m))
    sources, targets = (
        Partitionings(tasks, Limits(int(rng.integers(1, 7)), float(rng.choice([0.4, 1.0, 2.0])))) for _ in range(2)
    )
    if not sources.count or not targets.count:
        return
    values = rng.choice([0.0, 1.0, 10.0]) * rng.random(targets.count)
    found = cheapest(sources.cuts(), targets.tree(), values, tasks.size_prefix())
    for k, source in enumerate(sources.cuts()):
        each = costs(source, targets.cuts(), tasks.size_prefix())
        assert found.total[k] == pytest.approx((each + values).min(), abs=1e-12)
        assert found.cost[k] == pytest.approx(each[found.target[k]], abs=1e-12)


def test_a_search_in_the_order_of_values_ends_early_and_is_right() -> None:
    rng = np.random.default_rng(5)
    targets = Partitionings(Tasks([3, 1, 4, 1, 5, 9, 2, 6], [1] * 8), Limits(4, 0.5))
    rows, sums = targets.cuts(), targets.tasks.size_prefix()
    values = np.sort(rng.random(len(rows)) * 20)
    every = costs([0, 4, 8], rows, sums) + values
    total, row = first_best([0, 4, 8], rows, sums, values, np.inf)
    assert total == pytest.approx(every.min()) and row == every.argmin()
    values[row + 1 :] = np.inf  # what is never looked at
    assert first_best([0, 4, 8], rows, sums, values, np.inf) == (total, row)
    assert first_best([0, 4, 8], rows, sums, values, total) == (total, -1)
