"""Antichains against their definition: the minimal elements, found by looking at all of them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow.time.antichain import Antichain, MutableAntichain, TotalAntichain
from tests.oracles.progress import before, minimal
from tests.progress.pairs import Pair

laws = settings(deadline=None, derandomize=True, max_examples=150)

small = st.integers(0, 4)
TIMES = {
    "integers": small,
    "tuples": st.tuples(small, small),
    "deep": st.tuples(small, st.tuples(small, small), small),
    "pairs": st.builds(Pair, small, small),
}
some_times = st.sampled_from(sorted(TIMES)).flatmap(lambda name: st.lists(TIMES[name], max_size=12))
time_and_times = st.sampled_from(sorted(TIMES)).flatmap(
    lambda name: st.tuples(TIMES[name], st.lists(TIMES[name], max_size=8), st.lists(TIMES[name], max_size=8))
)


@laws
@given(some_times)
def test_an_antichain_holds_the_minimal_times(times: list[Any]) -> None:
    antichain = Antichain(times)
    antichain._check()
    assert set(antichain) == minimal(times)
    assert len(antichain) == len(minimal(times))


@laws
@given(some_times, st.randoms(use_true_random=False))
def test_the_order_of_insertion_does_not_matter(times: list[Any], rng: Random) -> None:
    shuffled = rng.sample(times, len(times))
    assert Antichain(times) == Antichain(shuffled)
    assert Antichain(times).elements == Antichain(shuffled).elements
    assert repr(Antichain(times)) == repr(Antichain(shuffled))


@laws
@given(time_and_times)
def test_insert_says_whether_it_added(case: tuple[Any, list[Any], list[Any]]) -> None:
    time, times, _ = case
    assert Antichain(times).insert(time) == (not any(before(t, time) for t in times))


@laws
@given(time_and_times)
def test_questions_about_one_time(case: tuple[Any, list[Any], list[Any]]) -> None:
    time, times, _ = case
    antichain = Antichain(times)
    assert antichain.less_equal(time) == any(before(t, time) for t in times)
    # Strictly before some element of the antichain is strictly before some time at all: minimal ones are the witnesses.
    assert antichain.less_than(time) == any(t != time and before(t, time) for t in times)


@laws
@given(time_and_times)
def test_dominates(case: tuple[Any, list[Any], list[Any]]) -> None:
    _, times, others = case
    expected = all(any(before(t, u) for t in times) for u in others)
    assert Antichain(times).dominates(Antichain(others)) == expected


def test_equality_and_hashing() -> None:
    assert Antichain([1]) != Antichain([2])
    assert Antichain([]) != Antichain([0])
    assert Antichain([1]) != [1]
    with pytest.raises(TypeError):
        hash(Antichain([1]))  # it is mutable


def test_the_empty_antichain() -> None:
    empty = Antichain()
    assert not empty.less_equal(0)
    assert not empty.less_than(0)
    assert Antichain([0]).dominates(empty)
    assert not empty.dominates(Antichain([0]))


# -------------------------------------------------------------------------------------------------------- with counts


def run_updates(antichain: MutableAntichain | TotalAntichain, updates: list[tuple[Any, int]]) -> None:
    """Applies updates one by one; after each, the frontier and what was said about its change must be exact."""
    counts: Counter[Any] = Counter()
    known: set[Any] = set()
    for time, diff in updates:
        counts[time] += diff
        said = antichain.update(time, diff)
        expected = minimal(t for t, n in counts.items() if n > 0)
        assert net_change(said) == dict.fromkeys(expected - known, 1) | dict.fromkeys(known - expected, -1)
        assert len(said) == len(net_change(said))  # each time once: nothing comes and goes within one answer
        known = expected
        antichain._check()
        assert set(antichain.frontier) == expected
        assert antichain.less_equal(time) == any(before(t, time) for t in expected)
        assert antichain.counts == {t: n for t, n in counts.items() if n}
        assert len(antichain) == len(antichain.counts)


def net_change(said: list[tuple[Any, int]]) -> dict[Any, int]:
    net: Counter[Any] = Counter()
    for time, diff in said:
        net[time] += diff
    return {t: d for t, d in net.items() if d}


diffs = st.integers(-2, 2)
some_updates = st.sampled_from(sorted(TIMES)).flatmap(lambda name: st.lists(st.tuples(TIMES[name], diffs), max_size=40))


@laws
@given(some_updates)
def test_mutable_antichain_is_the_minimal_of_what_counts_positively(updates: list[tuple[Any, int]]) -> None:
    run_updates(MutableAntichain(), updates)


@laws
@given(st.lists(st.tuples(small, diffs), max_size=40))
def test_total_antichain_is_the_least_of_what_counts_positively(updates: list[tuple[int, int]]) -> None:
    run_updates(TotalAntichain(), updates)


@pytest.mark.parametrize("seed", range(20))
def test_long_sequences(seed: int) -> None:
    """Long enough for the heap of TotalAntichain to be rebuilt, and for witnesses to change hands many times."""
    rng = Random(seed)
    run_updates(TotalAntichain(), [(rng.randint(0, 6), rng.choice((1, 1, -1, -1, 2, -2))) for _ in range(300)])
    pairs = [(rng.randint(0, 6), rng.randint(0, 6)) for _ in range(200)]
    run_updates(MutableAntichain(), [(pair, rng.choice((1, 1, -1))) for pair in pairs])


def test_a_time_that_comes_and_goes_does_not_fill_the_heap() -> None:
    antichain = TotalAntichain()
    antichain.update(0, 1)
    for _ in range(10_000):
        antichain.update(5, 1)
        antichain.update(5, -1)
    assert len(antichain._heap) < 100


def test_a_negative_count_is_not_there_until_it_is_made_good() -> None:
    antichain = MutableAntichain()
    assert antichain.update(3, -1) == []
    assert antichain.update(3, +1) == []
    assert antichain.update(3, +1) == [(3, 1)]


def test_updates_by_zero_change_nothing() -> None:
    for antichain in (MutableAntichain(), TotalAntichain()):
        assert antichain.update(3, 0) == []
        assert len(antichain) == 0
