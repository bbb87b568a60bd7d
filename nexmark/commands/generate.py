"""``python -m nexmark generate``: events into Parquet files."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from megaphone.harness.progress import ProgressBar
from nexmark.commands.options import FAILED, OK, Commands, Misuse, add_event_options, config_of, whole
from nexmark.events import files
from nexmark.events.config import Config
from nexmark.events.generator import Generator

DESCRIPTION = """\
Write the first N events of a stream to DIR/person.parquet, DIR/auction.parquet and DIR/bid.parquet.

Times are nanoseconds of event time, `event` is the number of the event in the stream. The same options give the same
events on every machine. Any Parquet reader will do: pandas, Polars, DuckDB, Spark.
"""

EXAMPLES = """\
examples:
  python -m nexmark generate --events 1,000,000 --out events
        a second of a busy site: 20,000 persons, 60,000 auctions, 920,000 bids
  python -m nexmark generate --events 1000000 --rate 10000 --seed 7 --out events
        other events, over 100 seconds
  python -m nexmark generate --events 1000000 --group 1000 --out events
        out of order by up to a thousand events
  python -m nexmark generate --events 1000000 --payload full --out events
        with e-mail addresses, descriptions, channels and padding: about 100 bytes a bid
  python -m nexmark generate --events 10,000,000,000 --on spark --master spark://host:7077 --out s3a://bucket/events
        the same events, made on the executors of a cluster; each file is a folder of parts then

exit codes: 0 written, 1 could not be written, 2 makes no sense, 130 interrupted. Without a 0, no file has changed.
"""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "generate",
        help="write events to Parquet files",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        usage="%(prog)s --events N --out DIR [option ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--events", type=whole, required=True, metavar="N", help="how many events")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder, which is made if need be")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    parser.add_argument(
        "--payload", choices=("none", "full"), default="none", help="full: also the long strings (default none)"
    )
    parser.add_argument("--on", choices=("spark",), help="make them on a cluster, to any path that it can write to")
    parser.add_argument("--master", metavar="URL", help="of the cluster, as for spark-submit")
    parser.add_argument("--tasks", type=whole, metavar="N", help="parts of each kind on a cluster (default: by size)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark's; may be repeated"
    )
    add_event_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    config = config_of(options)
    if options.on is not None:
        return _run_on_spark(options, config)
    out = Path(options.out)
    _check(options, out, config.most_events)
    generator = Generator(config, payload=options.payload)
    progress = ProgressBar("generating", options.events, sys.stderr)
    started = time.monotonic()
    try:
        counts = files.write(out, generator, options.events, advance=progress.advance)
    except OSError as error:
        print(f"python -m nexmark generate: cannot write to {out}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    finally:
        progress.finish()
    for kind, path in files.paths(out).items():
        print(f"{path}: {counts[kind]:,} rows, {path.stat().st_size:,} bytes")
    print(f"{options.events:,} events in {time.monotonic() - started:.1f} s")
    return OK


def _run_on_spark(options: argparse.Namespace, config: Config) -> int:
    from dataflow.spark.rooms import require_pyspark, start_session
    from nexmark.events.on_spark import write_on_spark

    _check_number(options, config.most_events)
    settings = dict(each.split("=", 1) if "=" in each else (each, "") for each in options.conf)
    if "" in settings.values():
        raise Misuse("--conf is KEY=VALUE, such as --conf spark.executor.memory=4g")
    require_pyspark()
    out = options.out if ":" in options.out else Path(options.out).resolve().as_uri()
    started = time.monotonic()
    session = start_session(options.master, settings)
    try:
        generator = Generator(config, payload=options.payload)
        counts = write_on_spark(session, out, generator, options.events, options.tasks, options.overwrite)
    except Exception as error:
        print(f"python -m nexmark generate: Spark did not write to {out}: {_first_line(error)}", file=sys.stderr)
        return FAILED
    finally:
        session.stop()
    for kind, rows in counts.items():
        print(f"{out}/{kind}.parquet: {rows:,} rows")
    print(f"{options.events:,} events in {time.monotonic() - started:.1f} s")
    return OK


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _check_number(options: argparse.Namespace, most: int) -> None:
    if not 0 <= options.events <= most:
        raise Misuse(f"--events is {options.events}; with the other options it must be from 0 to {most:,}")


def _check(options: argparse.Namespace, out: Path, most: int) -> None:
    _check_number(options, most)
    for name in ("master", "tasks", "conf"):
        if getattr(options, name):
            raise Misuse(f"--{name} is for a cluster: say --on spark, or leave it out")
    if out.exists() and not out.is_dir():
        raise Misuse(f"--out {out} is a file; name a folder")
    there = [path for path in files.paths(out).values() if path.exists()]
    if there and not options.overwrite:
        raise Misuse(f"{there[0]} is there already; add --overwrite to replace it, or name another folder")
