"""NEXMark: what a migration of a large state costs those who wait: all at once, and in batches, beside no migration.

The state is that of Figures 7 to 12 (see `megaphone_nexmark`), a million rows and more where the query has any: by
in-flight auctions for Q4 to Q6, by persons for Q3 and Q8.
"""

from __future__ import annotations

from statistics import median

import dataflow
from bench.experiments.megaphone_nexmark import SCALES
from bench.registry import benchmark
from bench.run import Run
from megaphone.harness import Outcome
from megaphone.harness.tables import duration, number, table
from nexmark.runs.measuring import LoadPlan, main
from nexmark.runs.running import RunPlan

QUERIES = ("q3", "q4", "q5", "q6", "q8")  # those with a state that is worth moving
RATE = 200_000
BINS = 1 << 10
BATCH_BINS = 4
STRATEGIES = ("batched",) * 4 + ("all-at-once",) * 4  # away and back, twice
HEADINGS = (
    "query", "epochs", "keys", "MiB", "steady .99", "max",
    "batched took", "max", "over steady", "at once max", "over batched",
)  # fmt: skip


@benchmark("nexmark-migrate", "latency while a large state moves, in batches and at once, beside the steady one")
def nexmark_migrate(run: Run) -> None:
    """Away and back in batches, twice, then away and back at once, twice, in one run of each query; medians of four: a
    stall of the host in one of them is not the migration's."""
    rows = []
    for query in run.each("queries", list(QUERIES[-1:] if run.quick else QUERIES)):
        load = load_of(query, run.quick)
        seen = dataflow.execute(main, load, workers=2)
        outcome = load.outcome(seen, warmup=2.0)
        keys, size = sum(each.keys for each in seen), sum(each.state_bytes for each in seen)
        steady = steady_of(outcome)
        batched, at_once = (_most(outcome, name) for name in ("batched", "all-at-once"))
        run.report(f"{query}, keys at the start", keys, "keys")
        run.report(f"{query}, batched, max (baseline: steady)", batched, "ms", baseline=steady[1])
        run.report(f"{query}, all-at-once, max (baseline: batched)", at_once, "ms", baseline=batched)
        took = max(m.episode.seconds or 0.0 for m in outcome.migrations if m.episode.name == "batched")
        rows.append([
            query.upper(), duration(load.epoch), f"{keys:,}", number(size / 2**20), *map(number, steady),
            duration(took), number(batched), f"{batched / steady[1]:.2f}", number(at_once), f"{at_once / batched:.1f}",
        ])  # fmt: skip
    told = f"ms; {RATE:,} events/s, {BINS:,} bins, batches of {BATCH_BINS} or 8 MiB; a quarter of the state moves"
    run.tell(f"{told}\n{table(HEADINGS, rows)}")


def load_of(query: str, quick: bool) -> LoadPlan:
    """A migration every three seconds."""
    scale = SCALES[query]
    gap = 2.0 if quick else 3.0
    return LoadPlan(
        RunPlan(query, scale.config, bins=BINS),
        RATE,
        2.0 + gap * (len(STRATEGIES) + 1),
        scale.epoch,
        dilation=scale.dilation,
        preload=scale.preload // (10 if quick else 1),
        migrations=[(2.0 + gap * (place + 1), name) for place, name in enumerate(STRATEGIES)],
        batch_bins=BATCH_BINS,
    )


def steady_of(outcome: Outcome) -> tuple[float, float]:
    """The .99 and the maximum in ms before each of the batched migrations: some seconds each."""
    before = [migration.before for migration in outcome.migrations[:4]]
    return median(h.quantile(0.99) for h in before) / 1e6, median(h.greatest for h in before) / 1e6


def _most(outcome: Outcome, name: str) -> float:
    """The largest latency during each migration of a name, in ms: the median."""
    return median(m.during.greatest for m in outcome.migrations if m.episode.name == name) / 1e6
