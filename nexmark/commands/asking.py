"""What `run`, `latency` and `verify` are asked alike: which query, how it runs, and how state is to move."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dataflow.harness.provenance import check_writable
from megaphone import ControlError, read_control
from nexmark.commands.options import Misuse, number, whole
from nexmark.config import SECOND
from nexmark.queries import QUERIES, Options
from nexmark.running import VARIANTS

_WINDOWS = {  # by query: what its windows are called in `Options`
    "q5": {"window": "q5_window", "slide": "q5_slide"},
    "q7": {"window": "q7_window"},
    "q8": {"window": "q8_window"},
}


def add_query(parser: argparse.ArgumentParser) -> None:
    """The query, and the lengths of its windows."""
    parser.add_argument("query", type=_query, metavar="QUERY", help=f"one of {', '.join(QUERIES)}")
    windows = parser.add_argument_group("windows, in seconds of event time")
    windows.add_argument(
        "--window", type=number, metavar="S", help="of q5 (default 60), q7 (default 10), q8 (default 43,200: 12 hours)"
    )
    windows.add_argument("--slide", type=number, metavar="S", help="of q5 (default 1)")


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
    """The windows that were asked for, as fields of `Options`."""
    names = _WINDOWS.get(options.query, {})
    windows = {}
    for option in ("window", "slide"):
        seconds = getattr(options, option)
        if seconds is None:
            continue
        if option not in names:
            raise Misuse(f"{options.query} has no {option}; leave --{option} out")
        windows[names[option]] = round(seconds * SECOND)
    try:
        Options(**windows)
    except ValueError as error:
        raise Misuse(str(error)) from None
    return windows


def check_workers(options: argparse.Namespace) -> None:
    """Refuses numbers of workers and bins that cannot be."""
    if options.workers < 1:
        raise Misuse(f"--workers is {options.workers}; there must be at least one")
    if options.bins < 2 or options.bins & (options.bins - 1) or options.bins > 1 << 20:
        raise Misuse(f"--bins is {options.bins}; it must be a power of two from 2 to {1 << 20:,}")


def updates_of(options: argparse.Namespace) -> list[tuple[int, Any]]:
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
    if early := [time for time, _ in updates if time < 0]:
        raise Misuse(f"--config {options.config}: time {early[0]} is before the first, 0. Nothing was run")
    return sorted(updates, key=lambda update: update[0])


def check_files(*paths: Path | None) -> None:
    """Refuses files that could not be written, before anything runs for them."""
    for path in paths:
        if path is None:
            continue
        try:
            check_writable(path)
        except OSError as error:
            raise Misuse(f"cannot write to {path}: {error.strerror}. Nothing was run") from None


def _query(text: str) -> str:
    name = text.lower()
    if name not in QUERIES:
        raise argparse.ArgumentTypeError(f"there is no query {text!r}; there are {', '.join(QUERIES)}")
    return name
