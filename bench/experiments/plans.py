"""Windowed joins in columns: how fast they are, and what records wait for while a plan changes, by method."""

from __future__ import annotations

import dataflow
from bench.joining import NEW, OLD, Pairing, PlanLoad, PlanOutcome, closed_loop, measure, plain_loop, polars_join
from bench.registry import benchmark, figure
from bench.run import Run
from megaphone.harness import plots

WAYS = (
    ("moving-state", "all at once"),
    ("moving-state", "bin by bin"),
    ("parallel-track", "all at once"),
    ("hybmig", "all at once"),
    ("hybmig", "bin by bin"),
)


@benchmark("plans", "a windowed join in columns against a plain loop and polars; latency while a plan changes")
def plans(run: Run) -> None:
    """Latencies are those of the run of two that the host held up less."""
    pairing = Pairing(size=1 << (14 if run.quick else 16), window=20, domain=1 << (18 if run.quick else 20))
    seconds = 2.0 if run.quick else 8.0
    sent, found, took = plain_loop(pairing, seconds)
    plain = sent / took
    run.report("plain loop, one core", plain / 1e6, "million records/s")
    run.report("plain loop: results of a record", found / sent, "results")
    for workers, told in ((1, "one worker"), (2, "two workers")):
        done = dataflow.execute(closed_loop, pairing, seconds, workers=workers)
        rate = sum(given / lasted for given, _, lasted in done)
        run.report(f"window_join, {told}", rate / 1e6, "million records/s", baseline=plain / 1e6)
        each = sum(joined for _, joined, _ in done) / sum(given for given, _, _ in done)
        run.report(f"window_join, {told}: results of a record", each, "results")
    records, took = polars_join(pairing, 3)
    run.report("polars, one window at once, all cores", records / took / 1e6, "million records/s", baseline=plain / 1e6)
    for workers in run.each("workers", (1, 2)):
        for method, strategy in (WAYS[0], WAYS[-1]):
            name = f"{method}, {strategy}, {workers} worker{'s' * (workers > 1)}"
            tries = [measure(_load(), method, strategy, workers) for _ in range(1 if run.quick else 2)]
            _report(run, name, min(tries, key=lambda each: each.held_up))


@figure("hybmig-1", "latency while a plan changes, by method, over time, with the compiled join")
def figure_1(run: Run) -> None:
    load, runs = _load(), []
    for method, strategy in run.each("methods", WAYS):
        name = f"{method}, {strategy}"
        found = measure(load, method, strategy)
        runs.append((name, found.outcome))
        _report(run, name, found)
    caption = (
        f"One worker, four streams of {load.rate / 4e3:g} thousand records/s each, a window of "
        f"{load.window * load.epoch:g} s, {load.bins} bins, epochs of {load.epoch * 1e3:g} ms. "
        f"The plan goes from {OLD} to {NEW}. One run each."
    )
    run.draw(plots.timelines(runs, "Latency while the plan of a join changes", caption))


def _load() -> PlanLoad:
    """Where moving state is more than ten times above: some 900 thousand composites. Less would be quicker by nothing,
    because the window takes its time."""
    return PlanLoad(120_000, 72_000, 250)


def _report(run: Run, name: str, found: PlanOutcome) -> None:
    """The maximum latency from the start of the migration until nothing old is left, against that before; and the same
    without epochs that the host held up."""
    outcome = found.outcome
    told = name if outcome.sustained else f"{name} (not sustained)"
    for migration in outcome.migrations:
        before, during = (part.quantile(1.0) / 1e6 for part in (migration.before, migration.during))
        run.report(f"{told}: maximum latency", during, "ms", baseline=before)
        low, high = (part.quantile(0.99) / 1e6 for part in (migration.before, migration.during))
        run.report(f"{told}: .99 of latencies", high, "ms", baseline=low)
    run.report(f"{told}: maximum without stalls of the host", found.calm[1], "ms", baseline=found.calm[0])
    run.report(f"{told}: epochs that the host held up", 100 * found.held_up, "%")
