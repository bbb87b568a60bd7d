"""Histograms against a sorted list."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.comm.codec import decode, encode
from megaphone.harness import Histogram
from megaphone.harness.histogram import bucket_of, edges_of
from tests.engine.harness import repeatable

QUANTILES = [0, 0.001, 0.07, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1]
VALUES = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 10**6), st.integers(0, 2**62)), max_size=60)


def exact(values: list[int], q: float) -> int:
    """The quantile by its definition: the least value with at least a fraction q of all at or below it."""
    ordered = sorted(values)
    return next(v for i, v in enumerate(ordered) if Fraction(i + 1, len(ordered)) >= Fraction(str(q)))


@pytest.mark.parametrize(
    ("value", "lower", "upper"),
    [
        (15, 15, 16),
        (16, 16, 17),
        (33, 32, 34),
        (1000, 992, 1024),
        (10**6, 983_040, 1_015_808),
        (1_179_648, 1_179_648, 1_245_184),
    ],
)
def test_the_reference_s_buckets(value: int, lower: int, upper: int) -> None:
    assert [edge.tolist() for edge in edges_of(bucket_of(np.array([value]), 4), 4)] == [[lower], [upper]]


@pytest.mark.parametrize("bits", [1, 4, 7, 16])
def test_buckets_tile_the_numbers_and_are_narrow(bits: int) -> None:
    buckets = np.arange(0, (62 - bits) << bits, 1 << max(0, bits - 6))
    lower, upper = edges_of(buckets, bits)
    following, _ = edges_of(buckets + 1, bits)
    assert (upper == following).all()
    for value in (lower, upper - 1):
        assert (bucket_of(value, bits) == buckets).all()
    assert ((upper - lower) <= np.maximum(1, lower >> bits)).all()


@repeatable
@given(VALUES.filter(bool), st.sampled_from([1, 4, 7]))
def test_quantiles_are_at_least_the_exact_ones_and_little_more(values: list[int], bits: int) -> None:
    histogram = Histogram(bits)
    histogram.record(values)
    for q, measured in zip(QUANTILES, histogram.quantiles(QUANTILES), strict=True):
        true = exact(values, q)
        assert true <= measured <= true + (true >> bits)
    assert (histogram.least, histogram.greatest, len(histogram)) == (min(values), max(values), len(values))
    assert histogram.quantile(1) == max(values)


@repeatable
@given(VALUES, st.sampled_from([1, 4, 7]))
def test_the_ccdf_says_how_many_are_greater(values: list[int], bits: int) -> None:
    histogram = Histogram(bits)
    histogram.record(values)
    points, fractions = histogram.ccdf()
    for point, fraction in zip(points.tolist(), fractions.tolist(), strict=True):
        assert fraction == pytest.approx(sum(value > point for value in values) / len(values), abs=1e-12)
    assert (points.tolist()[-1:], fractions.tolist()[-1:]) == (([max(values)], [0.0]) if values else ([], []))


@repeatable
@given(st.lists(VALUES, max_size=5))
def test_merging_is_recording_it_all(parts: list[list[int]]) -> None:
    whole, merged = Histogram(), Histogram()
    whole.record([value for part in parts for value in part])
    for part in parts:
        histogram = Histogram()
        histogram.record(part)
        merged.merge(Histogram.from_dict(decode(encode(histogram.to_dict()))))
    assert merged == whole


def test_weights_count_a_value_several_times() -> None:
    weighted, plain = Histogram(), Histogram()
    weighted.record(np.array([5, 700, 9]), np.array([2, 3, 0]))
    plain.record([5, 5, 700, 700, 700])
    assert weighted == plain and weighted.greatest == 700


def test_two_digits_are_good_over_a_large_sample() -> None:
    chance = random.Random(1)
    values = [int(chance.lognormvariate(14, 1.5)) for _ in range(20_000)]
    histogram = Histogram()
    histogram.record(values)
    ordered = sorted(values)
    for q in (0.5, 0.9, 0.99, 0.9999):
        true = ordered[ceil(q * len(ordered)) - 1]
        assert true <= histogram.quantile(q) <= true * (1 + 1 / 128)


def test_an_empty_histogram_has_nothing_to_say() -> None:
    histogram = Histogram()
    histogram.record([])
    assert (len(histogram), histogram.quantiles([0.5, 1])) == (0, [0, 0])
    assert Histogram.from_dict(histogram.to_dict()) == histogram


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="was given -3"):
        Histogram().record([4, -3])
    with pytest.raises(ValueError, match="7 and 4 bits"):
        Histogram().merge(Histogram(bits=4))
    with pytest.raises(ValueError, match="between 0 and 1"):
        Histogram().quantile(99)
    with pytest.raises(ValueError, match="bits must be"):
        Histogram(bits=0)
