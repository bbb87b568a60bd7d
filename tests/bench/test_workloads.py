"""Workloads: distributions against what they are to be, sizes, references between tables, and seeds."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from bench.skew import (
    fluctuate,
    frequencies,
    hashed,
    intervals,
    sample,
    social,
    stock,
    tpch,
    vocabulary,
    zipf,
)
from bench.skew.social import SYLLABLES


@pytest.mark.parametrize("z", [0.0, 0.5, 0.85, 1.0])
def test_zipf_is_finite_and_has_its_exponent(z: float) -> None:
    found = zipf(1000, z)
    assert found.sum() == pytest.approx(1)
    assert found[0] / found[99] == pytest.approx(100**z)
    counts = np.bincount(sample(found, 200_000, np.random.default_rng(0)), minlength=1000)
    assert abs(counts - 200_000 * found).max() < 6 * np.sqrt(200_000 * found.max()) + 6


def test_frequencies_are_the_zipf_numbers_in_another_order_and_hashing_is_even() -> None:
    found = frequencies(500, 0.85, 1e6, np.random.default_rng(1))
    assert np.sort(found)[::-1] == pytest.approx(1e6 * zipf(500, 0.85)) and found[0] != found.max()
    counts = np.bincount(hashed(100_000, 7), minlength=7)
    assert counts.size == 7 and abs(counts - 100_000 / 7).max() < 600
    assert (hashed(1000, 7, seed=1) != hashed(1000, 7)).mean() > 0.7


@pytest.mark.parametrize("f", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_fluctuation_changes_some_load_by_f_and_swaps_only(f: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    home, before = hashed(5_000, 10, seed), frequencies(5_000, 0.85, 1e6, rng)
    after = fluctuate(before, home, 10, f, rng)
    assert np.sort(before) == pytest.approx(np.sort(after)), "frequencies are swapped, not made"
    change = np.abs(np.bincount(home, after - before, minlength=10)) / (before.sum() / 10)
    assert f <= change.max() < f + before.max() / (before.sum() / 10)


def test_no_fluctuation_no_change_and_the_impossible_ends() -> None:
    first, second = islice(
        intervals(50, 0.5, 0.0, assignment=hashed(50, 3), instances=3, records=10.0, seed=4), 2
    )
    assert (first == second).all()
    alone = np.zeros(20, np.int32)
    assert np.sort(fluctuate(np.arange(20.0), alone, 3, 1.0, np.random.default_rng(0))).tolist() == list(range(20))


def test_social_drifts_slowly_and_stock_bursts() -> None:
    days = list(social(50_000, words=2_000, intervals=3, seed=2))
    counts = [np.bincount(day["word"], minlength=2_000) for day in days]
    assert all(day["feed"].size == 50_000 and (np.diff(day["feed"]) >= 0).all() for day in days)
    assert days[1]["feed"][0] > days[0]["feed"][-1]
    assert np.corrcoef(counts[0], counts[1])[0, 1] > 0.5
    days = list(stock(50_000, intervals=2, seed=2))
    first, second = (np.bincount(day["stock"], minlength=1_036) + 1 for day in days)
    assert (np.maximum(first / second, second / first) > 4).sum() >= 4
    assert all((np.diff(day["time"]) >= 0).all() and set(day["side"]) == {-1, 1} for day in days)
    assert days[1]["time"][0] >= 86_400_000 and (days[0]["price"] > 0).all()


def test_words_are_different() -> None:
    words = vocabulary(5_000)
    assert len(set(words)) == 5_000 and words[0] == SYLLABLES[0]


def test_tpch_references_hold_and_are_skewed() -> None:
    tables = tpch(0.01, seed=3)
    orders, lines = tables.orders, tables.lineitem
    assert orders["orderkey"].size == 15_000 and 3 < lines["orderkey"].size / 15_000 < 5
    assert np.isin(orders["custkey"], tables.customer["custkey"]).all()
    assert np.isin(lines["orderkey"], orders["orderkey"]).all()
    assert np.isin(lines["suppkey"], tables.supplier["suppkey"]).all()
    assert np.isin(tables.nation["regionkey"], tables.region["regionkey"]).all()
    assert np.bincount(lines["suppkey"]).max() > 5 * lines["suppkey"].size / tables.supplier["suppkey"].size
    assert (np.diff(orders["orderdate"]) >= 0).all()
    again = tpch(0.01, seed=3)
    assert (again.lineitem["suppkey"] == lines["suppkey"]).all()
    assert (tpch(0.01, seed=4).orders["custkey"] != orders["custkey"]).any()


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        zipf(0, 0.5)
    with pytest.raises(ValueError, match="skew z"):
        zipf(5, -1)
    with pytest.raises(ValueError, match="fluctuation f"):
        fluctuate(np.ones(3), np.zeros(3, np.int32), 2, -1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="scale"):
        tpch(0)
