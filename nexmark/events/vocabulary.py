"""The words of the stream. They are the same for every seed, so that codes mean the same everywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

_FIRST = ("peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter")
_LAST = ("shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris")

NAMES: Sequence[str] = tuple(f"{first} {last}" for first in _FIRST for last in _LAST)
STATES: Sequence[str] = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Sequence[str] = (
    "phoenix",
    "los angeles",
    "san francisco",
    "boise",
    "portland",
    "bend",
    "redmond",
    "seattle",
    "kent",
    "cheyenne",
)

HOT_CHANNELS: Sequence[str] = ("Google", "Facebook", "Baidu", "Apple")
COLD_CHANNELS = 10_000
ENCODED = ("name", "city", "state", "item_name", "channel", "url", "dir1", "dir2", "dir3", "time_of_day")
"""The columns that have codes, of events and of answers."""
TIMES_OF_DAY: Sequence[str] = ("dayTime", "nightTime", "otherTime")  # for query 14


def dictionary(column: str) -> Sequence[str]:
    """What the codes of a dictionary-encoded column stand for.

    >>> dictionary("state")[3]
    'OR'
    """
    match column:
        case "name":
            return NAMES
        case "city":
            return CITIES
        case "state":
            return STATES
        case "item_name":
            return item_names()
        case "channel":
            return _channel_words()[0]
        case "url":
            return _channel_words()[1]
        case "dir1" | "dir2" | "dir3":
            return folders_of_urls()[int(column[3:]) - 1]
        case "time_of_day":
            return TIMES_OF_DAY
    raise LookupError(f"column {column!r} is not dictionary-encoded; {', '.join(ENCODED)} are")


@cache
def item_names() -> Sequence[str]:
    """A thousand names of things, of 3 to 19 letters and spaces."""
    source = random.Random("item names")
    return tuple(_random_word(source, 20, " ") for _ in range(1000))


@cache
def channels() -> Sequence[tuple[str, str]]:
    """Channels and their URLs: the four hot ones first, then ten thousand others, of which 90 % have a channel id."""
    source = random.Random("channels")
    hot = [(name, _base_url(source)) for name in HOT_CHANNELS]
    return tuple(hot + [(f"channel-{i}", _base_url(source) + _channel_id(source, i)) for i in range(COLD_CHANNELS)])


@cache
def _channel_words() -> tuple[Sequence[str], Sequence[str]]:
    names, urls = zip(*channels(), strict=True)
    return names, urls


@cache
def folders_of_urls() -> Sequence[Sequence[str]]:
    """The three folders of each channel's URL, for query 22."""
    return tuple(zip(*(url.split("/")[3:6] for url in _channel_words()[1]), strict=True))


def _base_url(source: random.Random) -> str:
    folders = "".join(_random_word(source, 5, "_") + "/" for _ in range(3))
    return f"https://www.nexmark.com/{folders}item.htm?query=1"


def _channel_id(source: random.Random, i: int) -> str:
    """The size of `i` with its 32 bits reversed, as a signed number.

    >>> [_channel_id(random.Random(0), i) for i in (0, 2, 4)]
    ['&channel_id=0', '&channel_id=1073741824', '&channel_id=536870912']
    """
    if _pick(source, 10) == 0:
        return ""
    reversed_bits = int(f"{i:032b}"[::-1], 2)
    return f"&channel_id={min(reversed_bits, 2**32 - reversed_bits)}"


def _random_word(source: random.Random, limit: int, special: str) -> str:
    letters = (special if _pick(source, 13) == 0 else chr(ord("a") + _pick(source, 26)) for _ in range(limit))
    return "".join(letters)[: 3 + _pick(source, limit - 3)].strip()


def _pick(source: random.Random, n: int) -> int:
    # The one method of Random whose sequence is promised to stay the same in every version of Python.
    return int(source.random() * n)
