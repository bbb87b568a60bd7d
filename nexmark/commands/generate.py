"""``python -m nexmark generate``: events into Parquet files."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from megaphone.harness.progress import Progress
from nexmark.commands.options import FAILED, OK, Commands, Misuse, add_event_options, config_of, whole
from nexmark.events import files
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
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder, which is made if need be")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    parser.add_argument(
        "--payload", choices=("none", "full"), default="none", help="full: also the long strings (default none)"
    )
    add_event_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    config = config_of(options)
    _check(options, config.most_events)
    generator = Generator(config, payload=options.payload)
    progress = Progress("generating", options.events, sys.stderr)
    started = time.monotonic()
    try:
        counts = files.write(options.out, generator, options.events, advance=progress.advance)
    except OSError as error:
        print(f"python -m nexmark generate: cannot write to {options.out}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    finally:
        progress.finish()
    for kind, path in files.paths(options.out).items():
        print(f"{path}: {counts[kind]:,} rows, {path.stat().st_size:,} bytes")
    print(f"{options.events:,} events in {time.monotonic() - started:.1f} s")
    return OK


def _check(options: argparse.Namespace, most: int) -> None:
    if not 0 <= options.events <= most:
        raise Misuse(f"--events is {options.events}; with the other options it must be from 0 to {most:,}")
    if options.out.exists() and not options.out.is_dir():
        raise Misuse(f"--out {options.out} is a file; name a folder")
    there = [path for path in files.paths(options.out).values() if path.exists()]
    if there and not options.overwrite:
        raise Misuse(f"{there[0]} is there already; add --overwrite to replace it, or name another folder")
