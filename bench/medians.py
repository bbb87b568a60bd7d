"""One distribution out of several runs of the same thing: noise of single runs is larger than what is looked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from megaphone.harness.histogram import Histogram


def median_of(runs: Sequence[Histogram]) -> Histogram:
    """At each share of the records the median of the runs' latencies, the maximum included.

    >>> runs = [Histogram() for _ in range(3)]
    >>> for run, values in zip(runs, ([1, 2, 90], [1, 4, 5], [3, 3, 6])):
    ...     run.record(values)
    >>> [median_of(runs).quantile(rank / 3) for rank in (1, 2, 3)]
    [1, 3, 6]
    """
    total = len(runs[0])
    if any(len(run) != total for run in runs):
        raise ValueError(f"runs of {', '.join(str(len(run)) for run in runs)} records are not runs of the same thing")
    stairs = [(values, np.rint((1 - above) * total).astype(np.int64)) for values, above in map(Histogram.ccdf, runs)]
    ranks = np.unique(np.concatenate([ends for _, ends in stairs]))  # from one to the next no run's latency changes
    latencies = [values[np.searchsorted(ends, ranks)] for values, ends in stairs]
    result = Histogram(runs[0].bits)
    result.record(np.median(latencies, axis=0).astype(np.int64), np.diff(ranks, prepend=0))
    return result


def spread_of(runs: Sequence[Histogram], quantile: float) -> float:
    """How many times the smallest of the runs' quantiles the largest one is."""
    values = [run.quantile(quantile) for run in runs]
    return max(values) / max(1, min(values))
