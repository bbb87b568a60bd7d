"""Queries 0 and 9 to 22, those of the wider community: native, migratable and with random migrations they give what the
sequential oracle gives, and the oracle gives what was worked out by hand."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dataflow
from dataflow.testing import simulate
from nexmark.answers import oracle
from nexmark.commands.main import main as command
from nexmark.events.config import SECOND, Config
from nexmark.events.generator import Generator
from nexmark.events.rows import rows
from nexmark.queries import daily, distinct, sessions
from nexmark.queries.queries import NEEDS, PAPERS, QUERIES
from nexmark.runs.measuring import LoadPlan
from nexmark.runs.measuring import main as measure
from nexmark.runs.running import RunPlan, main
from nexmark.runs.sources import with_plain
from tests.nexmark.cases import TRACE, Row
from tests.nexmark.runs import WINDOWS, answer, columns, options_of, plain, random_plan, random_updates, rows_of

COMMUNITY = [query for query in QUERIES if query not in PAPERS]
STATEFUL = ("q9", "q11", "q12", "q15", "q16", "q17", "q18", "q19", "q20")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("query", COMMUNITY)
def test_random_schedules(query: str, workers: int) -> None:
    """Uncompiled folds; events, windows, batches, bins, groups out of order and migrations are all random."""
    for seed in range(4 if query in STATEFUL else 1):
        plan, windows = random_plan(query, seed, workers, 250)
        results = simulate(main, plan, None, plain(plan), workers=workers, seed=seed)
        assert rows_of(results) == answer(plan, windows), f"seed {seed} of {plan}"


@pytest.mark.parametrize("query", COMMUNITY)
def test_variants_and_sizes_of_batches_make_no_difference(query: str) -> None:
    """Compiled, on workers that share this process. Query 12 is about when records come in, so for it they do."""
    windows = WINDOWS.get(query, {})
    plan = RunPlan(query, Config(seed=5, rate=2000, group=10), events=20_000, bins=16, keep=True)
    plan = replace(plan, windows=options_of(query, windows))
    for variant, workers, batch in (("native", 2, 3000), ("migratable", 2, 700)):
        this = replace(plan, variant=variant, batch=batch)
        if variant == "migratable":
            this = replace(this, updates=random_updates(random.Random(query), this, workers, 10))
        expected = answer(this, windows)
        assert expected
        assert rows_of(dataflow.execute(main, this, workers=workers, in_process=True)) == expected, this


@pytest.mark.parametrize("query", ["q11", "q16", "q19"])
@pytest.mark.parametrize("bins", [2, 1 << 15])
def test_few_bins_and_many(query: str, bins: int) -> None:
    config = Config(seed=4, rate=100, active_people=20, bids=40)
    plan = RunPlan(query, config, 500, bins=bins, batch=100, windows=options_of(query, WINDOWS[query]), keep=True)
    plan = replace(plan, updates=random_updates(random.Random(bins), plan, 2, 6))
    results = simulate(main, plan, None, plain(plan), workers=2, seed=bins)
    assert rows_of(results) == answer(plan, WINDOWS[query])


@pytest.mark.parametrize("query", ["q9", "q11", "q15", "q18", "q20"])
def test_under_load_while_bins_move(query: str) -> None:
    load = LoadPlan(
        RunPlan(query, Config(seed=3, in_flight=20), bins=8, keep=True),
        rate=3000, duration=0.3, epoch=0.01, dilation=7, preload=500,
        migrations=[(0.05, "fluid"), (0.15, "batched")], batch_bins=2,
    )  # fmt: skip
    generator = Generator(load.generator().config, with_plain(NEEDS[query]))
    events = generator.events(range(load.preload + load.schedule(1).records))
    expected = Counter(oracle.QUERIES[query]({kind: rows(table) for kind, table in events.items()}))
    assert rows_of(simulate(measure, load, workers=2, seed=5)) == expected


def by_hand() -> dict[str, list[tuple[Any, ...]]]:
    """The trace, worked out on paper: gaps of two seconds, windows and days of five."""
    s = SECOND
    return {
        "q9": [
            (1001, 1002, 10, 2 * s, 8 * s, 1001, 150, 5 * s // 2),
            (1003, 1001, 11, 6 * s, 9 * s, 1004, 250, 7 * s),
            (1000, 1000, 10, 1 * s, 20 * s, 1001, 600, 3 * s),
        ],
        # Bidder 1001: 2, 2.5, 3, then 8, 9; bidder 1003: 4; bidder 1004: 5, 7 (exactly a gap apart: one session).
        "q11": [(1001, 3, 2 * s, 5 * s), (1001, 2, 8 * s, 11 * s), (1003, 1, 4 * s, 6 * s), (1004, 2, 5 * s, 9 * s)],
        "q12": [(1001, 3, 0, 5 * s), (1001, 2, 5 * s, 10 * s), (1003, 1, 0, 5 * s), (1004, 2, 5 * s, 10 * s)],
        "q15": [(0, 4, 4, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0), (5 * s, 4, 3, 1, 0, 2, 2, 1, 0, 3, 2, 1, 0)],
        "q17": [
            (1000, 0, 3, 3, 0, 0, 400, 600, 533, 1600),
            (1001, 0, 1, 1, 0, 0, 150, 150, 150, 150),
            (1001, 5 * s, 1, 1, 0, 0, 900, 900, 900, 900),
            (1003, 5 * s, 2, 2, 0, 0, 250, 300, 275, 550),
            (1107, 5 * s, 1, 0, 1, 0, 12345, 12345, 12345, 12345),
        ],
        "q18": [
            (1000, 1001, 600, 3 * s), (1000, 1003, 600, 4 * s), (1001, 1001, 150, 5 * s // 2),
            (1001, 1001, 900, 8 * s), (1003, 1004, 250, 7 * s), (1107, 1001, 12345, 9 * s),
        ],
        "q19": [
            (1000, 0, 1, 1001, 600, 3 * s), (1000, 0, 2, 1003, 600, 4 * s), (1000, 0, 3, 1001, 400, 2 * s),
            (1001, 0, 1, 1001, 150, 5 * s // 2), (1001, 5 * s, 1, 1001, 900, 8 * s),
            (1003, 5 * s, 1, 1004, 300, 5 * s), (1003, 5 * s, 2, 1004, 250, 7 * s),
            (1107, 5 * s, 1, 1001, 12345, 9 * s),
        ],
    }  # fmt: skip


HAND_WINDOWS = {"q11": {"gap": 2 * SECOND}, "q12": {"window": 5 * SECOND}}


@pytest.mark.parametrize("query", by_hand())
def test_the_trace_as_it_was_worked_out_by_hand(query: str) -> None:
    """For query 12 the oracle alone: on the engine a bid enters at a time of the grid, not at its own date."""
    windows = HAND_WINDOWS.get(query, {"day": 5 * SECOND} if query != "q9" else {})
    expected = Counter(by_hand()[query])
    assert Counter(oracle.QUERIES[query](TRACE, **windows)) == expected
    given = columns(TRACE, query)
    plan = RunPlan(query, given=given, bins=4, batch=1, windows=options_of(query, windows), keep=True)
    if query != "q12":
        assert rows_of(simulate(main, plan, None, plain(plan), workers=2, seed=1)) == expected


def bids(*given: tuple[float, int]) -> list[Row]:
    """Of one bidder for one auction, as (date in seconds, price)."""
    made = [{"auction": 1, "bidder": 2, "price": price, "date_time": round(date * SECOND)} for date, price in given]
    return [row | {"event": event} for event, row in enumerate(made)]


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("query", ["q11", "q15", "q17", "q18", "q19"])
def test_days_far_apart_in_one_batch_and_equal_prices(query: str, batch: int) -> None:
    """A key has several days, of which one ends because the next begins; and more than ten bids of equal prices."""
    events: Any = {"person": [], "auction": [], "bid": bids(*((n // 3 * 1000 + n / 10, 7 + n % 2) for n in range(40)))}
    windows = {"gap": SECOND} if query == "q11" else {"day": 300 * SECOND}
    given = columns(events, query)
    plan = RunPlan(query, given=given, bins=4, batch=batch, windows=options_of(query, windows), keep=True)
    plan = replace(plan, updates=random_updates(random.Random(batch), plan, 2, 4))
    results = simulate(main, plan, None, plain(plan), workers=2, seed=batch)
    assert rows_of(results) == Counter(oracle.QUERIES[query](events, **windows))


def test_ids_that_do_not_fit_a_pair_are_refused() -> None:
    events: Any = {"bid": [row | {"bidder": 1 << 31} for row in bids((1, 5))]}
    plan = RunPlan("q18", given=columns(events, "q18"), bins=4, batch=1, keep=True)
    with pytest.raises(ValueError, match=r"q18 keeps pairs of ids in 64 bits: bidders must be below 2\^31"):
        simulate(main, plan, None, plain(plan), workers=1, seed=1)


def test_state_goes_with_its_day() -> None:
    """Everything that was kept for a day or a session is forgotten when it is over."""
    for fold in (sessions.end_session, sessions.end_entered, daily.end_trade, daily.end_last_bid, daily.end_ranks,
                 distinct.forget_seen, distinct.end_sums):  # fmt: skip
        assert fold.forget == "over"
    load = RunPlan("q16", Config(seed=1, rate=1000), events=3000, bins=8, batch=100, keep=True)
    load = replace(load, windows={"q16_day": SECOND // 10})
    kept: list[int] = []

    def watch(job: Any, number: int) -> None:
        kept.append(sum(made.handle.store.key_count for made in job.operators.made))

    simulate(main, load, None, None, watch, workers=1, seed=3)
    assert max(kept) < 2000  # 3,000 bids have some 2,500 pairs of id and channel in all, for each kind of id


def test_q10_writes_a_file_for_each_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["run", "q10", "--events", "500", "--rate", "2", "--workers", "1", "--output", str(tmp_path / "log")]
    assert command(options) == 0
    assert "log: 5 files, 460 rows" in capsys.readouterr().out  # 250 seconds
    minutes = sorted(int(folder.name.partition("=")[2]) for folder in (tmp_path / "log").iterdir())
    assert minutes == [minute * 60 * SECOND for minute in range(5)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]  # nothing is left beside it
    assert command(options) == 2
    assert "log exists, and q10 writes a folder of files: name another one" in capsys.readouterr().err
