"""Queries that look at one bid at a time, and at tables that do not change: 0, 10, 13, 14, 21 and 22."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from dataflow import Stream
from dataflow.columns import Columns
from nexmark.events import vocabulary
from nexmark.events.config import SECOND
from nexmark.events.kernels import Ints
from nexmark.queries.operators import Made, Operators
from nexmark.queries.options import Events, QueryOptions

BIDS = ("auction", "bidder", "price", "date_time")
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
SIDE = 10_000  # keys of the side input
_HOT_IDS = {"apple": 0, "google": 1, "facebook": 2, "baidu": 3}
_CHANNEL_ID = re.compile(r"[?&]channel_id=([0-9]+)")


def q0(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Pass through: what the engine costs by itself."""
    return ops.stateless(events["bid"], "auction", lambda bids: bids.select(BIDS), "q0")


def q10(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Log to files: every bid, with the minute by which files are divided."""

    def log(bids: Columns) -> Made:
        return bids.select(BIDS).with_columns({"minute": bids["date_time"] // MINUTE * MINUTE})

    return ops.stateless(events["bid"], "auction", log, "q10")


def q13(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Bounded side input: every bid with what a table of ten thousand keys has for its auction."""
    side = side_input()

    def enrich(bids: Columns) -> Made:
        return bids.select(BIDS).with_columns({"value": side[bids["auction"] % SIDE]})

    return ops.stateless(events["bid"], "auction", enrich, "q13")


def q14(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Calculation: bids of middling price in euros, the time of day, and how often their text has a c."""

    def calculate(bids: Columns) -> Made:
        thousandths = bids["price"] * 908
        chosen = bids.filter((thousandths > 1_000_000_000) & (thousandths < 50_000_000_000))
        letters = pc.count_substring(chosen.column("extra"), "c")
        return {
            "auction": chosen["auction"], "bidder": chosen["bidder"], "price": chosen["price"] * 908 // 1000,
            "time_of_day": time_of_day(chosen["date_time"]), "date_time": chosen["date_time"],
            "letters": np.asarray(letters.to_numpy(zero_copy_only=False), np.int64),
        }  # fmt: skip

    chosen = events["bid"].columns.map(calculate, "calculate")
    return ops.stateless(chosen, "auction", lambda batch: batch, "q14")


def q21(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Add the channel's number: of a known channel, or as its URL says; bids that have neither are left out."""
    known, told = known_channels(), channels_of_urls()

    def number(bids: Columns) -> Made:
        by_name = known[bids["channel"]]
        found = np.where(by_name >= 0, by_name, told[bids["url"]])
        chosen = bids.select(("auction", "bidder", "price", "channel")).with_columns({"channel_id": found})
        return chosen.filter(found >= 0)

    return ops.stateless(events["bid"], "auction", number, "q21")


def q22(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Directories of the URL. A code of a URL is one of each of its folders, too."""

    def folders(bids: Columns) -> Made:
        url = bids["url"]
        return bids.select(("auction", "bidder", "price", "channel")).with_columns(
            {"dir1": url, "dir2": url, "dir3": url}
        )

    return ops.stateless(events["bid"], "auction", folders, "q22")


@cache
def side_input() -> Ints:
    """The value of each key: its square modulo a prime, so that no two neighbours have the same."""
    keys = np.arange(SIDE, dtype=np.int64)
    return keys * keys % 10_007


@cache
def known_channels() -> Ints:
    """The number of each channel that has one of its own, by the code of its name; -1 for others."""
    return np.array([_HOT_IDS.get(name.lower(), -1) for name in vocabulary.dictionary("channel")], np.int64)


@cache
def channels_of_urls() -> Ints:
    """The number in each URL, by its code, -1 if there is none."""
    found = (_CHANNEL_ID.search(url) for url in vocabulary.dictionary("url"))
    return np.array([int(match[1]) if match else -1 for match in found], np.int64)


def time_of_day(dates: Ints) -> NDArray[np.int32]:
    """Codes of day (8 to 18 h), night (20 to 6 h) and other times."""
    hours = dates // HOUR % 24
    return np.select([(hours >= 8) & (hours <= 18), (hours <= 6) | (hours >= 20)], [0, 1], 2).astype(np.int32)
