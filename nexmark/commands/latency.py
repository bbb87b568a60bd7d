"""``python -m nexmark latency``: a query under open-loop load, and migrations while it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import dataflow
from megaphone.harness import Outcome, Provenance, figures_of, write_document, write_report
from nexmark.commands.asking import (
    add_query,
    add_workers,
    check_files,
    check_workers,
    tell_unreached,
    updates_of,
    windows_of,
)
from nexmark.commands.options import OK, Commands, Misuse, add_event_options, config_of, number, seconds, whole
from nexmark.events.config import SECOND
from nexmark.runs.measuring import STRATEGIES, LoadPlan, Seen, main, who_stayed
from nexmark.runs.running import RunPlan

DESCRIPTION = """\
Put a query under load at a fixed rate, and measure how long events take. The load is open loop: every event is due at
a time that is fixed beforehand, and is charged from that time on, also while the system is too busy to take it. Latency
ends when all that the event causes is done, on all workers. An epoch is sent when it ends, so half of it is waiting.

Migrations (--migrate, --at): the first moves half of worker 0's bins to worker 1, the next one moves them back, and so
on. Or a file says what moves when (--config). Quantiles are reported for before, during and after each migration.
"""

EXAMPLES = """\
examples:
  python -m nexmark latency q3 --rate 200,000 --duration 10
        the latency of a steady run
  python -m nexmark latency q8 --rate 200,000 --duration 20 --migrate fluid --at 6 13 --live --report
        two migrations, bin by bin, a live view, and a page with plots
  python -m nexmark latency q8 --rate 200,000 --duration 20 --preload 10,000,000 --migrate batched --at 10
        with a large state: ten million events are processed before the clock starts
  python -m nexmark latency q8 --rate 1,000,000 --duration 40 --workers 2 --scale "10:4,30:2"
        two more workers join after ten seconds, and leave after thirty; those of --workers feed the load all the time
  python -m nexmark latency q4 --rate 100,000 --duration 20 --in-flight 1,000,000 --dilation 60 --plot q4.png
        event time runs 60 times as fast, so that auctions, open for minutes, close within the run

Times in --config FILE are nanoseconds of event time: second s of the run is at s * dilation * 1,000,000,000, after the
time of what was loaded before (printed at the start). A line each: {"time": T, "bin": B, "worker": W},
{"time": T, "map": [W, ...]} or, for a single key, {"time": T, "key": K, "worker": W}.

exit codes: 0 measured (also if the rate was not sustained: the first line says so), 1 failed while running,
2 makes no sense and nothing was run, 130 interrupted
"""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "latency",
        help="a query under open-loop load, with migrations",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        usage="%(prog)s QUERY --rate R --duration S [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_query(parser)
    parser.add_argument("--rate", type=number, required=True, metavar="R", help="events per second, of all workers")
    parser.add_argument("--duration", type=seconds, required=True, metavar="S", help="seconds")
    parser.add_argument("--epoch-ms", type=number, default=1, metavar="MS", help="length of an epoch (default 1)")
    parser.add_argument("--warm-up", type=seconds, metavar="S", help="that does not count (default a fifth, at most 2)")
    parser.add_argument("--dilation", type=whole, default=1, metavar="D", help="event time runs D times as fast (1)")
    parser.add_argument("--preload", type=whole, default=0, metavar="N", help="events before the clock starts (0)")
    parser.add_argument(
        "--ready", type=whole, default=0, metavar="MIB",
        help="memory that each table takes from the system before the clock starts, beyond what it has (0)",
    )  # fmt: skip
    add_workers(parser)
    moves = parser.add_argument_group("migrations")
    moves.add_argument("--migrate", choices=STRATEGIES, help="how; see docs/migration.md")
    moves.add_argument("--at", type=seconds, nargs="+", default=[], metavar="S", help="when, in seconds")
    moves.add_argument("--batch-bins", type=whole, default=16, metavar="N", help="bins of a batch (16; 8 MiB at most)")
    moves.add_argument("--bound-ms", type=number, default=20, metavar="MS", help="what `within` keeps to (20)")
    moves.add_argument(
        "--scale", type=scalings, default=[], metavar="S:W,...",
        help="at second S have workers join or leave until there are W; state moves as --migrate says",
    )  # fmt: skip
    moves.add_argument("--config", type=Path, metavar="FILE", help="updates that move state, see below")
    told = parser.add_argument_group("what is reported")
    told.add_argument("--live", action="store_true", help="rate, latency, frontier and bins while it runs, on stderr")
    for name, what, ending in (("plot", "the timeline as a picture", "png"), ("report", "a page of all", "html")):
        told.add_argument(f"--{name}", type=Path, nargs="?", const=Path(f"latency.{ending}"), metavar="FILE", help=what)
    told.add_argument("--json", type=Path, metavar="FILE", help="everything as numbers")
    add_event_options(parser, without=("rate", "group", "base_time"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    check_workers(options)
    load = load_of(options)
    check_files(options.plot, options.json, options.report)
    provenance = Provenance(["python", "-m", "nexmark", *sys.argv[1:]])
    if load.first:
        print(f"the clock starts at {load.first:,} ns of event time", file=sys.stderr)
    seen = who_stayed(dataflow.execute(main, load, workers=options.workers))
    outcome = load.outcome(seen, _warm_up(options))
    print(title_of(load))
    print(state_statement(seen))
    print(outcome.summary())
    print(memory_statement(outcome))
    for line in scaling_statements(seen):
        print(line)
    schedule = load.schedule(1)
    tell_unreached(options, load.plan.updates, schedule.time(schedule.epochs - 1), f"{options.epoch_ms:g} ms")
    _write(options, load, outcome, provenance, seen)
    return OK


def load_of(options: argparse.Namespace) -> LoadPlan:
    """What to run; Misuse if it makes no sense."""
    for name in ("rate", "duration", "epoch_ms", "dilation", "batch_bins", "bound_ms"):
        if getattr(options, name) <= 0:
            raise Misuse(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be above 0")
    check_epoch(options)
    for name in ("preload", "ready"):
        if getattr(options, name) < 0:
            raise Misuse(f"--{name} is {getattr(options, name)}; it must be 0 or more")
    if not 0 <= _warm_up(options) < options.duration:
        raise Misuse(f"--warm-up is {_warm_up(options)}; it must be less than the duration, {options.duration}")
    _check_migrations(options)
    options.rate = options.rate / options.dilation  # of event time, for the generator's options
    try:
        config = config_of(options)
    finally:
        options.rate = options.rate * options.dilation
    plan = RunPlan(
        options.query, config, variant=options.variant, bins=options.bins, windows=windows_of(options),
        updates=updates_of(options),
    )  # fmt: skip
    load = LoadPlan(
        plan, options.rate, options.duration, options.epoch_ms / 1000, options.dilation, options.preload,
        [(at, options.migrate) for at in options.at], options.batch_bins, sys.stderr.isatty() if options.live else None,
        options.ready << 20, options.bound_ms / 1000, options.scale, options.migrate if options.scale else None,
    )  # fmt: skip
    check_events(load, _warm_up(options))
    if early := [time for time, _ in plan.updates if time < load.first]:
        raise Misuse(f"--config {options.config}: time {early[0]} is before the clock starts, at {load.first:,}")
    return load


def check_epoch(options: argparse.Namespace) -> None:
    """Refuses epochs that are none, and one that is longer than the run, in which nothing would be measured."""
    if not 1e-6 <= options.epoch_ms <= options.duration * 1000:
        raise Misuse(
            f"--epoch-ms is {options.epoch_ms}; an epoch has from 0.000001 (a nanosecond) to "
            f"{options.duration * 1000:g}, the whole --duration of {options.duration} s"
        )


def check_events(load: LoadPlan, warm_up: float = 0.0) -> None:
    """Refuses to measure nothing, and more events than there is time for."""
    try:
        schedule = load.schedule(1)
    except ValueError as error:
        raise Misuse(str(error)) from None
    records = schedule.records
    if not records:
        raise Misuse(f"--rate {load.rate:g} and --duration {load.duration:g} make no event at all; raise one of them")
    most = replace(load.config, base_time=load.ticks).most_events
    if load.preload + records > most:
        raise Misuse(
            f"--preload, --rate and --duration make {load.preload + records:,} events, and there can be at most "
            f"{most:,} with these options; lower one of them"
        )
    if records == schedule.first_record(-(-round(warm_up * SECOND) // schedule.epoch_ns)):
        raise Misuse(
            f"--rate {load.rate:g} and --duration {load.duration:g} make no event after the warm-up of {warm_up:g} s, "
            "so nothing would be measured; raise one of them, or lower --warm-up"
        )


def _check_migrations(options: argparse.Namespace) -> None:
    if bool(options.at or options.scale) < bool(options.migrate) or bool(options.at) > bool(options.migrate):
        raise Misuse("--migrate says how and --at says when: give both or neither (or --migrate with --scale)")
    _check_scalings(options)
    if options.migrate and options.config:
        raise Misuse("--migrate and --config both say what moves; give one of them")
    if options.migrate and options.variant == "native":
        raise Misuse("--migrate moves state, and native operators cannot; leave out --variant native")
    if options.migrate and options.workers < 2:
        raise Misuse("--migrate needs at least two workers, to move state from one to another")
    if outside := [at for at in options.at if not 0 <= at < options.duration]:
        raise Misuse(f"--at {outside[0]} is not within the {options.duration} s of the run")


def _check_scalings(options: argparse.Namespace) -> None:
    for at, workers in options.scale:
        if not 0 <= at < options.duration:
            raise Misuse(f"--scale {at:g}:{workers} is not within the {options.duration} s of the run")
        if workers < options.workers:
            raise Misuse(
                f"--scale {at:g}:{workers}: the {options.workers} workers of --workers feed the load, and stay. Start "
                "with fewer, or scale to more"
            )
    if options.scale and options.variant == "native":
        raise Misuse("--scale moves state, and native operators cannot; leave out --variant native")
    if options.scale and options.config:
        raise Misuse("--scale and --config both say what moves; give one of them")


def scalings(text: str) -> list[tuple[float, int]]:
    """When there shall be how many workers.

    >>> scalings("10:4,30:2")
    [(10, 4), (30, 2)]
    """
    pairs = []
    for part in text.split(","):
        at, colon, workers = part.partition(":")
        if not colon:
            raise argparse.ArgumentTypeError(f'{part!r} is not SECOND:WORKERS, as in "10:4,30:2"')
        pairs.append((seconds(at), whole(workers)))
    return pairs


def _warm_up(options: argparse.Namespace) -> float:
    return float(min(2.0, options.duration / 5) if options.warm_up is None else options.warm_up)


def title_of(load: LoadPlan) -> str:
    """What was run, in a line."""
    dilated = f", event time {load.dilation} times as fast" if load.dilation > 1 else ""
    return (
        f"NEXMark {load.plan.query.upper()}, {_rate(load.rate)} events/s, {load.plan.variant}, {load.plan.bins} bins, "
        f"epochs of {load.epoch * 1000:g} ms{dilated}"
    )


def _rate(rate: float) -> str:
    """Rates below one are not none.

    >>> _rate(200_000), _rate(1234.5), _rate(0.1)
    ('200,000', '1,234.5', '0.1')
    """
    return f"{rate:,.3f}".rstrip("0").rstrip(".")


def state_statement(seen: Sequence[Seen]) -> str:
    """How much state there was."""
    keys = [sum(getattr(each, name) for each in seen) for name in ("keys", "final_keys")]
    size = sum(each.state_bytes for each in seen) / 2**20
    return f"state: {keys[0]:,} keys, {size:,.0f} MiB, when the clock started, and {keys[1]:,} keys at the end"


def scaling_statements(seen: Sequence[Seen]) -> list[str]:
    """What each change of the number of workers took."""
    return [
        f"{change.name}: {'joined' if change.first_record is not None else 'done'} {change.joined:.2f} s after asking"
        + (f", the first record there after {change.first_record:.2f} s" if change.first_record is not None else "")
        + f"; sources paused for {change.pause * 1000:.1f} ms"
        for each in seen
        for change in each.scaled
    ]


def memory_statement(outcome: Outcome) -> str:
    """How much memory each worker had, at the start and at most."""
    peaks = [
        f"worker {worker} {sizes[0] / 2**20:,.0f} to {max(sizes) / 2**20:,.0f} MiB"
        for worker, (_, sizes) in outcome.memory.items()
        if sizes
    ]
    return f"resident memory, at the start and at most: {', '.join(peaks)}"


def document_of(load: LoadPlan, outcome: Outcome, seen: Sequence[Seen]) -> dict[str, object]:
    """Everything, as plain data."""
    return {
        "query": load.plan.query,
        "variant": load.plan.variant,
        "bins": load.plan.bins,
        "dilation": load.dilation,
        "preload": load.preload,
        "batch_bins": load.batch_bins,
        "bound_ms": load.bound * 1000,
        "keys": sum(each.keys for each in seen),
        "state_bytes": sum(each.state_bytes for each in seen),
        "final_keys": sum(each.final_keys for each in seen),
        "rows": sum(each.results for each in seen),
        "scaled": [asdict(change) for each in seen for change in each.scaled],
        **outcome.document(),
    }


def _write(
    options: argparse.Namespace, load: LoadPlan, outcome: Outcome, provenance: Provenance, seen: Sequence[Seen]
) -> None:
    title = title_of(load)
    if options.plot is not None:
        from megaphone.harness import plots

        figure = figures_of(outcome, title, provenance.summary())["timeline"]
        print(f"drawn: {plots.save(figure, options.plot)}")
    if options.report is not None:
        print(f"report: {write_report(options.report, outcome, provenance, title, notes=[state_statement(seen)])}")
    if options.json is not None:
        write_document(options.json, provenance, document_of(load, outcome, seen))
