"""The long strings: their shapes, their average sizes, and that they too depend on nothing but seed and event."""

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from nexmark.events import vocabulary
from nexmark.events.config import Config
from nexmark.events.generator import Generator
from nexmark.events.rows import rows

WORD = r"[a-z]([a-z ]*[a-z])?"


@pytest.fixture(scope="module")
def sample() -> dict[str, list[dict[str, Any]]]:
    events = Generator(Config(seed=4), payload="full").events(range(100_000))
    return {kind: rows(table) for kind, table in events.items()}


def test_the_other_columns_are_what_they_are_without_payload(sample: Any) -> None:
    bare = Generator(Config(seed=4)).events(range(100_000))
    for kind, table in bare.items():
        assert [{name: row[name] for name in table} for row in sample[kind]] == rows(table)


@pytest.mark.parametrize("group", [1, 10])
def test_batches_do_not_matter(group: int) -> None:
    generator = Generator(Config(seed=4, group=group), payload="full")
    whole = generator.events(range(1000))
    parts = [generator.events(range(a, a + 8)) for a in range(0, 1000, 8)]
    for kind, table in whole.items():
        assert rows(table) == [row for part in parts for row in rows(part[kind])]


def test_only_some_columns_with_their_payload() -> None:
    bids = Generator(columns={"bid": ["price"]}, payload="full").events(range(100))["bid"]
    assert list(bids) == ["price", "channel", "url", "extra"]


def test_shapes_of_strings(sample: Any) -> None:
    for person in sample["person"]:
        assert re.fullmatch(rf"({WORD})?@({WORD})?\.com", person["email_address"])
        assert re.fullmatch(r"\d{4} \d{4} \d{4} \d{4}", person["credit_card"])
    for auction in sample["auction"]:
        assert re.fullmatch(rf"({WORD})?", auction["description"])
    for name in vocabulary.item_names():
        assert re.fullmatch(WORD, name) and len(name) < 20
    assert len(vocabulary.item_names()) == 1000 and len(vocabulary.NAMES) == 99


def test_words_have_even_lengths_and_one_special_character_in_thirteen(sample: Any) -> None:
    descriptions = [auction["description"] for auction in sample["auction"]]
    lengths = np.array([len(text) for text in descriptions])
    assert lengths.max() == 99
    assert abs(lengths.mean() - 51) < 1.5  # 3 to 99, and a little less when trimmed
    letters = Counter("".join(descriptions))
    total = letters.total()
    assert abs(letters.pop(" ") / total - 1 / 13) < 0.004  # trimming takes some of those at the ends
    assert len(letters) == 26
    assert max(letters.values()) / min(letters.values()) < 1.1


@pytest.mark.parametrize(
    ("kind", "fixed", "strings", "target"),
    [
        ("person", 8, ("name", "email_address", "credit_card", "city", "state"), 200),
        ("auction", 48, ("item_name", "description"), 500),
        ("bid", 32, (), 100),
    ],
)
def test_events_have_their_sizes_on_average(sample: Any, kind: str, fixed: int, strings: Any, target: int) -> None:
    for row in sample[kind]:
        missing = target - fixed - sum(len(row[name]) for name in strings)
        spread = int(0.2 * missing + 0.5)
        assert missing - spread <= len(row["extra"]) < missing + spread
        assert re.fullmatch(r"[H-z]*", row["extra"])
    used = [fixed + sum(len(row[name]) for name in (*strings, "extra")) for row in sample[kind]]
    assert abs(np.mean(used) - target) < 2
    if kind == "bid":
        assert {len(row["extra"]) for row in sample[kind]} == set(range(54, 82))


def test_half_of_the_bids_come_through_the_hot_channels(sample: Any) -> None:
    counts = Counter(bid["channel"] for bid in sample["bid"])
    for name in vocabulary.HOT_CHANNELS:
        assert abs(counts[name] / len(sample["bid"]) - 1 / 8) < 0.005
    assert len(counts) > 9_900


def test_urls_belong_to_their_channels(sample: Any) -> None:
    url = r"https://www\.nexmark\.com/[a-z_]{1,4}/[a-z_]{1,4}/[a-z_]{1,4}/item\.htm\?query=1(&channel_id=\d+)?"
    known = dict(vocabulary.channels())
    assert len(known) == 10_004
    for bid in sample["bid"]:
        assert bid["url"] == known[bid["channel"]]
    for text in known.values():
        assert re.fullmatch(url, text)
    with_id = [name for name, text in known.items() if "channel_id" in text]
    assert not set(with_id) & set(vocabulary.HOT_CHANNELS)
    assert abs(len(with_id) / 10_000 - 0.9) < 0.015


@pytest.mark.parametrize(("i", "id"), [(0, 0), (1, 2147483648), (2, 1073741824), (3, 1073741824), (4, 536870912)])
def test_golden_channel_ids(i: int, id: int) -> None:
    known = dict(vocabulary.channels())[f"channel-{i}"]
    assert known.endswith(f"&channel_id={id}") or "channel_id" not in known
