"""Readj and PKG: what they promise, against a plain reading of it."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planners.rebalance import merge, pkg, readj
from tests.planners.rebalance.cases import arguments, cases
from tests.planners.rebalance.oracle import Case


def squares(case: Case, where: list[int]) -> int:
    return sum(load**2 for load in case.loads(where))


@settings(max_examples=150, deadline=None)
@given(case=cases(most_keys=12))
def test_readj_ends_in_balance_or_where_no_move_and_no_swap_helps(case: Case) -> None:
    plan = readj(**arguments(case, "readj"), sigma=1e-9)
    where = plan.assignment.tolist()
    assert len(where) == len(case.cost) and plan.loads.tolist() == case.loads(where)
    if plan.balanced:
        return
    now = squares(case, where)
    for k, d in product(range(len(where)), range(case.instances)):
        assert squares(case, [*where[:k], d, *where[k + 1 :]]) >= now
    for k, j in product(range(len(where)), repeat=2):
        swapped = list(where)
        swapped[k], swapped[j] = where[j], where[k]
        assert squares(case, swapped) >= now


def test_readj_takes_keys_home_and_touches_only_heavy_ones() -> None:
    home = [0, 0, 1, 1]
    assert readj([1, 1, 1, 1], [1] * 4, home=home, current=[1, 0, 1, 0], instances=2, theta=1.0).table.size == 0
    heavy = readj([9, 1, 1, 1], [1] * 4, home=home, current=home, instances=2, theta=0.0, sigma=0.5)
    assert set(heavy.moves.keys) <= {0}
    with pytest.raises(ValueError, match="sigma"):
        readj([1], [1], home=[0], current=[0], instances=1, sigma=0)


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), max_size=60),
    instances=st.integers(1, 5),
    choices=st.integers(1, 3),
)
def test_pkg_routes_to_the_less_loaded_candidate(keys: list[int], instances: int, choices: int) -> None:
    router = pkg(instances, choices=choices, seed=3)
    found = np.concatenate([router.route(np.array(keys[:20], "i8")), router.route(np.array(keys[20:], "i8"))]).tolist()
    loads = [0] * instances
    for key, instance in zip(keys, found, strict=True):
        candidates = router.candidates(key)
        assert instance in candidates and loads[instance] == min(loads[d] for d in candidates)
        loads[instance] += 1
    assert router.loads.tolist() == loads


def test_pkg_splits_what_is_hot_and_the_merge_puts_it_together_again() -> None:
    rng = np.random.default_rng(0)
    keys = np.minimum(rng.zipf(1.3, 30_000), 2_000)
    instances = pkg(8).route(keys)
    hashed = np.bincount(pkg(8, choices=1).route(keys), minlength=8)
    split = np.bincount(instances, minlength=8)
    assert split.max() < hashed.max() / 1.5
    assert max(len(set(instances[keys == key])) for key in range(1, 50)) == 2
    partial_keys, partial_counts = [], []
    for d in range(8):
        unique, counts = np.unique(keys[instances == d], return_counts=True)
        partial_keys.append(unique)
        partial_counts.append(counts)
    merged = merge(np.concatenate(partial_keys), np.concatenate(partial_counts))
    assert dict(zip(*(m.tolist() for m in merged), strict=True)) == Counter(keys.tolist())
    assert merge([3, 1, 3], [2, 5, 7], np.maximum)[1].tolist() == [5, 7] and merge([], [])[0].size == 0


def test_misuse_is_refused() -> None:
    with pytest.raises(TypeError, match="hash them first"):
        pkg(2).route(["a"])
    with pytest.raises(ValueError, match="each record needs one"):
        pkg(2).route([1, 2], [1.0])
    with pytest.raises(ValueError, match="at least one instance"):
        pkg(0)
