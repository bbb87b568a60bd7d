"""Every query gives the oracle's rows whatever the number of bins, and wherever these are: few, as many as usual, so
many that hash tables share segments, and as many as there may be."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import megaphone
from dataflow.testing import simulate
from nexmark.events.config import Config
from nexmark.queries.queries import PAPERS
from nexmark.runs.running import RunPlan, main
from tests.nexmark.runs import WINDOWS, answer, options_of, plain, rows_of

BINS = [2, 1 << 8, 1 << 15, 1 << 20]
EVENTS, BATCH = 700, 100


def plan_of(query: str) -> RunPlan:
    config = Config(seed=4, rate=100, in_flight=20, active_people=20, auctions=10, bids=40)
    windows = options_of(query, WINDOWS.get(query, {}))
    return RunPlan(query, config, events=EVENTS, batch=BATCH, windows=windows, keep=True)


@cache
def expected(query: str) -> Any:
    return answer(plan_of(query), WINDOWS.get(query, {}))


@pytest.mark.parametrize("query", PAPERS)
def test_native(query: str) -> None:
    plan = replace(plan_of(query), variant="native")
    assert expected(query)
    assert rows_of(simulate(main, plan, None, plain(plan), workers=2, seed=1)) == expected(query)


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("query", PAPERS)
def test_migratable_with_random_migrations(query: str, bins: int) -> None:
    """Each puts all bins somewhere: half of them move."""
    plan = replace(plan_of(query), bins=bins)
    rng = np.random.default_rng(bins)
    times = [plan.source().time(number) for number in (1, 3, 4)]
    updates = [(time, megaphone.Moves(np.arange(bins), rng.integers(0, 2, bins))) for time in times]
    plan = replace(plan, updates=updates)
    assert rows_of(simulate(main, plan, None, plain(plan), workers=2, seed=bins)) == expected(query)
