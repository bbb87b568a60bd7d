"""NEXMark: the highest rate that each query sustains with epochs of a millisecond, and its latency at half of that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

import dataflow
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import Outcome
from megaphone.harness.tables import label, number, table
from nexmark.queries.queries import PAPERS
from nexmark.runs import running
from nexmark.runs.measuring import LoadPlan, main
from nexmark.runs.running import RunPlan, RunResult

LAG = 0.05  # seconds: a rate is not sustained if what was due by the end of a trial takes longer than that beyond it
STEP = 2**0.5  # from one rate that is tried to the next
# Bytes by which each table and queue may grow without asking the system for memory, which is taken before the clock
# starts: the host of a virtual machine may take milliseconds for a page, and tables of Q3, Q5 and Q8 only ever grow.
READY = 512 << 20
QUANTILES = (0.5, 0.9, 0.99, 0.9999, 1)


@benchmark("nexmark-latency", "the highest rate of Q1 to Q8 with 1 ms epochs, and latency at half of it; two processes")
def nexmark_latency(run: Run) -> None:
    """Short trials find the rate. They begin at the rate that the query has in a closed loop. Latencies are medians of
    runs: a stall of the host in one of them is not the query's. A shared machine may be half as fast a minute later; so
    before each run the rate is tried again, and lowered if it is no longer sustained."""
    seconds, trial, rounds = (3.0, 1.5, 1) if run.quick else (8.0, 3.0, 3)
    rows = []
    for query in run.each("queries", list(PAPERS)):
        most = highest(partial(_sustains, query, trial), _throughput(query) / 2)
        outcomes = []
        for place in range(rounds):
            while place and not _sustains(query, trial, most):
                most /= STEP
            outcomes.append(_outcome(query, most / 2, seconds))
        run.report(f"{query} highest rate sustained", most, "events/s")
        found = [outcome.total.quantiles(QUANTILES) for outcome in outcomes]
        latencies = [median(values) / 1e6 for values in zip(*found, strict=True)]
        for quantile, latency in zip(QUANTILES, latencies, strict=True):
            run.report(f"{query} at half of it, {label(quantile)}", latency, "ms")
        worst = max(outcome.total.quantile(0.99) for outcome in outcomes) / 1e6
        run.report(f"{query} at half of it, the worst run's .99", worst, "ms")
        stolen = sum(outcome.stolen for outcome in outcomes) * 1000
        run.report(f"{query}, processor time that the host withheld", stolen, "ms")
        rows.append([query.upper(), *map(number, (most, most / 2, *latencies, worst, stolen))])
    headings = ["query", "highest rate", "half of it", "ms: .5", ".9", ".99", ".9999", "max", "worst .99", "withheld"]
    run.tell(f"medians of {rounds} runs\n{table(headings, rows, range(1, len(headings)))}")


def highest(sustains: Callable[[float], bool], first: float) -> float:
    """The highest rate that is sustained, to a factor of the square root of two.

    >>> highest(lambda rate: rate <= 5_000_000, first=1_000_000)
    4000000.0...
    >>> highest(lambda rate: rate <= 100_000, first=1_000_000)
    88388.3...
    """
    rate = first
    if not sustains(rate):
        while not sustains(rate := rate / STEP):
            if rate < 1000:
                raise RuntimeError("not even a thousand events a second are sustained")
        return rate
    while sustains(rate * STEP):
        rate *= STEP
    return rate


def _throughput(query: str) -> float:
    """Events/s of the closed loop."""
    events = 10_000_000
    results: list[RunResult] = dataflow.execute(running.main, RunPlan(query, events=events), workers=2)
    return events / max(result.seconds for result in results)


def _sustains(query: str, seconds: float, rate: float) -> bool:
    """Twice, if need be: the machine may have been busy with something else at that moment."""
    return any(_outcome(query, rate, seconds).lag <= LAG for _ in range(2))


def _outcome(query: str, rate: float, seconds: float) -> Outcome:
    load = LoadPlan(RunPlan(query), rate, seconds, ready=READY)
    seen = dataflow.execute(main, load, workers=2)
    return load.outcome(seen, warmup=seconds / 4)
