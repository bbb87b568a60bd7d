"""State is bounded where the meaning of a query bounds it: a long run, watched."""

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
from nexmark.events.config import SECOND, Config
from nexmark.runs.running import Job, RunPlan, main

EPOCHS = 120


def sizes(operator: Any) -> tuple[int, int]:
    """Keys, and post-dated records, of an operator."""
    state = operator.handle.store.home
    return state.key_count, 0 if state.pending is None else len(state.pending)


def watched(plan: RunPlan) -> tuple[list[list[tuple[int, int]]], list[tuple[int, int]], list[int]]:
    """The sizes of each operator after each epoch and at the end, and the bytes given to each one's table."""
    seen: list[list[tuple[int, int]]] = []
    jobs: list[Job] = []

    def watch(job: Job, number: int) -> None:
        jobs[:] = [job]
        seen.append([sizes(operator) for operator in job.operators.made])

    dataflow.execute(_main, plan, watch)
    made = jobs[0].operators.made
    return seen, [sizes(operator) for operator in made], [o.handle.store.table.segments.__sizeof__() for o in made]


async def _main(worker: dataflow.Worker, plan: RunPlan, watch: Callable[[Job, int], None]) -> Any:
    return await main(worker, plan, watch=watch)


# By query, which of its operators are bounded; the others are averages by category and by seller.
BOUNDED = {"q4": [0], "q5": [0], "q6": [0], "q7": [0], "q8": [0]}
WINDOWS: dict[str, dict[str, int]] = {
    "q5": {"q5_window": 6 * SECOND},
    "q7": {"q7_window": 2 * SECOND},
    "q8": {"q8_window": 3 * SECOND},
}


@pytest.mark.parametrize("query", BOUNDED)
def test_a_long_run_needs_no_more_than_a_short_one(query: str) -> None:
    config = Config(seed=1, rate=5000)
    plan = RunPlan(query, config, events=EPOCHS * 2500, bins=16, batch=2500, windows=WINDOWS.get(query, {}))
    seen, left, given = watched(plan)
    for operator in BOUNDED[query]:
        keys, pending = zip(*(sizes[operator] for sizes in seen), strict=True)
        early, late = slice(EPOCHS // 4, EPOCHS // 2), slice(EPOCHS // 2, EPOCHS)
        assert max(keys[early]) > 0
        assert max(keys[late]) <= 1.3 * max(keys[early]) + 16
        assert max(pending[late]) <= 1.3 * max(pending[early]) + 16
        assert left[operator] == (0, 0)  # the input has ended: everything has fired, and is gone
        # What tables ever had room for is in proportion to what they held at most, not to what came by.
        assert given[operator] < 2000 * (max(keys) + 16 * 64)


def test_bids_for_auctions_that_never_come_leave_nothing_behind() -> None:
    """Nine in ten auctions do not come: their bids must not stay."""
    from nexmark.events.generator import Generator
    from nexmark.queries.queries import NEEDS
    from nexmark.runs.sources import with_dates

    made = Generator(Config(seed=2, rate=5000), columns=with_dates(NEEDS["q4"])).events(range(50_000))
    some = made["auction"]["id"] % 10 == 0
    given = {"auction": {name: column[some] for name, column in made["auction"].items()}, "bid": made["bid"]}
    seen, left, _ = watched(RunPlan("q4", given=given, bins=16, batch=1000))
    assert max(keys for (keys, _), _ in seen) < 200
    assert left[0] == (0, 0)
