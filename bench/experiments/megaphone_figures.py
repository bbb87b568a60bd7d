"""Figures 1 and 13 to 19 of the Megaphone paper, at the scale of the machine that they are drawn on."""

from __future__ import annotations

from typing import Any

from bench.counting import Load, Setup, measure
from bench.registry import figure
from bench.run import Run
from dataflow.harness import plots

MILLION = 1_000_000
STRATEGIES = ("all-at-once", "fluid", "batched")


def _scale(domain: int, rate: int, bins: str, paper: str) -> str:
    """What was measured, and what the paper measured: under every picture."""
    return (
        f"two processes on one machine, {domain // MILLION} million keys, {rate / MILLION:g} million records/s, "
        f"{bins}, 1 ms epochs. {paper}"
    )


def _domain(run: Run, full: int) -> int:
    return (full // 8 if run.quick else full) * MILLION


def _migrating(setup: Setup, rate: int, names: tuple[str, ...] = STRATEGIES, batch: int = 16, gap: float = 3.0) -> Any:
    """A run in which each strategy moves bins away and the next moves them back."""
    plan = tuple((gap * (number + 1), name) for number, name in enumerate(names))
    return measure(setup, Load(rate, gap * (len(names) + 1), migrations=plan, batch=batch))


@figure("megaphone-1", "latency of all-at-once, fluid and batched migration, over time")
def figure_1(run: Run) -> None:
    domain, rate, bins = _domain(run, 64), MILLION, 4096
    runs = []
    for name in run.each("strategies", STRATEGIES):
        runs.append((name, _migrating(Setup(domain, bins, dense=True), rate, (name, name), batch=64)))
        _report(run, runs[-1][1], name)
    paper = "Paper: 4 machines, 4096 million keys, 4 million records/s."
    caption = _scale(domain, rate, "2^12 bins, batches of 64", paper)
    run.draw(plots.timelines(runs, "Latency while a quarter of the state moves, and moves back (Figure 1)", caption))


def _report(run: Run, outcome: Any, label: str) -> None:
    for migration in outcome.migrations:
        if migration.episode.seconds is not None and len(migration.during):
            run.report(f"{label}: duration", migration.episode.seconds * 1000, "ms")
            run.report(f"{label}: maximum latency", migration.during.greatest / 1e6, "ms")


def _overhead(run: Run, dense: bool, domain: int, title: str, paper: str) -> None:
    rate, seconds = 2 * MILLION, 4.0 if run.quick else 12.0
    powers = (4, 12, 20) if run.quick else (4, 8, 12, 16, 20)
    families = {}
    for power in run.each("numbers of bins", [*powers, 0]):
        setup = Setup(domain, (1 << power) if power else 0, dense)
        outcome = measure(setup, Load(rate, seconds))
        families[setup.name] = outcome.total
        for label, quantile in ((".9", 0.9), (".99", 0.99), (".9999", 0.9999), ("max", 1.0)):
            run.report(f"{setup.name}, {label}", outcome.total.quantile(quantile) / 1e6, "ms")
    caption = _scale(domain, rate, "2^4 to 2^20 bins", paper)
    run.draw(plots.ccdf(families, title, caption, ordered=True, reference=("native",), legend="bins"))


@figure("megaphone-13", "hash count: overhead by number of bins")
def figure_13(run: Run) -> None:
    paper = "Paper: 16 workers, 256 million keys, 4 million records/s."
    _overhead(run, False, _domain(run, 16), "Hash count: latency by number of bins (Figure 13)", paper)


@figure("megaphone-14", "key count: overhead by number of bins")
def figure_14(run: Run) -> None:
    paper = "Paper: 16 workers, 256 million keys, 4 million records/s."
    _overhead(run, True, _domain(run, 16), "Key count: latency by number of bins (Figure 14)", paper)


@figure("megaphone-15", "key count: overhead by number of bins on a large domain")
def figure_15(run: Run) -> None:
    paper = "Paper: 16 workers, 8192 million keys, 4 million records/s."
    _overhead(run, True, _domain(run, 128), "Key count on a large domain: latency by number of bins (Figure 15)", paper)


def _tradeoff(run: Run, cases: list[tuple[str, Setup, int]], title: str, caption: str, legend: str) -> None:
    points = []
    for label, setup, batch in run.each(legend, cases):
        outcome = _migrating(setup, MILLION, ("all-at-once", "fluid", "batched", "all-at-once"), batch, 2.5)
        points += plots.points(outcome, label)
        _report(run, outcome, label)
    run.draw(plots.latency_against_duration(points, title, caption, legend=legend))


@figure("megaphone-16", "migration latency against duration, by number of bins")
def figure_16(run: Run) -> None:
    domain = _domain(run, 64)
    powers = (4, 8, 12) if run.quick else (4, 6, 8, 10, 12, 14)
    cases = [(f"2^{power}", Setup(domain, 1 << power, dense=True), max(1, (1 << power) // 16)) for power in powers]
    caption = _scale(
        domain, MILLION, "batches of a quarter of what moves", "Paper: 4096 million keys, 2^4 to 2^14 bins."
    )
    _tradeoff(run, cases, "Maximum latency against duration, by number of bins (Figure 16)", caption, "bins")


@figure("megaphone-17", "migration latency against duration, by domain")
def figure_17(run: Run) -> None:
    domains = (4, 8, 16) if run.quick else (8, 16, 32, 64, 128)
    cases = [(f"{domain} M", Setup(domain * MILLION, 4096, dense=True), 64) for domain in domains]
    caption = _scale(domains[-1] * MILLION, MILLION, "2^12 bins, batches of 64", "Paper: 256 to 8192 million keys.")
    _tradeoff(run, cases, "Maximum latency against duration, by number of keys (Figure 17)", caption, "keys")


@figure("megaphone-18", "migration latency and duration at fixed state per bin")
def figure_18(run: Run) -> None:
    domains = (4, 8, 16) if run.quick else (8, 16, 32, 64, 128)
    cases = [
        (f"{domain} M, 2^{(domain * 16).bit_length() - 1}", Setup(domain * MILLION, domain * 16, dense=True), 16)
        for domain in domains
    ]
    paper = "Paper: 4 million keys per bin."
    caption = _scale(domains[-1] * MILLION, MILLION, "62,500 keys per bin, batches of 16", paper)
    title = "Maximum latency against duration, at fixed state per bin (Figure 18)"
    _tradeoff(run, cases, title, caption, "keys and bins")


@figure("megaphone-19", "memory of each process while state moves")
def figure_19(run: Run) -> None:
    domain, rate, bins = _domain(run, 128), MILLION, 4096
    lines = {}
    for name in run.each("strategies", STRATEGIES):
        outcome = _migrating(Setup(domain, bins, dense=True), rate, (name, name), batch=64)
        for worker, what in ((0, "sends, then receives"), (1, "receives, then sends")):
            lines[f"{name}, worker {worker}"] = outcome.memory[worker]
            peak = max(outcome.memory[worker][1])
            run.report(f"{name}, worker {worker} ({what}): peak", peak / (1 << 20), "MiB")
    caption = _scale(domain, rate, "2^12 bins, batches of 64", "Paper: up to 8192 million keys, 16 workers.")
    run.draw(plots.memories(lines, "Memory while a quarter of the state moves, and moves back (Figure 19)", caption))
