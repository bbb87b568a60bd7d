"""The generator: the same events as the oracle's, however they are cut; the references' golden values; statistics."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexmark.events.config import SECOND, Config
from nexmark.events.generator import COLUMNS, Generator
from nexmark.events.rows import rows
from tests.nexmark.cases import configs
from tests.oracles import auction_site

KINDS = ("person", "auction", "bid")


def by_oracle(config: Config, numbers: Any) -> dict[str, list[dict[str, Any]]]:
    made: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for number in numbers:
        kind, row = auction_site.event_at(config, number)
        made[kind].append({name: row[name] for name in COLUMNS[kind]})
    return made


def by_generator(config: Config, numbers: Any) -> dict[str, list[dict[str, Any]]]:
    return {kind: rows(table) for kind, table in Generator(config).events(numbers).items()}


@settings(deadline=None, derandomize=True)  # the first of them compiles
@given(config=configs(), start=st.sampled_from([0, 1, 49, 4998, 123_456, 10**9]), count=st.integers(0, 120))
def test_a_run_of_events_is_the_oracles(config: Config, start: int, count: int) -> None:
    numbers = range(start, start + count)
    assert by_generator(config, numbers) == by_oracle(config, numbers)


@settings(deadline=None, derandomize=True)  # the first of them compiles
@given(config=configs(), numbers=st.lists(st.integers(0, 10**7), max_size=40))
def test_scattered_events_are_the_oracles_in_their_order(config: Config, numbers: list[int]) -> None:
    assert by_generator(config, np.array(numbers, np.int64)) == by_oracle(config, numbers)


@pytest.mark.parametrize("group", [1, 10])
def test_workers_and_batches_do_not_matter(group: int) -> None:
    config = Config(seed=3, group=group)
    whole = by_generator(config, range(5000))
    for cuts in ([0, 5000], [0, 1, 50, 51, 53, 54, 1000, 1003, 4999, 5000], list(range(0, 5001, 8))):
        parts = [by_generator(config, range(a, b)) for a, b in itertools.pairwise(cuts)]
        assert {kind: [row for part in parts for row in part[kind]] for kind in KINDS} == whole
    for workers in (2, 3, 4):
        parts = [by_generator(config, range(w, 5000, workers)) for w in range(workers)]
        for kind in KINDS:
            together = [row for part in parts for row in part[kind]]
            assert sorted(together, key=_event) == sorted(whole[kind], key=_event)


def _event(row: dict[str, Any]) -> int:
    return int(row["event"])


@pytest.mark.parametrize("group", [1, 10])
def test_columns_that_are_not_wanted_change_nothing(group: int) -> None:
    config = Config(seed=5, group=group)
    whole = Generator(config).events(range(3000))
    for kind in KINDS:
        for name in COLUMNS[kind]:
            only = Generator(config, columns={kind: [name]}).events(range(3000))
            assert list(only) == [kind] and list(only[kind]) == [name]
            assert np.array_equal(only[kind][name], whole[kind][name])


def test_buffers_are_written_over_and_give_the_same() -> None:
    generator = Generator(Config(seed=9))
    out = generator.buffers(1000)
    first = generator.events(range(1000), out)
    assert np.shares_memory(first["bid"]["price"], out["bid"]["price"])
    second = generator.events(range(7000, 7800), out)
    assert {kind: rows(table) for kind, table in second.items()} == by_generator(generator.config, range(7000, 7800))


def test_a_buffer_that_is_too_small_is_refused() -> None:
    generator = Generator()
    with pytest.raises(ValueError, match=r"no room for 920 rows of bid\.event; make it with .* buffers"):
        generator.events(range(1000), generator.buffers(1000) | {"bid": {}})
    with pytest.raises(ValueError, match=r"no room for 20 rows of person\.event"):
        generator.events(range(1000), generator.buffers(19))


# --- Golden values of the references ---------------------------------------------------------------------------------

GOLDEN = [  # number, kind, id, hot, cold ranges: sellers, or auctions and bidders
    (0, "person", 1000, [], []),
    (1, "auction", 1000, [1000], [(1000, 1010)]),
    (2, "auction", 1001, [1000], [(1000, 1010)]),
    (3, "auction", 1002, [1000], [(1000, 1010)]),
    (4, "bid", None, [1000, 1001], [(1000, 1012), (1000, 1010)]),
    (49, "bid", None, [1000, 1001], [(1000, 1012), (1000, 1010)]),
    (50, "person", 1001, [], []),
    (51, "auction", 1003, [1000], [(1000, 1011)]),
    (53, "auction", 1005, [1000], [(1000, 1011)]),
    (54, "bid", None, [1000, 1001], [(1000, 1015), (1000, 1011)]),
    (99, "bid", None, [1000, 1001], [(1000, 1015), (1000, 1011)]),
    (5000, "person", 1100, [], []),
    (5001, "auction", 1300, [1100], [(1000, 1110)]),
    (5004, "bid", None, [1300, 1101], [(1202, 1312), (1000, 1110)]),
]


@pytest.mark.parametrize(("number", "kind", "id", "hot", "cold"), GOLDEN)
def test_golden_ids_and_choices(number: int, kind: str, id: int | None, hot: list[int], cold: list[Any]) -> None:
    """Over many seeds the hot choice is the most frequent, and cold ones fill their range to the ends, no further."""
    widest = max((high - low for low, high in cold), default=0)
    chosen: dict[str, list[int]] = {"seller": [], "auction": [], "bidder": []}
    always_cold: dict[str, list[int]] = {"seller": [], "auction": [], "bidder": []}
    for seed in range(1 + 8 * widest):
        for config, values in (
            (Config(seed=seed, rate=1000), chosen),
            (Config(seed, 1000, hot_seller_ratio=1, hot_auction_ratio=1, hot_bidder_ratio=1), always_cold),
        ):
            (row,) = _row_at(config, number, kind)
            assert row["date_time"] == number * 1_000_000
            assert row.get("id") == id
            for name in values:
                values[name] += [row[name]] if name in row and name != "id" else []
    fields = {"person": [], "auction": ["seller"], "bid": ["auction", "bidder"]}[kind]
    for field, value, (low, high) in zip(fields, hot, cold, strict=True):
        assert max(set(chosen[field]), key=chosen[field].count) == value
        assert set(chosen[field]) <= set(range(low, high + 1)) | {value}
        assert min(always_cold[field]) == low and max(always_cold[field]) == high


def _row_at(config: Config, number: int, kind: str) -> list[dict[str, Any]]:
    events = Generator(config).events(range(number, number + 1))
    assert all(len(table["event"]) == (name == kind) for name, table in events.items())
    return rows(events[kind])


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        (1, (1, 0, 0)),
        (4, (1, 3, 0)),
        (20, (1, 3, 16)),
        (50, (1, 3, 46)),
        (100, (2, 6, 92)),
        (1000, (20, 60, 920)),
        (1234, (25, 75, 1134)),
        (10**6, (20_000, 60_000, 920_000)),
    ],
)
def test_golden_counts(events: int, counts: tuple[int, int, int]) -> None:
    made = Generator(columns={kind: ["event"] for kind in KINDS}).events(range(events))
    assert tuple(len(made[kind]["event"]) for kind in KINDS) == counts


@pytest.mark.parametrize(
    ("group", "ids"),
    [
        (1, range(10)),
        (3, [0, 2, 1, 3, 5, 4, 6, 8, 7, 9]),
        (10, [0, 3, 6, 9, 2, 5, 8, 1, 4, 7]),
        (7, range(10)),
        (1000, [0, 953, 906, 859, 812, 765, 718, 671, 624, 577]),
    ],
)
def test_golden_orders_within_groups(group: int, ids: Any) -> None:
    generator = Generator(Config(group=group))
    assert generator.ids(range(10)).tolist() == list(ids)
    assert sorted(generator.ids(range(5 * group))) == list(range(5 * group))


def test_golden_shares_of_four_workers() -> None:
    generator = Generator(Config(rate=1000))
    for worker, counts in enumerate([(1, 1, 23), (0, 2, 23)] * 2):
        made = generator.events(range(worker, 100, 4))
        assert tuple(len(made[kind]["event"]) for kind in KINDS) == counts
    first = generator.events(range(1, 12, 4))
    assert sorted(np.concatenate([first[kind]["date_time"] for kind in KINDS])) == [1_000_000, 5_000_000, 9_000_000]


@pytest.mark.parametrize(
    ("rate", "times"),
    [
        (7, {1: 142857142, 2: 285714285, 3: 428571428, 49: 7000000000, 50: 7142857142}),
        (3164, {1: 316055, 2: 632111, 3: 948166}),
    ],
)
def test_golden_times(rate: int, times: dict[int, int]) -> None:
    events = Generator(Config(rate=rate)).events(range(51))
    made = {row["event"]: row["date_time"] for table in events.values() for row in rows(table)}
    assert {number: made[number] for number in times} == times


@pytest.mark.parametrize(
    ("rate", "in_flight", "horizon"),
    [(1000, 100, 1_666_000_000), (250_000, 250_000 * 2592, 43_200 * SECOND), (3164, 3164 * 2592, 43_200 * SECOND)],
)
def test_golden_horizons_bound_and_average_the_lengths(rate: int, in_flight: int, horizon: int) -> None:
    auctions = Generator(Config(rate=rate, in_flight=in_flight)).events(range(500_000))["auction"]
    lengths = auctions["expires"] - auctions["date_time"]
    assert lengths.min() >= 1 and lengths.max() <= 2 * horizon
    assert lengths.max() / horizon > 1.99
    assert 0.98 < lengths.mean() / horizon < 1.02  # standard error 0.0033


# --- Statistics: samples from person 1000 on, seeded, so that a bound either holds or does not -----------------------

SAMPLE = range(50_000, 1_050_000)


@pytest.fixture(scope="module")
def sample() -> Any:
    return Generator(Config(seed=1)).events(SAMPLE)


@pytest.mark.parametrize(
    ("kind", "field", "least", "most"),
    [("bid", "auction", 0.5, 0.52), ("bid", "bidder", 0.75, 0.76), ("auction", "seller", 0.75, 0.76)],
)
def test_hot_choices_have_their_share(sample: Any, kind: str, field: str, least: float, most: float) -> None:
    table = sample[kind]
    rounds = table["event"] // 50
    newest = rounds * 3 + 2 if field == "auction" else rounds
    hot = newest // 100 * 100 + 1000 + (field == "bidder")
    error = 4 * np.sqrt(least * (1 - least) / len(hot))
    assert least - error <= np.mean(table[field] == hot) <= most + error


@pytest.mark.parametrize(("kind", "field"), [("bid", "price"), ("auction", "initial_bid")])
def test_logarithms_of_prices_are_uniform(sample: Any, kind: str, field: str) -> None:
    u = np.log10(sample[kind][field] / 100) / 6
    # Kolmogorov and Smirnov's distance; 1.95 is passed by one sample in a thousand. Rounding moves a price by 1/200.
    distance = np.abs(np.sort(u) - (np.arange(len(u)) + 0.5) / len(u)).max()
    assert distance < 1.95 / np.sqrt(len(u)) + np.log10(1.005) / 6
    assert 97_000 < np.median(sample[kind][field]) < 103_000 or kind == "auction"
    assert sample[kind][field].min() >= 100 and sample[kind][field].max() <= 100_000_000


@pytest.mark.parametrize(
    ("kind", "field", "values"),
    [
        ("auction", "category", range(10, 15)),
        ("auction", "item_name", range(1000)),
        ("person", "city", range(10)),
        ("person", "state", range(6)),
        ("person", "name", range(99)),
    ],
)
def test_choices_are_uniform(sample: Any, kind: str, field: str, values: range) -> None:
    counts = np.bincount(sample[kind][field] - values.start, minlength=len(values))
    assert len(counts) == len(values)
    assert _chi_squared_is_plausible(counts)


def test_cold_auctions_are_uniform_over_what_is_in_flight(sample: Any) -> None:
    cold = Generator(Config(seed=2, hot_auction_ratio=1)).events(SAMPLE)["bid"]
    newest = cold["event"] // 50 * 3 + 2
    assert _chi_squared_is_plausible(np.bincount(cold["auction"] - 1000 - (newest - 100), minlength=111))


def test_fields_are_independent_of_each_other_and_of_their_neighbours(sample: Any) -> None:
    bid, person = sample["bid"], sample["person"]
    logs = np.log(bid["price"])
    columns = [logs[:-1], logs[1:], bid["auction"][:-1] % 100, bid["bidder"][:-1] % 100]
    correlations = np.corrcoef(columns) - np.eye(4)
    assert np.abs(correlations).max() < 4.5 / np.sqrt(len(logs))
    assert _chi_squared_is_plausible(np.bincount(person["city"] * 6 + person["state"], minlength=60))


def test_seeds_give_other_events() -> None:
    one, other = (Generator(Config(seed=seed)).events(range(10_000))["bid"]["price"] for seed in (1, 2))
    assert np.mean(one == other) < 0.01


def _chi_squared_is_plausible(counts: Any) -> bool:
    """Within four and a half standard deviations, for equal chances."""
    expected = counts.sum() / len(counts)
    freedom = len(counts) - 1
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    return bool(abs(chi_squared - freedom) < 4.5 * np.sqrt(2 * freedom))
