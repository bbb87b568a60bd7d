"""What the details of section 4.4 do to a migration (matching, gaps), and a bound on the latency, in one run."""

from __future__ import annotations

from statistics import median

from bench.counting import GAP, CountLoad, Setup, measure
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import Outcome

MILLION = 1_000_000
NAMES = {
    "fluid": "fluid",
    "matched": "matched: one bin each way",
    "fluid, gap": f"fluid, a gap of {GAP} epochs",
    "optimized": f"matched, a gap of {GAP} epochs",
    "batched": "batches of 16 or 8 MiB",
    "batched, gap": f"batches of 16 or 8 MiB, a gap of {GAP} epochs",
    "within 20 ms": "within 20 ms",
    "all-at-once": "all-at-once",
}


@benchmark("count-steps", "workers exchange half of their state: what matching, gaps and a bound on the latency do")
def steps(run: Run) -> None:
    million = 8 if run.quick else 64
    trips = 1 if run.quick else 2
    for power in run.each("powers of two of bins", [8] if run.quick else [8, 10]):
        setup = Setup(million * MILLION, 1 << power, dense=True)
        each = 1.5 + 0.007 * (1 << power) / 2
        names = ["batched", "batched"] + [name for name in NAMES for _ in range(2 * trips)]  # the first touch memory
        plan = tuple((2.0 + each * place, name) for place, name in enumerate(names))
        outcome = measure(setup, CountLoad(MILLION, plan[-1][0] + each, migrations=plan, swap=True))
        kind = f"{million} M dense, 2^{power} bins"
        run.report(f"{kind}, maximum before", outcome.migrations[0].before.greatest / 1e6, "ms")
        run.report(f"{kind}, processor time that the host withheld", outcome.stolen * 1000, "ms")
        _report(run, kind, NAMES, outcome)


LINKS = {
    "all-at-once": "all-at-once",
    "batched": "batches of 16 or 8 MiB",
    "progressive": "mini-migrations: at most 16 bins of a node",
    "scheduled": "scheduled, blocks of 16 bins whole",
    "scheduled in pieces": "scheduled, blocks in pieces",
}


@benchmark("count-links", "mini-migrations and schedules over the links, beside batches: duration and maximum latency")
def links(run: Run) -> None:
    million, trips = (8, 1) if run.quick else (64, 2)
    setup = Setup(million * MILLION, 1 << 10, dense=True)
    names = ["batched", "batched"] + [name for name in LINKS for _ in range(2 * trips)]  # the first touch memory
    plan = tuple((2.0 + 2.5 * place, name) for place, name in enumerate(names))
    load = CountLoad(MILLION, plan[-1][0] + 2.5, migrations=plan, swap=True, block=16)
    _report(run, f"{million} M dense, 2^10 bins", LINKS, measure(setup, load))


def _report(run: Run, kind: str, names: dict[str, str], outcome: Outcome) -> None:
    """Medians of all migrations but the first two."""
    for name, label in names.items():
        mine = [m for m in outcome.migrations[2:] if m.episode.name == name and m.episode.seconds is not None]
        if not mine:
            run.report(f"{kind}, {label}: not complete", 0.0, "")
            continue
        run.report(f"{kind}, {label}: duration", median([m.episode.seconds or 0.0 for m in mine]) * 1000, "ms")
        run.report(f"{kind}, {label}: maximum latency", median([m.during.greatest for m in mine]) / 1e6, "ms")
