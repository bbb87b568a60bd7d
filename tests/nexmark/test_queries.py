"""For every query: native, migratable, and migratable with random migrations give what the sequential oracle gives."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import dataflow
from dataflow.testing import simulate
from nexmark.answers import oracle
from nexmark.events.config import SECOND, Config
from nexmark.events.vocabulary import dictionary
from nexmark.queries.hot_auctions import pane_of
from nexmark.queries.queries import PAPERS
from nexmark.runs.measuring import EpochFeed
from nexmark.runs.running import Job, RunPlan, RunResult, main, readable
from tests.nexmark.cases import TRACE, Row, adverse_inputs
from tests.nexmark.runs import answer, columns, options_of, plain, random_plan, random_updates, rows_of
from tests.nexmark.test_oracle import TRACE_ANSWERS

QUERIES = PAPERS  # test_community.py has the others


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("query", QUERIES)
def test_random_schedules(query: str, workers: int) -> None:
    """Uncompiled folds; events, windows, batches, bins, groups out of order and migrations are all random."""
    for seed in range(3):
        plan, windows = random_plan(query, seed, workers, 250)
        results = simulate(main, plan, None, plain(plan), workers=workers, seed=seed)
        assert rows_of(results) == answer(plan, windows), f"seed {seed} of {plan}"


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("query", QUERIES)
def test_compiled_folds_on_worker_processes(query: str, workers: int) -> None:
    plan, windows = random_plan(query, 10 + workers, workers, 12_000)
    expected = answer(plan, windows)
    assert expected
    moved = replace(plan, variant="migratable")
    moved = replace(moved, updates=random_updates(random.Random(query), moved, workers, 20))
    assert rows_of(dataflow.execute(main, moved, workers=workers)) == expected


@pytest.mark.parametrize("query", QUERIES)
def test_variants_and_sizes_of_batches_make_no_difference(query: str) -> None:
    """Compiled, on workers that share this process: quicker to start."""
    plan = RunPlan(query, Config(seed=5, rate=2000, group=10), events=20_000, bins=16, keep=True)
    expected = answer(plan, {})
    assert expected
    for variant, workers, batch in (("native", 1, 1000), ("native", 4, 20_000), ("migratable", 2, 700)):
        this = replace(plan, variant=variant, batch=batch)
        assert rows_of(dataflow.execute(main, this, workers=workers, in_process=True)) == expected, this


@pytest.mark.parametrize("seed", range(3))
def test_slides_are_cut_into_panes_where_times_are_fine(seed: int) -> None:
    """Query 5 then keeps the largest total of each bin; bins that come and go, and ties, must not mislead it."""
    windows = {"window": 3 * SECOND, "slide": SECOND}
    config = Config(seed=seed, rate=100, in_flight=30, hot_auction_ratio=2 if seed else 1)
    plan = RunPlan("q5", config, events=700, bins=4, batch=2, windows=options_of("q5", windows), keep=True)
    grid = plan.source().grid
    assert pane_of(windows["window"], windows["slide"], grid) < SECOND
    plan = replace(plan, updates=random_updates(random.Random(seed), plan, 2, 60))
    assert rows_of(simulate(main, plan, None, plain(plan), workers=2, seed=seed)) == answer(plan, windows)


async def late(worker: dataflow.Worker, plan: RunPlan, seed: int) -> RunResult:
    """As workers that are late: several epochs are sent at the time of the first, the same ones by all."""
    source, chance = plan.source(), random.Random(seed)
    job = Job(worker, plan, source.grid, plain(plan))
    feed = EpochFeed(job)
    job.configure(plan.updates if worker.index == 0 else ())
    number = 0
    job.advance_to(source.time(0))
    while number < source.epochs:
        together = range(number, min(source.epochs, number + chance.choice([1, 1, 4, 9])))
        for each in together:
            feed.add(source.share(each, worker.index, worker.peers))
        number = together.stop
        if number < source.epochs:
            feed.advance_to(source.time(number))
        await worker.room()
    feed.advance_to(source.time(source.epochs - 1) + source.grid)
    job.close()
    await job.probe.wait_done()
    return RunResult(plan.events, job.rows, 0, 0, 0, 0, [row for batch in job.kept for row in readable(batch).rows()])


@pytest.mark.parametrize("query", QUERIES)
def test_workers_that_are_late(query: str) -> None:
    for seed in range(3):
        config = Config(seed=seed, rate=1000, in_flight=5, auctions=10, bids=40)
        plan = RunPlan(query, config, events=1000, bins=8, batch=10, keep=True)
        plan = replace(plan, updates=random_updates(random.Random(seed), plan, 2, 10))
        assert rows_of(simulate(late, plan, seed, workers=2, seed=seed)) == answer(plan, {}), f"seed {seed}"


def in_words(events: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """With names that the generator knows, as columns have codes for no others."""
    known = dict(zip(("ann", "bob", "cleo"), dictionary("name"), strict=False))
    return {**events, "person": [row | {"name": known[row["name"]]} for row in events["person"]]}


GIVEN = {"the trace": TRACE, **adverse_inputs()}


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("query", QUERIES)
def test_the_trace_and_adverse_inputs(query: str, name: str) -> None:
    events = in_words(GIVEN[name])
    expected = oracle.QUERIES[query](events)
    for seed, (variant, batch) in enumerate([("native", 3), ("migratable", 1), ("migratable", 1000)]):
        plan = RunPlan(query, given=columns(events, query), variant=variant, bins=4, batch=batch, keep=True)
        if variant == "migratable":
            plan = replace(plan, updates=random_updates(random.Random(seed), plan, 2, 4))
        results = simulate(main, plan, None, plain(plan), workers=2, seed=seed)
        assert rows_of(results) == Counter(expected), f"seed {seed}, {variant}, batches of {batch}"


def test_the_trace_as_it_was_worked_out_by_hand() -> None:
    """The same answers as the oracle's, spelled out: those who doubt the oracle can read them."""
    known = dict(zip(("ann", "bob", "cleo"), dictionary("name"), strict=False))
    for query, rows in TRACE_ANSWERS.items():
        plan = RunPlan(query, given=columns(in_words(TRACE), query), bins=4, batch=2, keep=True)
        results = simulate(main, plan, None, plain(plan), workers=2, seed=1)
        assert rows_of(results) == Counter(tuple(known.get(value, value) for value in row) for row in rows)


@pytest.mark.parametrize("query", QUERIES)
def test_events_of_one_millisecond_and_of_a_single_epoch(query: str) -> None:
    plan = RunPlan(query, Config(seed=3, rate=1_000_000), events=1000, bins=4, keep=True)
    for batch in (10, 5000):
        this = replace(plan, batch=batch)
        assert rows_of(simulate(main, this, None, plain(this), workers=2, seed=batch)) == answer(this, {})


def test_order_of_q4_and_q6_rows(tmp_path: Any) -> None:
    """What is sorted by (expires, auction) at each key comes out in that order on one worker."""
    for query in ("q4", "q6"):
        plan = RunPlan(query, Config(seed=8, rate=500), events=600, bins=4, batch=50, keep=True)
        (result,) = simulate(main, plan, None, plain(plan), workers=1, seed=2)
        expected: dict[Any, list[Any]] = {}
        got: dict[Any, list[Any]] = {}
        for row in answer_in_order(plan):
            expected.setdefault(row[0], []).append(row[1])
        for key, average in result.kept:
            got.setdefault(key, []).append(average)
        assert got == expected


def answer_in_order(plan: RunPlan) -> list[Any]:
    from nexmark.events.generator import Generator
    from nexmark.events.rows import rows

    made = Generator(plan.config).events(range(plan.events))
    return oracle.QUERIES[plan.query]({kind: rows(table) for kind, table in made.items()})
