"""``python -m nexmark verify``: a query answered three ways, and whether the rows are the same."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import dataflow
from nexmark.answers import oracle
from nexmark.answers.verifying import Difference, Rows, asked_of_spark, random_updates
from nexmark.commands.asking import add_query, add_workers, check_workers, windows_of
from nexmark.commands.options import FAILED, OK, Commands, Misuse, add_event_options, config_of, whole
from nexmark.events import files
from nexmark.events.generator import Generator
from nexmark.events.rows import rows
from nexmark.queries.queries import NEEDS
from nexmark.runs.running import RunPlan, main
from nexmark.runs.sources import with_plain

DESCRIPTION = """\
Answer a query over the same events three ways, and compare the rows: with native operators, with migratable ones
whose state is moved about at random while they run, and with an independent engine, Spark SQL.
"""

EXAMPLES = """\
examples:
  python -m nexmark verify q5 --events 100,000 --rate 10,000
        ten seconds of events, 20 random migrations
  python -m nexmark verify q4 --events 20,000 --group 100 --workers 4 --migrations 200 --seed 7
        out of order, and more is moved
  python -m nexmark verify q8 --events 5,000 --against oracle
        without Spark: against the plain program in nexmark/answers/oracle.py, which is slow

exit codes: 0 the rows are the same, 1 they differ, 2 makes no sense and nothing was run, 130 interrupted
"""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "verify",
        help="a query answered three ways, and whether the rows are the same",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        usage="%(prog)s QUERY --events N [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_query(parser)
    parser.add_argument("--events", type=whole, required=True, metavar="N", help="so many generated events")
    add_workers(parser, variants=False)
    parser.add_argument("--batch", type=whole, default=10_000, metavar="N", help="events of an epoch (default 10,000)")
    parser.add_argument("--migrations", type=whole, default=20, metavar="N", help="random updates (default 20)")
    parser.add_argument(
        "--against", choices=("spark", "oracle"), default="spark", help="the independent answer (default spark)"
    )
    add_event_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    check_workers(options)
    plan = _plan_of(options)
    answers = {"native": _rows(replace(plan, variant="native"), options.workers)}
    updates = random_updates(plan, options.workers, options.migrations, plan.config.seed)
    moved = f"migratable, {len(updates)} random migrations"
    answers[moved] = _rows(replace(plan, updates=updates), options.workers)
    name, expected = _independent(options, plan)
    print(f"{options.query}, {options.events:,} events, {options.workers} workers")
    print(f"{name}: {expected.total():,} rows")
    return _compare(answers, expected, oracle.COLUMNS[options.query])


def _plan_of(options: argparse.Namespace) -> RunPlan:
    config = config_of(options)
    if not 0 <= options.events <= config.most_events:
        raise Misuse(
            f"--events is {options.events}; with the other options it must be from 0 to {config.most_events:,}"
        )
    for name, least in (("batch", 1), ("migrations", 0)):
        if getattr(options, name) < least:
            raise Misuse(f"--{name} is {getattr(options, name)}; it must be at least {least}")
    if options.against == "spark":
        _require_spark()
    windows = windows_of(options)
    return RunPlan(
        options.query, config, events=options.events, bins=options.bins, batch=options.batch, windows=windows, keep=True
    )


def _require_spark() -> None:
    if find_spec("pyspark") is None:
        raise Misuse("pyspark is not installed: pip install 'megaphone-dataflow[spark]', or add --against oracle")


def _rows(plan: RunPlan, workers: int) -> Rows:
    results = dataflow.execute(main, plan, sys.stderr.isatty(), workers=workers)
    return Counter(tuple(row) for result in results for row in result.kept)


def _independent(options: argparse.Namespace, plan: RunPlan) -> tuple[str, Rows]:
    told = plan.oracle_options()
    generator = Generator(plan.config, with_plain(NEEDS[plan.query]))
    if options.against == "oracle":
        events = {kind: rows(table) for kind, table in generator.events(range(plan.events)).items()}
        return "the plain program", Counter(oracle.QUERIES[plan.query](events, **told))
    with tempfile.TemporaryDirectory(prefix="nexmark-") as folder:
        files.write(Path(folder), generator, plan.events)
        print("asking Spark SQL ...", file=sys.stderr)
        return "Spark SQL", asked_of_spark(plan.query, Path(folder), told)


def _compare(answers: dict[str, Rows], expected: Rows, columns: tuple[str, ...]) -> int:
    code = OK
    for name, found in answers.items():
        difference = Difference.between(expected, found)
        if difference:
            code = FAILED
            print(f"{name}: DIFFERENT, {difference.describe(columns)}")
        else:
            print(f"{name}: the same rows")
    return code
