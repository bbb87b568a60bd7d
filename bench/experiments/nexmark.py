"""NEXMark: throughput of all queries, native and migratable, and where the time goes."""

from __future__ import annotations

import cProfile
from collections.abc import Mapping
from statistics import median
from time import perf_counter

import dataflow
from bench.attribution import PURPOSES, seconds_by_purpose
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import plots, tables
from nexmark.events.config import Config
from nexmark.queries.queries import NEEDS, PAPERS, QUERIES
from nexmark.runs.running import Job, RunPlan, RunResult, main
from nexmark.runs.sources import MAKING

# Million events/s, recorded on this kind of machine (two cores): the Rust original on two threads, whose strings are
# empty and whose auctions hardly ever close; and Bytewax on two processes, at 10,000 events/s of event time.
RUST = {
    "native": dict(zip(PAPERS, (20.0, 19.1, 17.7, 4.4, 8.9, 3.6, 18.5, 15.8), strict=True)),
    "migratable": dict(zip(PAPERS, (17.9, 14.5, 14.5, 3.5, 6.1, 4.3, 13.1, 15.4), strict=True)),
}
BYTEWAX = dict(zip(PAPERS, (3.9, 4.0, 2.6, 0.27, 0.01, 0.25, 0.19, 0.65), strict=True))
RATES = {"1 M/s": 1_000_000, "10 k/s": 10_000}  # of event time


EVENTS = 30_000_000  # ten million take some queries less than a tenth of a second
FEW_READ = 4  # times as many where a query reads no bids: 30 million are over in 0.15 s, and medians of that are noise


@benchmark("nexmark", "throughput of Q1 to Q8, native and migratable, two processes; beside recorded figures of others")
def nexmark(run: Run) -> None:
    """Medians of three runs, in which variants take turns: whatever else the machine does hits both. Queries that take
    half a second have seven runs, because one pair in three often meets a stall."""
    events, rounds = (2_000_000, 1) if run.quick else (EVENTS, 3)
    groups: dict[str, dict[str, float]] = {}
    rows = []
    pairs = [(label, query) for label in (list(RATES)[:1] if run.quick else RATES) for query in PAPERS]
    for label, query in run.each("queries", pairs):
        seconds: dict[str, list[float]] = {"native": [], "migratable": []}
        count = _count(query, events)
        for _ in range(rounds if count == events else 2 * rounds + 1):
            for variant, taken in seconds.items():
                taken.append(_seconds(RunPlan(query, Config(rate=RATES[label]), events=count, variant=variant)))
        fast = {variant: count / median(taken) for variant, taken in seconds.items()}
        for variant, rate in fast.items():
            run.report(f"{query} {variant}, {label} (baseline: Rust)", rate, "events/s", RUST[variant][query] * 1e6)
        groups[f"{query.upper()}, {label}"] = fast
        run.report(
            f"{query} seconds, migratable over native, {label}",
            median(seconds["migratable"]), "s", baseline=median(seconds["native"]),
        )  # fmt: skip
        rows.append(_row(query, label, fast))
    many = f"{events:,} events (Q3 and Q8: {FEW_READ * events:,})"
    title = f"NEXMark, {many}, two worker processes"
    run.draw(plots.bars(groups, title, "events/s", line=(4e6, "floor: 4 M/s")))
    told = f"million events/s, medians of {rounds} (Q3 and Q8: {2 * rounds + 1}), {many}, two worker processes"
    run.tell(f"{told}\n{tables.table(HEADINGS, rows, range(2, len(HEADINGS)))}")


HEADINGS = (
    "query", "event time", "native", "migratable", "its time over native's",
    "recorded: Rust native", "Rust Megaphone", "Bytewax",
)  # fmt: skip


def _count(query: str, events: int) -> int:
    return events if "bid" in NEEDS[query] else FEW_READ * events


def _row(query: str, label: str, fast: Mapping[str, float]) -> list[str]:
    ours = [f"{fast[variant] / 1e6:.1f}" for variant in ("native", "migratable")]
    ratio = f"{fast['native'] / fast['migratable']:.2f}"
    theirs = [f"{figures[query]:g}" for figures in (RUST["native"], RUST["migratable"], BYTEWAX)]
    return [query.upper(), label, *ours, ratio, *theirs]


def _seconds(plan: RunPlan) -> float:
    results: list[RunResult] = dataflow.execute(main, plan, workers=2)
    return max(result.seconds for result in results)


@benchmark("nexmark-making", "throughput of Q1 to Q8 told three ways: columns read, all columns, events in memory")
def nexmark_making(run: Run) -> None:
    """Medians of three runs; variants and ways take turns. Baseline: the Rust original, whose events are in memory."""
    events, rounds = (1_000_000, 1) if run.quick else (10_000_000, 3)
    rows = []
    for query in run.each("queries", list(PAPERS)):
        count = _count(query, events)
        ways = [(variant, making) for variant in ("native", "migratable") for making in MAKING]
        seconds: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for (variant, making), taken in seconds.items():
                taken.append(_seconds(RunPlan(query, events=count, variant=variant, making=making)))
        fast = {way: count / median(taken) / 1e6 for way, taken in seconds.items()}
        for (variant, making), rate in fast.items():
            rust = READY[variant].get(query) if making == "ready" else None
            run.report(f"{query} {variant}, {making}", rate, "M events/s", baseline=rust)
        theirs = [f"{READY[variant][query]:g}" if query in READY[variant] else "" for variant in READY]
        rows.append([query.upper(), *(f"{fast[way]:.1f}" for way in ways), *theirs])
    headings = ["query", *(f"{variant}: {making}" for variant in ("native", "migr.") for making in MAKING)]
    told = (
        f"million events/s, medians of {rounds}, {events:,} events (Q3 and Q8: {FEW_READ * events:,}), two processes.\n"
        "read: the columns that the query reads are made as it goes. all: so are others. ready: all are in memory.\n"
        "The columns of the Rust original are events in memory, and so are to be compared with `ready` alone."
    )
    headings += ["Rust native: ready", "Rust Megaphone: ready"]
    run.tell(f"{told}\n{tables.table(headings, rows, range(1, len(headings)))}")


# Million events/s of the Rust original, events in memory, two workers, at its best batch size, one pass: issue 22. Of
# native timely only Q5 is known, from 28 to 32.
READY = {
    "native": {"q5": 30.0},
    "migratable": dict(zip(PAPERS[:6], (36.0, 45.0, 68.0, 14.0, 16.0, 14.0), strict=True)),
}


@benchmark("nexmark-community", "throughput of Q0 and Q9 to Q22, native and migratable, two processes")
def nexmark_community(run: Run) -> None:
    """Medians of three runs, in which variants take turns. Q14 makes a string for each bid: most of its time."""
    events, rounds = (500_000, 1) if run.quick else (10_000_000, 3)
    rows = []
    for query in run.each("queries", [query for query in QUERIES if query not in PAPERS]):
        seconds: dict[str, list[float]] = {"native": [], "migratable": []}
        for _ in range(rounds):
            for variant, taken in seconds.items():
                taken.append(_seconds(RunPlan(query, events=events, variant=variant)))
        native, migratable = (median(taken) for taken in seconds.values())
        run.report(f"{query} seconds, migratable over native", migratable, "s", baseline=native)
        rows.append([query.upper(), *(f"{events / taken / 1e6:.1f}" for taken in (native, migratable))])
        rows[-1].append(f"{migratable / native:.2f}")
    told = f"million events/s, medians of {rounds}, {events:,} events, generation included, two worker processes"
    headings = ["query", "native", "migratable", "its time over native's"]
    run.tell(f"{told}\n{tables.table(headings, rows, range(1, len(headings)))}")


@benchmark("nexmark-profile", "where the time of each query goes, in parts that add up to the whole; two processes")
def nexmark_profile(run: Run) -> None:
    """Per cent of the time by the clock. What the profiler did not see is reported as well: it is next to nothing."""
    events = 2_000_000 if run.quick else 10_000_000
    rows = []
    for query in run.each("queries", list(PAPERS)):
        plan = RunPlan(query, events=_count(query, events))
        parts: list[dict[str, float]] = dataflow.execute(_profiled, plan, workers=2)
        whole = sum(part["whole"] for part in parts)
        shares = {purpose: 100 * sum(part[purpose] for part in parts) / whole for purpose in (*PURPOSES, UNSEEN)}
        for purpose, share in shares.items():
            run.report(f"{query} {purpose}", share, "% of the time")
        rows.append([query.upper(), *(f"{share:.1f}" for share in (*shares.values(), sum(shares.values())))])
    run.tell(tables.table(["% of the time", *PURPOSES, UNSEEN, "sum"], rows))


UNSEEN = "not seen"


async def _profiled(worker: dataflow.Worker, plan: RunPlan) -> dict[str, float]:
    profile = cProfile.Profile()
    began = 0.0

    def watch(job: Job, number: int) -> None:
        nonlocal began
        if number == 0:  # set-up is over
            began = perf_counter()
            profile.enable()

    await main(worker, plan, watch=watch)
    profile.disable()
    whole = perf_counter() - began
    seen = seconds_by_purpose(profile)
    return {**seen, UNSEEN: whole - sum(seen.values()), "whole": whole}
