"""One line out of several runs."""

import numpy as np
import pytest

from bench.medians import median_of, spread_of
from megaphone.harness.histogram import Histogram


def histogram(values: list[int]) -> Histogram:
    made = Histogram(bits=16)  # values below 2^16 are exact
    made.record(values)
    return made


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_median_at_each_rank(seed: int) -> None:
    runs = np.sort(np.random.default_rng(seed).integers(0, 50, (3, 40)), axis=1)
    made = median_of([histogram(run.tolist()) for run in runs])
    expected = histogram(np.median(runs, axis=0).astype(int).tolist())
    assert made == expected


def test_runs_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="runs of 2, 3 records are not runs of the same thing"):
        median_of([histogram([1, 2]), histogram([1, 2, 3])])


def test_the_spread_is_between_the_extremes() -> None:
    assert spread_of([histogram([4]), histogram([10]), histogram([5])], 0.99) == 2.5
