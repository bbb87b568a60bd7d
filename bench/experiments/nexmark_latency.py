"""NEXMark: the highest rate that each query sustains with epochs of a millisecond, and its latency at half of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dataflow
from bench.registry import benchmark
from bench.run import Run
from dataflow.harness import Outcome
from dataflow.harness.tables import label, number, table
from nexmark.measuring import Load, main
from nexmark.queries import QUERIES
from nexmark.running import Plan

FIRST = 2_000_000  # events/s that are tried first
MOST = 64_000_000
LAG = 0.05  # of a trial's length: a rate is not sustained if what was due by the end takes longer than that beyond it
HALVINGS = 2  # of the interval that is left when it is known between which powers of two the rate is: to 2^(1/4)
QUANTILES = (0.5, 0.9, 0.99, 0.9999, 1)


@benchmark("nexmark-latency", "the highest rate of Q1 to Q8 with 1 ms epochs, and latency at half of it; two processes")
def nexmark_latency(run: Run) -> None:
    """Short trials find the rate; what a trial does not sustain is tried once more, for the machine may be to blame."""
    seconds = (1.0, 3.0) if run.quick else (2.0, 8.0)
    rows = []
    for query in run.each("queries", list(QUERIES)):
        most = highest(lambda rate, query=query: _sustains(query, rate, seconds[0]))  # type: ignore[misc]
        outcome = _outcome(query, most / 2, seconds[1])
        run.report(f"{query} highest rate sustained", most, "events/s")
        latencies = [value / 1e6 for value in outcome.total.quantiles(QUANTILES)]
        for quantile, latency in zip(QUANTILES, latencies, strict=True):
            run.report(f"{query} at half of it, {label(quantile)}", latency, "ms")
        rows.append([query.upper(), number(most), number(most / 2), *map(number, latencies)])
    headings = ["query", "highest events/s", "half of it", "ms: .5", ".9", ".99", ".9999", "max"]
    run.tell(table(headings, rows, range(1, len(headings))))


def highest(sustains: Callable[[float], bool], first: float = FIRST, most: float = MOST) -> float:
    """The highest rate that is sustained, found by doubling or halving and then in between.

    >>> highest(lambda rate: rate <= 5_000_000)
    4756828.4...
    """
    low = first
    if sustains(low):
        while low < most and sustains(2 * low):
            low *= 2
    else:
        while not sustains(low := low / 2):
            if low < 1000:
                raise RuntimeError("not even a thousand events a second are sustained")
    step = 2.0
    for _ in range(HALVINGS):
        step **= 0.5
        if sustains(low * step):
            low *= step
    return low


def _sustains(query: str, rate: float, seconds: float) -> bool:
    return any(_outcome(query, rate, seconds).lag <= LAG * seconds for _ in range(2))


def _outcome(query: str, rate: float, seconds: float) -> Outcome:
    load = Load(Plan(query), rate, seconds)
    seen: list[Any] = dataflow.execute(main, load, workers=2)
    return load.outcome(seen, warmup=seconds / 4)
