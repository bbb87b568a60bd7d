"""The options that `run`, `latency` and `verify` share: which query, how it runs, and how its state moves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from megaphone import ControlError, read_control
from megaphone.control.updates import Update
from megaphone.harness.provenance import check_writable
from nexmark.commands.options import Misuse, seconds, whole
from nexmark.events.config import SECOND
from nexmark.queries.hot_auctions import PANES
from nexmark.queries.options import QueryOptions
from nexmark.queries.queries import QUERIES
from nexmark.runs.running import VARIANTS

_WINDOWS = {  # by query: what its windows are called in `QueryOptions`
    "q5": {"window": "q5_window", "slide": "q5_slide"},
    "q7": {"window": "q7_window"},
    "q8": {"window": "q8_window"},
    "q11": {"window": "q11_gap"},
    "q12": {"window": "q12_window"},
    **{query: {"window": f"{query}_day"} for query in ("q15", "q16", "q17", "q18", "q19")},
}


def add_query(parser: argparse.ArgumentParser) -> None:
    """The query, and the lengths of its windows."""
    parser.add_argument("query", type=_query, metavar="QUERY", help=f"one of {', '.join(QUERIES)}")
    windows = parser.add_argument_group("windows, in seconds of event time")
    windows.add_argument(
        "--window", type=seconds, metavar="S",
        help="of q5 (default 60), q7 and q12 (default 10), q8 (default 43,200: 12 hours); the gap of q11 (default 10); "
        "the day of q15 to q19 (default 86,400)",
    )  # fmt: skip
    windows.add_argument("--slide", type=seconds, metavar="S", help="of q5 (default 1)")


def add_workers(parser: argparse.ArgumentParser, variants: bool = True) -> None:
    """How many processes and bins."""
    parser.add_argument("--workers", type=whole, default=2, metavar="W", help="worker processes (default 2)")
    parser.add_argument("--bins", type=whole, default=256, metavar="B", help="of state, a power of two (default 256)")
    if variants:
        parser.add_argument(
            "--variant",
            choices=VARIANTS,
            default="migratable",
            help="native: an exchange and a table; migratable: Megaphone's F and S (default migratable)",
        )


def windows_of(options: argparse.Namespace) -> dict[str, int]:
    """The windows that were asked for, as fields of `QueryOptions`."""
    names = _WINDOWS.get(options.query, {})
    windows = {}
    for option in ("window", "slide"):
        length = getattr(options, option)
        if length is None:
            continue
        if option not in names:
            raise Misuse(f"{options.query} has no {option}; leave --{option} out")
        windows[names[option]] = round(length * SECOND)
        if windows[names[option]] < 1:
            raise Misuse(f"--{option} is {length}; it is a number of seconds above 0, a nanosecond (1e-9) at least")
    if options.query == "q5":
        _check_slides(windows.get("q5_window", QueryOptions.q5_window), windows.get("q5_slide", QueryOptions.q5_slide))
    return windows


def _check_slides(window: int, slide: int) -> None:
    asked = f"--window is {_in_seconds(window)} and --slide is {_in_seconds(slide)} (seconds)"
    if window % slide:
        raise Misuse(f"the window of q5 must be a multiple of its slide: {asked}")
    if window // slide >= PANES:
        raise Misuse(f"the window of q5 must have fewer than {PANES:,} slides: {asked}")


def _in_seconds(nanoseconds: int) -> str:
    whole, rest = divmod(nanoseconds, SECOND)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".") if rest else f"{whole}"


def check_workers(options: argparse.Namespace) -> None:
    """Refuses numbers of workers and bins that cannot be."""
    if options.workers < 1:
        raise Misuse(f"--workers is {options.workers}; there must be at least one")
    if options.bins < 2 or options.bins & (options.bins - 1) or options.bins > 1 << 20:
        raise Misuse(f"--bins is {options.bins}; it must be a power of two from 2 to {1 << 20:,}")


def updates_of(options: argparse.Namespace) -> list[tuple[int, Update]]:
    """The updates of --config FILE, all checked: nothing runs if one of them makes no sense."""
    if options.config is None:
        return []
    if getattr(options, "variant", "migratable") == "native":
        raise Misuse("--config moves state, and native operators cannot; leave out --variant native")
    try:
        updates = read_control(options.config, options.bins, options.workers)
    except OSError as error:
        raise Misuse(f"cannot read --config {options.config}: {error.strerror}") from None
    except (ControlError, UnicodeDecodeError) as error:
        told = str(error).removeprefix(f"{options.config}: ")
        raise Misuse(f"--config {options.config}: {told}. Nothing was run") from None
    return sorted(updates, key=lambda update: update[0])


def tell_unreached(options: argparse.Namespace, updates: Sequence[tuple[int, Update]], last: int, epoch: str) -> None:
    """Says on standard error how many updates were for times after those of all events."""
    count = sum(time > last for time, _ in updates)
    if count:
        told = f"{count:,} of {len(updates):,} updates of --config {options.config} were never reached: the last epoch "
        print(f"{told}began at {last:,} ns of event time (an epoch has {epoch})", file=sys.stderr)


def check_files(*paths: Path | None) -> None:
    """Refuses files that could not be written, before anything runs for them."""
    for path in paths:
        if path is None:
            continue
        try:
            check_writable(path)
        except OSError as error:
            raise Misuse(f"cannot write to {path}: {error.strerror}. Nothing was run") from None


def check_folder(path: Path | None) -> None:
    """Refuses a folder that is there already, for a query that writes one."""
    if path is not None and path.exists():
        raise Misuse(f"{path} exists, and q10 writes a folder of files: name another one. Nothing was run")


def _query(text: str) -> str:
    name = text.lower()
    if name not in QUERIES:
        raise argparse.ArgumentTypeError(f"there is no query {text!r}; there are {', '.join(QUERIES)}")
    return name
