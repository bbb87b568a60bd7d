"""``python -m nexmark demo``: a large state moves while the stream flows, in three ways (the paper's Figure 1); then a
third worker joins and leaves."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import dataflow
from megaphone.harness import Provenance, figures_of, plots, write_document, write_report
from nexmark.commands.latency import check_epoch, check_events, document_of, scaling_statements, state_statement
from nexmark.commands.options import FAILED, OK, Commands, Misuse, number, seconds, whole
from nexmark.events.config import Config
from nexmark.runs.measuring import LoadPlan, main, who_stayed
from nexmark.runs.running import RunPlan

DESCRIPTION = """\
NEXMark Q8 (new users who sell) on two worker processes, with a state of more than a million keys, under steady load.
Half of one worker's bins move to the other and back, all at once, then one by one (fluid), then in batches, while
events go on coming; then a third worker joins, gets its share of the keys, and leaves again. A live view shows rate,
latency, frontier and where the bins are; then latency over time is drawn, as in Figure 1 of the Megaphone paper, with
this run's numbers, and put into a page.
"""

EPILOG = """\
exit codes: 0 done, 1 the machine did not sustain the rate (try a lower one: --rate 50,000), 2 makes no sense, 130
interrupted
"""

# Of 50 events 5 are persons and 5 auctions: a site that grows. Bids are 40, and Q8 does not look at them.
EVENTS = Config(persons=5, auctions=5, bids=40, active_people=100_000, hot_seller_ratio=1)
WARM_UP = 2.0


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="a million keys move while the stream flows: a live view, a picture, a page",
        description=DESCRIPTION,
        epilog=EPILOG,
        usage="%(prog)s [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rate", type=number, default=200_000, metavar="R", help="events per second (200,000)")
    parser.add_argument("--duration", type=seconds, default=44, metavar="S", help="seconds (44)")
    parser.add_argument("--epoch-ms", type=number, default=2, metavar="MS", help="length of an epoch (2)")
    parser.add_argument("--keys", type=whole, default=2_000_000, metavar="N", help="persons at the start (2,000,000)")
    parser.add_argument("--bins", type=whole, default=256, metavar="B", help="bins of state (256)")
    parser.add_argument("--batch-bins", type=whole, default=4, metavar="N", help="bins of a batch (4)")
    parser.add_argument("--out", type=Path, default=Path("figures"), metavar="DIR", help="for the files (figures/)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    load = load_of(options)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"cannot write to --out {options.out}: {error.strerror}") from None
    provenance = Provenance(["python", "-m", "nexmark", *sys.argv[1:]])
    print(f"loading {options.keys:,} persons into two workers ...", file=sys.stderr)
    seen = who_stayed(dataflow.execute(main, load, workers=2))
    outcome = load.outcome(seen, WARM_UP)
    title = f"NEXMark Q8, {sum(each.keys for each in seen):,} keys, {load.rate:,.0f} events/s"
    print("\n".join([title, state_statement(seen), outcome.summary(), *scaling_statements(seen)]))
    figures = figures_of(outcome, title, provenance.summary())
    picture = plots.save(figures["timeline"], options.out / "demo.png")
    note = (
        "The paper's Figure 1, with this run's numbers: latency over time while a quarter of all state moves from one "
        f"worker to the other, and back, in three ways; then two workers become three, and two again. A batch has "
        f"{load.batch_bins} bins of {load.plan.bins}. "
    )
    page = options.out / "demo.html"
    notes = [note, state_statement(seen), *scaling_statements(seen)]
    write_report(page, outcome, provenance, title, figures=figures, notes=notes)
    write_document(options.out / "demo.json", provenance, document_of(load, outcome, seen))
    print(f"Figure 1 with this run's numbers: {picture}\nthe report, for a browser: {page.resolve().as_uri()}")
    return OK if outcome.sustained else FAILED


def load_of(options: argparse.Namespace) -> LoadPlan:
    """What to run: each strategy moves bins away and back, at even distances, and then workers come and go."""
    for name in ("rate", "duration", "epoch_ms", "keys", "batch_bins"):
        if getattr(options, name) <= 0:
            raise Misuse(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be above 0")
    if options.duration < 10:
        raise Misuse(f"--duration is {options.duration}; six migrations and two changes need at least 10")
    check_epoch(options)
    if options.bins < 4 or options.bins & (options.bins - 1) or options.bins > 1 << 20:
        raise Misuse(f"--bins is {options.bins}; it must be a power of two from 4 to {1 << 20:,}")
    order = ("all-at-once", "all-at-once", "fluid", "fluid", "batched", "batched")
    workers = (3, 2)
    step = (options.duration - WARM_UP) / (len(order) + len(workers) + 0.5)
    load = LoadPlan(
        RunPlan("q8", EVENTS, bins=options.bins),
        options.rate,
        options.duration,
        options.epoch_ms / 1000,
        preload=options.keys * EVENTS.length_of_round // EVENTS.persons,
        migrations=[(WARM_UP + step * (place + 0.5), name) for place, name in enumerate(order)],
        batch_bins=options.batch_bins,
        terminal=sys.stderr.isatty(),
        scalings=[(WARM_UP + step * (len(order) + place + 0.5), count) for place, count in enumerate(workers)],
        scale_by="batched",
    )
    check_events(load)
    return load
