"""Every query gives the oracle's rows whatever the number of bins, and wherever these are: few, as many as usual, so
many that hash tables share segments, and as many as there may be."""

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from dataflow.testing import simulate
from nexmark import oracle
from nexmark.config import Config
from nexmark.running import Plan, main
from tests.nexmark.runs import WINDOWS, answer, options_of, plain, random_updates, rows_of

BINS = [2, 1 << 8, 1 << 15, 1 << 20]
EVENTS, BATCH = 700, 100


def plan_of(query: str) -> Plan:
    config = Config(seed=4, rate=100, in_flight=20, active_people=20, auctions=10, bids=40)
    windows = options_of(query, WINDOWS.get(query, {}))
    return Plan(query, config, events=EVENTS, batch=BATCH, windows=windows, keep=True)


@cache
def expected(query: str) -> Any:
    return answer(plan_of(query), WINDOWS.get(query, {}))


@pytest.mark.parametrize("query", oracle.QUERIES)
def test_native(query: str) -> None:
    plan = replace(plan_of(query), variant="native")
    assert expected(query)
    assert rows_of(simulate(main, plan, None, plain(plan), workers=2, seed=1)) == expected(query)


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("query", oracle.QUERIES)
def test_migratable_with_random_migrations(query: str, bins: int) -> None:
    """Maps move every second bin or so: with 2^20 bins one of them is enough."""
    plan = replace(plan_of(query), bins=bins)
    plan = replace(plan, updates=random_updates(random.Random(bins), plan, 2, 8 if bins < 1 << 15 else 3))
    assert rows_of(simulate(main, plan, None, plain(plan), workers=2, seed=bins)) == expected(query)
