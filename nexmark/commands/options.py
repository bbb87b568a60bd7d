"""What commands have in common: exit codes, refusals, and the options that say which events there are."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TypeAlias

from nexmark.events.config import SECOND, Config

# A string: the class has no public name, and only type checkers know it as generic.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_LARGEST = 2**64 - 1  # the largest seed; nothing else may be as large
LONGEST = 2**61 // SECOND  # seconds, 73 years: with it added twice, a time still has less than 63 bits

_DEFAULT = Config()
_EVENTS = {  # by field of Config, what to call its value and what it is
    "seed": ("S", "another seed gives other events, the same one the same events"),
    "rate": ("R", "events per second of event time"),
    "group": ("G", "so many events at a time come out of order; 1: all in order"),
    "base_time": ("NS", "when the first event happens, in nanoseconds"),
    "in_flight": ("N", "about so many auctions are open at a time"),
    "active_people": ("N", "the newest so many persons sell and bid"),
    "persons": ("N", "persons in each round of events"),
    "auctions": ("N", "auctions in each round"),
    "bids": ("N", "bids in each round"),
    "hot_seller_ratio": ("N", "all but one in so many auctions are opened by a hot seller; 1: none"),
    "hot_auction_ratio": ("N", "all but one in so many bids go to a hot auction"),
    "hot_bidder_ratio": ("N", "all but one in so many bids come from a hot bidder"),
}


class Misuse(Exception):
    """What was asked for makes no sense or cannot be done; the message says what to do instead."""


def add_event_options(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """The options that make a `Config`, but for those that a command has no use for, or its own."""
    group = parser.add_argument_group("which events")
    for field, (metavar, what) in _EVENTS.items():
        if field in without:
            continue
        kind = number if field == "rate" else whole
        text = f"{what} (default {getattr(_DEFAULT, field):,})"
        # What is not asked for is no attribute, so that `asked_events` can tell; the default is that of `Config`.
        missing = argparse.SUPPRESS
        group.add_argument(f"--{field.replace('_', '-')}", type=kind, default=missing, metavar=metavar, help=text)


def asked_events(options: argparse.Namespace) -> list[str]:
    """The options of those that make a `Config` which were given."""
    return [f"--{field.replace('_', '-')}" for field in _EVENTS if hasattr(options, field)]


def config_of(options: argparse.Namespace) -> Config:
    """The `Config` that the options ask for."""
    try:
        return Config(**{field: getattr(options, field) for field in _EVENTS if hasattr(options, field)})
    except ValueError as error:
        raise Misuse(_in_terms_of_options(str(error))) from None


def whole(text: str) -> int:
    """A whole number, perhaps with separators: 10000000, 10_000_000, 10,000,000 and 1e7 are the same.

    >>> whole("10,000"), whole("1e7")
    (10000, 10000000)
    """
    plain = text.replace(",", "")
    try:
        return int(_bounded(int(plain), text))
    except ValueError:
        pass
    try:
        value = float(plain)
    except ValueError:
        value = float("nan")
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(_bounded(value, text))


def number(text: str) -> float:
    """A finite number, a whole one if it can be."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    _bounded(value, text)
    return int(value) if value.is_integer() else value


def seconds(text: str) -> float:
    """A number of seconds, such that times of 63 bits, in nanoseconds, can express it."""
    value = number(text)
    if abs(value) > LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is too long: times end after {LONGEST:,} seconds (73 years)")
    return value


def _bounded(value: float, text: str) -> float:
    """The number; of larger ones, and of infinite ones, arithmetic would make nonsense."""
    if value != value or abs(value) == float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    if abs(value) > _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is too large: numbers are below 2^64")
    return value


def _in_terms_of_options(message: str) -> str:
    for field in _EVENTS:
        if message.startswith(f"{field} is"):
            return f"--{field.replace('_', '-')}{message.removeprefix(field)}"
    return message
