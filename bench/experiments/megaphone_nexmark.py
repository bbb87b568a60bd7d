"""Figures 5 to 12 of the Megaphone paper: the latency of NEXMark queries over time, while half of one worker's bins
move to the other and back, all at once and in batches.

The paper has 16 workers on four machines, 4 million events/s and 1,200 s. Here are two workers on two cores; the scale
is written on each figure. State is made large before the clock starts, by raising the proportion of what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import dataflow
from bench.registry import figure
from bench.run import Run
from megaphone.harness import Outcome, plots
from nexmark.events.config import SECOND, Config
from nexmark.runs.measuring import LoadPlan, main
from nexmark.runs.running import RunPlan

RATE = 200_000
BINS = 1 << 12
BATCH_BINS = 64


@dataclass(frozen=True)
class QueryScale:
    """What makes the state of a query large: which events there are, and how many come before the clock starts."""

    config: Config = field(default_factory=Config)
    preload: int = 0  # events
    dilation: int = 1
    epoch: float = 0.001  # seconds
    windows: dict[str, int] = field(default_factory=dict)
    told: str = ""  # for the caption


_GROWING = Config(persons=5, auctions=5, bids=40, active_people=100_000, hot_seller_ratio=1)
_MANY_OPEN = Config(persons=5, auctions=15, bids=30, in_flight=4_000_000, hot_auction_ratio=1)
_OPEN_TOLD = "four million auctions open at a time, 15 of 50 events are auctions"
_STATELESS = "the query has no state: what moves is who takes which records"
SCALES = {
    "q1": QueryScale(told=_STATELESS),
    "q2": QueryScale(told=_STATELESS),
    "q3": QueryScale(_GROWING, 40_000_000, told="5 of 50 events are persons and 5 are auctions, nobody is hot"),
    "q4": QueryScale(_MANY_OPEN, 26_000_000, told=_OPEN_TOLD),
    "q5": QueryScale(_MANY_OPEN, 20_000_000, told=f"{_OPEN_TOLD}; windows of 60 s that slide by 1 s"),
    "q6": QueryScale(_MANY_OPEN, 26_000_000, told=_OPEN_TOLD),
    "q7": QueryScale(told="the state is a row for each window of 10 s"),
    "q7 every minute": QueryScale(
        dilation=12, windows={"q7_window": 60 * SECOND}, told="the state is a row for each window of 60 s"
    ),
    "q8": QueryScale(_GROWING, 20_000_000, 79, told="5 of 50 events are persons and 5 are auctions; windows of 12 h"),
}


def load_of(name: str, strategy: str, quick: bool) -> LoadPlan:
    """A query, bins away at a third of the time, and back at two thirds. `native`: without bins, and nothing moves."""
    scale = SCALES[name]
    seconds = 9.0 if quick else 30.0
    query = name.partition(" ")[0]
    native = strategy == "native"
    return LoadPlan(
        RunPlan(query, scale.config, bins=BINS, variant="native" if native else "migratable", windows=scale.windows),
        RATE,
        seconds,
        scale.epoch,
        dilation=scale.dilation,
        preload=scale.preload // (10 if quick else 1),
        migrations=[] if native else [(seconds / 3, strategy), (seconds * 2 / 3, strategy)],
        batch_bins=BATCH_BINS,
    )


def draw(run: Run, query: str) -> None:
    """Runs both strategies and draws them side by side; of Q3 also the native query (Figure 7b), and of Q7 windows of a
    minute, which is what the paper has."""
    panels = []
    caption = ""
    cases = [(query, "all-at-once"), (query, "batched")]
    cases += {"q3": [("q3", "native")], "q7": [("q7 every minute", "batched")]}.get(query, [])
    for name, strategy in run.each("strategies", cases):
        load = load_of(name, strategy, run.quick)
        seen = dataflow.execute(main, load, workers=2)
        outcome = load.outcome(seen, warmup=2.0)
        label = strategy if name == query else f"{name.partition(' ')[2]}, {strategy}"
        panels.append((label, outcome))
        keys = sum(each.keys for each in seen)
        mib = sum(each.state_bytes for each in seen) / 2**20
        if name == query and strategy != "native":
            caption = _caption(query, load, keys, mib)
        _report(run, label, outcome, keys)
    caption += {
        "q3": " Native: the same query without bins, which cannot migrate: nothing moves in it (Figure 7b).",
        "q7": " Every minute: windows of 60 s, event time 12 times as fast.",
    }.get(query, "")
    number = int(query[1:]) + 4
    title = f"NEXMark {query.upper()}: latency while bins move, and move back (Figure {number})"
    run.draw(plots.timelines(panels, title, caption))


def _caption(query: str, load: LoadPlan, keys: int, mib: float) -> str:
    scale = SCALES[query]
    parts = [
        f"Two workers, {load.rate:,.0f} events/s, epochs of {load.epoch * 1000:g} ms, {BINS:,} bins",
        f"a batch has {BATCH_BINS} bins, fewer above 8 MiB",
        f"{keys:,} keys and {mib:,.0f} MiB of state at the start" if keys else "no state at the start",
    ]
    parts += [f"event time {load.dilation} times as fast"] if load.dilation > 1 else []
    parts += [scale.told] if scale.told else []
    return "; ".join(parts) + ". The paper: 16 workers, 4,000,000 events/s, 4,096 bins. One run each."


def _report(run: Run, strategy: str, outcome: Outcome, keys: int) -> None:
    run.report(f"{strategy}, keys at the start", keys, "keys")
    run.report(f"{strategy}, sustained", float(outcome.sustained), "1 if so")
    if not outcome.migrations:
        run.report(f"{strategy}, .99", outcome.total.quantile(0.99) / 1e6, "ms")
        run.report(f"{strategy}, max latency", outcome.total.greatest / 1e6, "ms")
    for number, migration in enumerate(outcome.migrations, 1):
        if len(migration.before) and len(migration.during):
            before, during = (histogram.greatest / 1e6 for histogram in (migration.before, migration.during))
            run.report(f"{strategy} {number}, max latency during (baseline: before)", during, "ms", baseline=before)
            run.report(f"{strategy} {number}, .99 before", migration.before.quantile(0.99) / 1e6, "ms")
        if migration.episode.seconds is not None:
            run.report(f"{strategy} {number}, duration", migration.episode.seconds, "s")


def _register(number: int) -> None:
    query = f"q{number}"

    @figure(f"megaphone-{number + 4}", f"NEXMark Q{number}, latency over time, all-at-once against batched")
    def body(run: Run) -> None:
        draw(run, query)


for _number in range(1, 9):
    _register(_number)
