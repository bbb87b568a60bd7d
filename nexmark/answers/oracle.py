"""Queries 0 to 22 one after the other over lists of rows: what every engine's answers are held against.

Each is the shortest program that says what its query means. They share no code with the queries that they judge, look
at everything before they answer, and take time and memory as they please. Events are lists of rows (dictionaries) by
kind, in any order; ids of persons and auctions are unique. An answer is a list of tuples; its order means nothing
except in 4 and 6, where it shows how the answer came about.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NotRequired, TypeAlias, TypedDict

Answer: TypeAlias = list[tuple[int | str, ...]]

SECOND = 1_000_000_000
DAY = 24 * 3600 * SECOND
RANKS = (range(10_000), range(10_000, 1_000_000), range(1_000_000, 1 << 62))  # of prices


class Person(TypedDict):
    """Somebody who registers."""

    event: int
    id: int
    name: str
    city: str
    state: str
    date_time: int


class Auction(TypedDict):
    """Somebody offers something."""

    event: int
    id: int
    item_name: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int


class Bid(TypedDict):
    """Somebody bids for it."""

    event: int
    auction: int
    bidder: int
    price: int
    date_time: int
    channel: NotRequired[str]
    url: NotRequired[str]
    extra: NotRequired[str]


class EventRows(TypedDict):
    """The events, by kind."""

    person: Sequence[Person]
    auction: Sequence[Auction]
    bid: Sequence[Bid]


def q0(events: EventRows) -> Answer:
    """Pass through: every bid."""
    return [(b["auction"], b["bidder"], b["price"], b["date_time"]) for b in events["bid"]]


def q1(events: EventRows) -> Answer:
    """Currency conversion: every bid, its price in euros."""
    return [(b["auction"], b["bidder"], b["price"] * 89 // 100, b["date_time"]) for b in events["bid"]]


def q2(events: EventRows) -> Answer:
    """Selection: the bids for certain auctions."""
    return [(b["auction"], b["price"]) for b in events["bid"] if b["auction"] % 123 == 0]


def q3(events: EventRows) -> Answer:
    """Local item suggestion: who sells in category 10 in certain states; whichever came first."""
    return [
        (p["name"], p["city"], p["state"], a["id"])
        for p in events["person"]
        if p["state"] in ("OR", "ID", "CA")
        for a in events["auction"]
        if a["seller"] == p["id"] and a["category"] == 10
    ]


def q4(events: EventRows) -> Answer:
    """Average price by category: after each auction that closes, that of its category so far."""
    prices: defaultdict[int, list[int]] = defaultdict(list)
    answer: Answer = []
    for auction, winner in closed_auctions(events):
        prices[auction["category"]].append(winner["price"])
        answer.append((auction["category"], sum(prices[auction["category"]]) // len(prices[auction["category"]])))
    return answer


def q5(events: EventRows, window: int = 60 * SECOND, slide: int = SECOND) -> Answer:
    """Hot items: in each window that has bids, the auction with the most; ties to the smaller id."""
    windows: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for b in events["bid"]:
        first_end = (b["date_time"] // slide + 1) * slide
        for end in range(first_end, b["date_time"] + window + 1, slide):  # end - window <= date_time < end
            windows[end][b["auction"]] += 1
    hottest = {end: min(counts, key=lambda id: (-counts[id], id)) for end, counts in windows.items()}
    return [(end, auction, windows[end][auction]) for end, auction in hottest.items()]


def q6(events: EventRows) -> Answer:
    """Average price by seller: after each auction that closes, that of the last ten of its seller."""
    prices: defaultdict[int, list[int]] = defaultdict(list)
    answer: Answer = []
    for auction, winner in closed_auctions(events):
        prices[auction["seller"]].append(winner["price"])
        last = prices[auction["seller"]][-10:]
        answer.append((auction["seller"], sum(last) // len(last)))
    return answer


def q7(events: EventRows, window: int = 10 * SECOND) -> Answer:
    """Highest bid: that of each window; ties to the smaller event id."""
    windows: defaultdict[int, list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        windows[(b["date_time"] // window + 1) * window].append(b)
    highest = {end: min(bids, key=_highest_first) for end, bids in windows.items()}
    return [(end, b["auction"], b["bidder"], b["price"]) for end, b in highest.items()]


def q8(events: EventRows, window: int = 12 * 3600 * SECOND) -> Answer:
    """New users who sell: registered and opened an auction in the same window."""
    opened = {(a["seller"], a["date_time"] // window) for a in events["auction"]}
    return [
        (p["id"], p["name"], p["date_time"] // window * window)
        for p in events["person"]
        if (p["id"], p["date_time"] // window) in opened
    ]


def q9(events: EventRows) -> Answer:
    """Winning bids: every auction that was sold, and the bid that won."""
    return [
        (a["id"], a["seller"], a["category"], a["date_time"], a["expires"], b["bidder"], b["price"], b["date_time"])
        for a, b in closed_auctions(events)
    ]


def q10(events: EventRows) -> Answer:
    """Log to files: every bid, with its minute."""
    minute = 60 * SECOND
    return [
        (b["auction"], b["bidder"], b["price"], b["date_time"], b["date_time"] // minute * minute)
        for b in events["bid"]
    ]


def q11(events: EventRows, gap: int = 10 * SECOND) -> Answer:
    """User sessions: a bid that comes more than a gap after the one before begins another."""
    dates: defaultdict[int, list[int]] = defaultdict(list)
    for b in events["bid"]:
        dates[b["bidder"]].append(b["date_time"])
    answer: Answer = []
    for bidder, all_dates in dates.items():
        sessions: list[list[int]] = []
        for date in sorted(all_dates):
            if not sessions or date - sessions[-1][-1] > gap:
                sessions.append([])
            sessions[-1].append(date)
        answer += [(bidder, len(session), session[0], session[-1] + gap) for session in sessions]
    return answer


def q12(events: EventRows, window: int = 10 * SECOND, size: int = 1, times: Sequence[int] = ()) -> Answer:
    """Windows of processing time: bids by bidder. So many events (`size`) enter together, at each of `times`; without
    times, each at its own date."""
    counts: Counter[tuple[int, int]] = Counter()
    for b in events["bid"]:
        entered = times[b["event"] // size] if times else b["date_time"]
        counts[b["bidder"], entered // window * window] += 1
    return [(bidder, bids, start, start + window) for (bidder, start), bids in counts.items()]


def q13(events: EventRows) -> Answer:
    """Bounded side input: every bid, with the value that a table has for its auction."""
    table = {key: key * key % 10_007 for key in range(10_000)}
    return [
        (b["auction"], b["bidder"], b["price"], b["date_time"], table[b["auction"] % 10_000]) for b in events["bid"]
    ]


def q14(events: EventRows) -> Answer:
    """Calculation: bids of middling price in euros, with the time of day and the number of c's in their text."""
    answer: Answer = []
    for b in events["bid"]:
        hour = b["date_time"] // (3600 * SECOND) % 24
        when = "dayTime" if 8 <= hour <= 18 else "nightTime" if hour <= 6 or hour >= 20 else "otherTime"
        if 1_000_000 * 1000 < b["price"] * 908 < 50_000_000 * 1000:
            euros = b["price"] * 908 // 1000
            answer.append((b["auction"], b["bidder"], euros, when, b["date_time"], b["extra"].count("c")))
    return answer


def q15(events: EventRows, day: int = DAY) -> Answer:
    """Bidding statistics: bids, different bidders and different auctions, by day."""
    days: defaultdict[int, list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        days[b["date_time"] // day * day].append(b)
    return [(start, *_statistics(bids)) for start, bids in days.items()]


def q16(events: EventRows, day: int = DAY) -> Answer:
    """Channel statistics: the same by channel and day, with the minute of the last bid."""
    groups: defaultdict[tuple[str, int], list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        groups[b["channel"], b["date_time"] // day * day].append(b)
    return [
        (channel, start, max(b["date_time"] - start for b in bids) // (60 * SECOND), *_statistics(bids))
        for (channel, start), bids in groups.items()
    ]


def _statistics(bids: list[Bid]) -> list[int]:
    """Bids, bidders and auctions, each in all and by rank of price."""
    ranks = [bids, *([b for b in bids if b["price"] in rank] for rank in RANKS)]
    whats: list[Callable[[Bid], int]] = [lambda b: b["event"], lambda b: b["bidder"], lambda b: b["auction"]]
    return [len({what(b) for b in rank}) for what, rank in product(whats, ranks)]


def q17(events: EventRows, day: int = DAY) -> Answer:
    """Auction statistics: the bids for each auction on each day."""
    prices: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for b in events["bid"]:
        prices[b["auction"], b["date_time"] // day * day].append(b["price"])
    return [
        (*key, len(p), *(sum(price in rank for price in p) for rank in RANKS), min(p), max(p), sum(p) // len(p), sum(p))
        for key, p in prices.items()
    ]


def q18(events: EventRows, day: int = DAY) -> Answer:
    """The last bid of each bidder for each auction on each day."""
    last: dict[tuple[int, int, int], Bid] = {}
    for b in sorted(events["bid"], key=lambda b: (b["date_time"], b["event"])):
        last[b["bidder"], b["auction"], b["date_time"] // day] = b
    return [(b["auction"], b["bidder"], b["price"], b["date_time"]) for b in last.values()]


def q19(events: EventRows, day: int = DAY) -> Answer:
    """The ten highest bids for each auction on each day; of equal ones the earlier."""
    groups: defaultdict[tuple[int, int], list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        groups[b["auction"], b["date_time"] // day * day].append(b)
    return [
        (auction, start, rank, b["bidder"], b["price"], b["date_time"])
        for (auction, start), bids in groups.items()
        for rank, b in enumerate(sorted(bids, key=lambda b: (-b["price"], b["date_time"], b["event"]))[:10], 1)
    ]


def q20(events: EventRows) -> Answer:
    """Expand a bid with its auction, in category 10."""
    auctions = {a["id"]: a for a in events["auction"] if a["category"] == 10}
    return [
        (
            b["auction"], b["bidder"], b["price"], b["date_time"],
            a["item_name"], a["initial_bid"], a["reserve"], a["expires"], a["seller"], a["category"],
        )
        for b in events["bid"]
        if (a := auctions.get(b["auction"]))
    ]  # fmt: skip


def q21(events: EventRows) -> Answer:
    """Add the channel's number: of a known one, or from its URL."""
    known = {"apple": 0, "google": 1, "facebook": 2, "baidu": 3}
    answer: Answer = []
    for b in events["bid"]:
        _, _, told = b["url"].partition("channel_id=")
        if b["channel"].lower() in known or told:
            number = known.get(b["channel"].lower(), int(told or 0))
            answer.append((b["auction"], b["bidder"], b["price"], b["channel"], number))
    return answer


def q22(events: EventRows) -> Answer:
    """Directories of the URL."""
    return [(b["auction"], b["bidder"], b["price"], b["channel"], *b["url"].split("/")[3:6]) for b in events["bid"]]


def closed_auctions(events: EventRows) -> list[tuple[Auction, Bid]]:
    """The auctions that closed with a winner, and the winning bid, in the order (expires, auction id)."""
    bids: defaultdict[int, list[Bid]] = defaultdict(list)
    for b in events["bid"]:
        bids[b["auction"]].append(b)
    closed = []
    for a in sorted(events["auction"], key=lambda a: (a["expires"], a["id"])):
        valid = [b for b in bids[a["id"]] if b["price"] >= a["reserve"]]
        in_time = [b for b in valid if a["date_time"] <= b["date_time"] < a["expires"]]
        if in_time:
            closed.append((a, min(in_time, key=_highest_first)))
    return closed


def _highest_first(bid: Bid) -> tuple[int, int]:
    return -bid["price"], bid["event"]


_BID = ("auction", "bidder", "price", "date_time")
_NUMBERS = tuple(f"{w}{r}" for w in ("bids", "bidders", "auctions") for r in ("", "_rank1", "_rank2", "_rank3"))
_EXPANDED = ("item_name", "initial_bid", "reserve", "expires", "seller", "category")
_PRICES = ("bids", "rank1", "rank2", "rank3", "least", "most", "average", "total")

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "q0": _BID,
    "q1": _BID,
    "q2": ("auction", "price"),
    "q3": ("name", "city", "state", "auction"),
    "q4": ("category", "average"),
    "q5": ("window_end", "auction", "bids"),
    "q6": ("seller", "average"),
    "q7": ("window_end", "auction", "bidder", "price"),
    "q8": ("person", "name", "window_start"),
    "q9": ("auction", "seller", "category", "date_time", "expires", "bidder", "price", "bid_time"),
    "q10": (*_BID, "minute"),
    "q11": ("bidder", "bids", "start", "end"),
    "q12": ("bidder", "bids", "start", "end"),
    "q13": (*_BID, "value"),
    "q14": ("auction", "bidder", "price", "time_of_day", "date_time", "letters"),
    "q15": ("day", *_NUMBERS),
    "q16": ("channel", "day", "last_minute", *_NUMBERS),
    "q17": ("auction", "day", *_PRICES),
    "q18": _BID,
    "q19": ("auction", "day", "rank", "bidder", "price", "date_time"),
    "q20": (*_BID, *_EXPANDED),
    "q21": ("auction", "bidder", "price", "channel", "channel_id"),
    "q22": ("auction", "bidder", "price", "channel", "dir1", "dir2", "dir3"),
}
QUERIES: Mapping[str, Callable[..., Answer]] = {
    f"q{n}": query
    for n, query in enumerate(
        (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22)
    )
}
