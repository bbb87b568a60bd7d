"""How many different bidders and auctions there were: queries 15 (on each day) and 16 (on each day in each channel).

Two stages. The first has the ids of a day: one state for each bidder (auction) and channel, which knows in which ranks
of price it was seen today, and tells the second when one is new. The second adds up, by channel. Bids themselves are
counted by batch, and need no first stage.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Protocol

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.state.folds.fold import fold
from nexmark.events.kernels import Ints
from nexmark.queries.daily import CHEAP, DEAR, with_days
from nexmark.queries.operators import Made, Operators
from nexmark.queries.options import Events, QueryOptions
from nexmark.queries.records import Emits, PostDates

# The twelve numbers of a day, four (all, and three ranks) of each of bids, bidders and auctions; then the last minute.
_IN_RANKS = ("", "_rank1", "_rank2", "_rank3")
FIELDS = tuple(f"{what}{rank}" for what in ("bids", "bidders", "auctions") for rank in _IN_RANKS)
BIDDERS, AUCTIONS, MINUTE_FIELD = 4, 8, 12
MINUTE = 60 * 1_000_000_000
_CHANNELS = 1 << 14  # more than there are

SEEN = {"day": "i8", "ranks": "i8", "over": "b1"}
NEW = {"channel": "i8", "day": "i8", "close_at": "i8", "field": "i8", "amount": "i8"}
PENDING = {"day": "i8"}
SUMS = {"day": "i8", "any": "b1", "n": ("i8", 13), "over": "b1"}
SUMMED = {"channel": "i8", "day": "i8", "last_minute": "i8", **dict.fromkeys(FIELDS, "i8")}


class Sighting(Protocol):
    """A bidder or an auction, in a bid of a rank of price (1, 2 or 3). `first` is the field of the total."""

    channel: int
    day: int
    close_at: int
    first: int
    rank: int


class SeenState(Protocol):
    """The ranks in which an id was seen today, as bits."""

    day: int
    ranks: int
    over: bool


@fold(state=SEEN, output=NEW, pending=PENDING)
def see(value: Sighting, state: SeenState, later: PostDates, emit: Emits) -> None:
    if state.ranks == 0 or state.day != value.day:
        state.day = value.day
        state.ranks = 0
        later.at(value.close_at, value.day)
        emit.row(value.channel, value.day, value.close_at, value.first, 1)
    bit = 1 << value.rank
    if state.ranks & bit == 0:
        state.ranks |= bit
        emit.row(value.channel, value.day, value.close_at, value.first + value.rank, 1)


@fold(state=SEEN, output=NEW, pending=PENDING, create=False, forget="over")
def forget_seen(value: int, state: SeenState, emit: Emits) -> None:
    state.over = state.day == value


class Amount(Protocol):
    """So many more of a field."""

    day: int
    close_at: int
    field: int
    amount: int


class SumState(Protocol):
    """The numbers of a day."""

    day: int
    any: bool
    n: MutableSequence[int]
    over: bool


@fold(state=SUMS, output=SUMMED, pending=PENDING)
def add(key: int, value: Amount, state: SumState, later: PostDates, emit: Emits) -> None:
    n = state.n
    if state.any and state.day != value.day:
        emit.row(key, state.day, n[12], n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11])
        for i in range(13):
            n[i] = 0
        state.any = False
    if not state.any:
        state.any = True
        state.day = value.day
        later.at(value.close_at, value.day)
    if value.field == 12:
        n[12] = max(n[12], value.amount)
    else:
        n[value.field] += value.amount


@fold(state=SUMS, output=SUMMED, pending=PENDING, create=False, forget="over")
def end_sums(key: int, value: int, state: SumState, emit: Emits) -> None:
    if state.day == value:
        n = state.n
        emit.row(key, state.day, n[12], n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11])
        state.over = True


def q15(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Bidding statistics: bids, bidders and auctions of each day, in all and by rank of price."""
    nowhere = events["bid"].columns.with_columns(lambda bids: {"channel": np.zeros(len(bids), np.int64)})
    summed = _statistics(with_days(nowhere, options.q15_day, options.grid), ops, options.q15_day, "q15")
    return summed.columns.project("day", *FIELDS)


def q16(events: Events, ops: Operators, options: QueryOptions) -> Stream[Columns]:
    """Channel statistics: the same for each channel, with the minute of the last bid."""
    bids = with_days(events["bid"], options.q16_day, options.grid)
    summed = _statistics(bids, ops, options.q16_day, "q16")
    return summed.columns.with_columns(lambda batch: {"channel": batch["channel"].astype(np.int32)})


def _statistics(bids: Stream[Columns], ops: Operators, day: int, name: str) -> Stream[Columns]:
    new = ops.state_machine(
        bids.columns.map(_sightings, "sightings"),
        key="id", value=["channel", "day", "close_at", "first", "rank"], fold=see, due=forget_seen,
        order=("day",), name=f"{name} ids",
    )  # fmt: skip
    counted = bids.columns.map(lambda batch: _counts(batch, day), "counts")
    return ops.state_machine(
        new.concat(counted),
        key="channel", value=["day", "close_at", "field", "amount"], fold=add, due=end_sums,
        order=("day",), name=name,
    )  # fmt: skip


def _ranks(prices: Ints) -> Ints:
    """1, 2 or 3."""
    return 1 + (prices >= CHEAP).astype(np.int64) + (prices >= DEAR)


def _sightings(bids: Columns) -> Made:
    """Two rows for each bid: its bidder and its auction."""
    rank = _ranks(bids["price"])
    channel = bids["channel"].astype(np.int64)
    ids = [(bids["bidder"] * 2 + 0) * _CHANNELS + channel, (bids["auction"] * 2 + 1) * _CHANNELS + channel]
    first = np.repeat(np.array([BIDDERS, AUCTIONS], np.int64), len(bids))
    twice = {"channel": channel, "day": bids["day"], "close_at": bids["close_at"], "rank": rank}
    return {"id": np.concatenate(ids), "first": first} | {n: np.concatenate([c, c]) for n, c in twice.items()}


def _counts(bids: Columns, length: int) -> Made:
    """The bids of a batch by channel, day and rank, and the last minute by channel and day."""
    channel, day = bids["channel"].astype(np.int64), bids["day"]
    number = (day - day.min()) // length if len(bids) else day
    group = number * _CHANNELS + channel
    cells, counts = np.unique(group * 4 + _ranks(bids["price"]), return_counts=True)
    groups, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    latest = np.full(len(groups), -1, np.int64)
    np.maximum.at(latest, inverse, (bids["date_time"] - day) // MINUTE)
    place = np.searchsorted(groups, cells // 4)
    parts = [
        (place, cells % 4, counts),  # by rank
        (np.arange(len(groups)), np.zeros(len(groups), np.int64), np.bincount(place, counts, len(groups))),  # in all
        (np.arange(len(groups)), np.full(len(groups), MINUTE_FIELD), latest),
    ]
    rows = np.concatenate([first[where] for where, _, _ in parts])
    made = {"channel": channel[rows], "day": day[rows], "close_at": bids["close_at"][rows]}
    for name, which in (("field", 1), ("amount", 2)):
        made[name] = np.concatenate([part[which] for part in parts]).astype(np.int64)
    return made
