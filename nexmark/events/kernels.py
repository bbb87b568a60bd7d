"""The compiled part of the generator: the columns of each kind of event, for a run of event ids or for scattered ones.

Every draw is a pure function of (seed, event id, field): a field has a key, and splitmix64's finaliser turns
`key + id * golden ratio` into 64 random bits. Nothing depends on what was drawn before, so any slice can be made by
itself, and a loop over one column has no branch and no carried state: the compiler makes it a vector loop.

A column of length 0 is not wanted and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from dataflow.compiled import kernel as compiled
from nexmark.events.config import FIRST_ID, HOT_BLOCK, LEAD, Config

P = ParamSpec("P")
T = TypeVar("T")
Ints: TypeAlias = NDArray[np.int64]
Column: TypeAlias = NDArray[np.int64] | NDArray[np.int32]  # numbers, or the codes of words
Keys: TypeAlias = NDArray[np.uint64]
Whole: TypeAlias = int | np.int64  # an event id, a row, a count: inside a kernel both are 64 bits

kernel = compiled.kernel(nogil=True)


def inlined(function: Callable[P, T]) -> Callable[P, T]:
    """Compiles a function into each kernel that calls it."""
    made: Callable[P, T] = numba.njit(inline="always")(function)
    return made


u8, i8, f8 = np.uint64, np.int64, np.float64

# Fields, each with a key of its own. The order is part of what a seed means: add at the end.
NAME, CITY, STATE, ITEM_NAME, INITIAL_BID, RESERVE, LENGTH, SELLER, CATEGORY, AUCTION, BIDDER, PRICE = range(12)
EMAIL, CARD, PERSON_EXTRA, DESCRIPTION, AUCTION_EXTRA, CHANNEL, BID_EXTRA = range(12, 19)
FIELDS = 19

NAMES, CITIES, STATES, ITEM_NAMES = 99, 10, 6, 1000  # how many words each dictionary has
CATEGORIES, FIRST_CATEGORY = 5, 10

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MULTIPLY_1, MULTIPLY_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
LOW_32 = np.uint64(0xFFFFFFFF)


class Parameters(NamedTuple):
    """What the kernels need of a `Config`."""

    persons: int
    auctions: int
    length_of_round: int
    in_flight: int
    active_people: int
    hot_seller_ratio: int
    hot_auction_ratio: int
    hot_bidder_ratio: int
    horizon_events: int
    base_time: int
    delay: float


Record: TypeAlias = NDArray[np.void]  # one row: a kernel takes a record in a third of the time of a tuple


def record_of(config: Config) -> Record:
    """The parameters of a `Config`, for the kernels."""
    values = tuple(getattr(config, name) for name in Parameters._fields)
    return np.array([values], [(name, "f8" if name == "delay" else "i8") for name in Parameters._fields])


@inlined
def parameters_in(record: Record) -> Parameters:
    """The tuple again: values, of which the compiler knows that no store into a column changes them."""
    r = record[0]
    return Parameters(
        r.persons,
        r.auctions,
        r.length_of_round,
        r.in_flight,
        r.active_people,
        r.hot_seller_ratio,
        r.hot_auction_ratio,
        r.hot_bidder_ratio,
        r.horizon_events,
        r.base_time,
        r.delay,
    )


def keys_of(seed: int) -> Keys:
    """A key for each field."""
    return np.array([_mix_python(_mix_python(seed) + field) for field in range(FIELDS)], np.uint64)


def _mix_python(x: int) -> int:
    x = (x + int(GOLDEN)) % 2**64
    x = (x ^ x >> 30) * int(MULTIPLY_1) % 2**64
    x = (x ^ x >> 27) * int(MULTIPLY_2) % 2**64
    return x ^ x >> 31


# --- Draws -----------------------------------------------------------------------------------------------------------


@inlined
def bits(key: np.uint64, event: Whole) -> np.uint64:
    """64 random bits."""
    x = key + u8(event) * GOLDEN
    x = (x ^ (x >> u8(30))) * MULTIPLY_1
    x = (x ^ (x >> u8(27))) * MULTIPLY_2
    return x ^ (x >> u8(31))


@inlined
def below(x: np.uint64, n: Whole) -> np.uint64:
    """`x * n >> 64`: evenly from 0 to n - 1, for n below 2**32, where two products of 32 bits are enough."""
    return ((x >> u8(32)) * u8(n) + (((x & LOW_32) * u8(n)) >> u8(32))) >> u8(32)


@inlined
def below_wide(x: np.uint64, n: Whole) -> np.uint64:
    """The same for any n."""
    high, low = u8(n) >> u8(32), u8(n) & LOW_32
    middle = (x >> u8(32)) * low + (((x & LOW_32) * low) >> u8(32))
    other = (x & LOW_32) * high + (middle & LOW_32)
    return (x >> u8(32)) * high + (middle >> u8(32)) + (other >> u8(32))


@inlined
def choose(x: np.uint64, ratio: Whole, hot: Whole, first: Whole, count: Whole) -> Whole:
    """`hot` unless a draw below `ratio` is 0, then one of `count` from `first` on.

    One draw serves for both: the part of `x * ratio` above 64 bits decides, and what is left over is as random.
    """
    cold = first + i8(below(x * u8(ratio), count))
    return hot if below(x, ratio) > u8(0) else cold


# 2**f on [0, 1), to 2e-12: least squares at Chebyshev points. libm's functions differ from host to host in the last bit
# and are not compiled into vector loops; sums and products are the same everywhere.
_C0, _C1, _C2 = 1.0000000000010818, 0.6931471803852499, 0.2402265115944108
_C3, _C4, _C5 = 0.05550406137971025, 0.009618370224992892, 0.001332667485799133
_C6, _C7, _C8 = 0.00015518279542221962, 1.4150934834946555e-05, 1.8751973789759237e-06
LOG2_SCALE = 6 * 3.321928094887362 / 2**32  # 6 * log2(10), for a draw of 32 bits
LOG2_BASE = 6.643856189774724  # log2(100)


@inlined
def price_of(x: np.uint64) -> np.int64:
    """`round(100 * 10**(6u))`, u uniform in [0, 1): 2 to the whole part of the logarithm is a shift."""
    logarithm = f8(i8(x >> u8(32))) * LOG2_SCALE + LOG2_BASE
    whole = np.int32(logarithm)
    f = logarithm - whole
    power = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * (_C6 + f * (_C7 + f * _C8)))))))
    shift = i8(30) - i8(whole)
    return (i8(power * f8(1 << 30)) + (i8(1) << (shift - i8(1)))) >> shift


@inlined
def time_of(p: Parameters, event: Whole) -> np.int64:
    return p.base_time + i8(f8(event) * p.delay)


# --- Persons ---------------------------------------------------------------------------------------------------------


@inlined
def person_run(p: Parameters, keys: Keys, start: Whole, stop: Whole, row: int, columns: tuple[Column, ...]) -> None:
    """The persons of event ids `start` to `stop`, all of one round, into the rows from `row` on."""
    event, id, name, city, state, date_time = columns
    round, offset = start // p.length_of_round, start % p.length_of_round
    for i in range(stop - start if len(event) else 0):
        event[row + i] = start + i
    for i in range(stop - start if len(id) else 0):
        id[row + i] = round * p.persons + offset + i + FIRST_ID
    for i in range(stop - start if len(name) else 0):
        name[row + i] = below(bits(keys[NAME], start + i), NAMES)
    for i in range(stop - start if len(city) else 0):
        city[row + i] = below(bits(keys[CITY], start + i), CITIES)
    for i in range(stop - start if len(state) else 0):
        state[row + i] = below(bits(keys[STATE], start + i), STATES)
    for i in range(stop - start if len(date_time) else 0):
        date_time[row + i] = time_of(p, start + i)


@kernel
def persons(record: Record, keys: Keys, scattered: Ints, start: int, stop: int, *columns: Column) -> None:
    """Persons: those of the ids in `scattered` (all persons), and all from `start` to `stop`."""
    p = parameters_in(record)
    for row in range(len(scattered)):
        at = scattered[row]
        person_run(p, keys, at, at + 1, row, columns)
    row = len(scattered)
    for round in range(start // p.length_of_round, -(-stop // p.length_of_round)):
        first = round * p.length_of_round
        low, high = max(start, first), min(stop, first + p.persons)
        if low < high:
            person_run(p, keys, low, high, row, columns)
            row += high - low


# --- Auctions --------------------------------------------------------------------------------------------------------


@inlined
def length_of(p: Parameters, keys: Keys, at: Whole) -> np.int64:
    """How long an auction is open: evenly from 1 to twice the horizon."""
    horizon = time_of(p, at + p.horizon_events) - time_of(p, at)
    return 1 + i8(below_wide(bits(keys[LENGTH], at), max(2 * horizon, i8(1))))


@inlined
def auction_run(p: Parameters, keys: Keys, start: Whole, stop: Whole, row: int, columns: tuple[Column, ...]) -> None:
    """The auctions of event ids `start` to `stop`, all of one round, into the rows from `row` on."""
    event, id, item_name, initial_bid, reserve, date_time, expires, seller, category = columns
    round = start // p.length_of_round
    offset = start % p.length_of_round - p.persons
    known = (round + 1) * p.persons  # persons so far
    active = min(known, p.active_people)
    hot_seller = (known - 1) // HOT_BLOCK * HOT_BLOCK + FIRST_ID
    for i in range(stop - start):
        at, to = start + i, row + i
        if len(event):
            event[to] = at
        if len(id):
            id[to] = round * p.auctions + offset + i + FIRST_ID
        if len(item_name):
            item_name[to] = below(bits(keys[ITEM_NAME], at), ITEM_NAMES)
        if len(initial_bid):
            initial_bid[to] = price_of(bits(keys[INITIAL_BID], at))
        if len(reserve):
            reserve[to] = price_of(bits(keys[INITIAL_BID], at)) + price_of(bits(keys[RESERVE], at))
        if len(date_time):
            date_time[to] = time_of(p, at)
        if len(expires):
            expires[to] = time_of(p, at) + length_of(p, keys, at)
        if len(seller):
            draw = bits(keys[SELLER], at)
            seller[to] = choose(draw, p.hot_seller_ratio, hot_seller, known - active + FIRST_ID, active + LEAD)
        if len(category):
            category[to] = FIRST_CATEGORY + i8(below(bits(keys[CATEGORY], at), CATEGORIES))


@kernel
def auctions(record: Record, keys: Keys, scattered: Ints, start: int, stop: int, *columns: Column) -> None:
    """Auctions: those of the ids in `scattered` (all auctions), and all from `start` to `stop`."""
    p = parameters_in(record)
    for row in range(len(scattered)):
        at = scattered[row]
        auction_run(p, keys, at, at + 1, row, columns)
    row = len(scattered)
    for round in range(start // p.length_of_round, -(-stop // p.length_of_round)):
        first = round * p.length_of_round + p.persons
        low, high = max(start, first), min(stop, first + p.auctions)
        if low < high:
            auction_run(p, keys, low, high, row, columns)
            row += high - low


# --- Bids ------------------------------------------------------------------------------------------------------------


@inlined
def bid_run(p: Parameters, keys: Keys, start: Whole, stop: Whole, row: int, columns: tuple[Column, ...]) -> None:
    """The bids of event ids `start` to `stop`, all of one round, into the rows from `row` on."""
    event, auction, bidder, price, date_time = columns
    round = start // p.length_of_round
    known = (round + 1) * p.persons  # persons so far
    active = min(known, p.active_people)
    newest = (round + 1) * p.auctions - 1
    oldest = max(0, newest - p.in_flight)
    hot_auction = newest // HOT_BLOCK * HOT_BLOCK + FIRST_ID
    hot_bidder = (known - 1) // HOT_BLOCK * HOT_BLOCK + 1 + FIRST_ID
    for i in range(stop - start if len(event) else 0):
        event[row + i] = start + i
    for i in range(stop - start if len(auction) else 0):
        draw = bits(keys[AUCTION], start + i)
        auction[row + i] = choose(draw, p.hot_auction_ratio, hot_auction, oldest + FIRST_ID, newest - oldest + 1 + LEAD)
    for i in range(stop - start if len(bidder) else 0):
        draw = bits(keys[BIDDER], start + i)
        bidder[row + i] = choose(draw, p.hot_bidder_ratio, hot_bidder, known - active + FIRST_ID, active + LEAD)
    for i in range(stop - start if len(price) else 0):
        price[row + i] = price_of(bits(keys[PRICE], start + i))
    for i in range(stop - start if len(date_time) else 0):
        date_time[row + i] = time_of(p, start + i)


@kernel
def bids(record: Record, keys: Keys, scattered: Ints, start: int, stop: int, *columns: Column) -> None:
    """Bids: those of the ids in `scattered` (all bids), and all from `start` to `stop`."""
    p = parameters_in(record)
    for row in range(len(scattered)):
        at = scattered[row]
        bid_run(p, keys, at, at + 1, row, columns)
    row = len(scattered)
    before = p.persons + p.auctions
    for round in range(start // p.length_of_round, -(-stop // p.length_of_round)):
        first = round * p.length_of_round
        low, high = max(start, first + before), min(stop, first + p.length_of_round)
        if low < high:
            bid_run(p, keys, low, high, row, columns)
            row += high - low
