"""The three properties again where bins share the segments of hash tables, as very many do: a bin leaves row by row,
and its rows go in among those of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dataflow
from dataflow.columns import table
from dataflow.testing import simulate
from megaphone import routing
from tests.megaphone import column_cases, pin_cases
from tests.megaphone import test_joins as join_cases


@pytest.fixture(params=[2, 4], ids=["two segments", "four segments"], autouse=True)
def few_segments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST", request.param)
    monkeypatch.setattr(routing, "PIECE", 8)  # words: a bin goes in several messages


def test_correctness_migration_and_completion() -> None:
    for seed in range(60):
        column_cases.run_case(seed)


def test_with_pinned_keys() -> None:
    for seed in range(40):
        pin_cases.run_case(seed)
        pin_cases.run_join(seed)


def test_joins() -> None:
    for seed in range(30):
        case = join_cases.random_case(seed)
        join_cases.check(case, simulate(join_cases.main, case, False, workers=case.peers, seed=seed))


def test_compiled_and_on_processes() -> None:
    hashed = [seed for seed in range(100) if not column_cases.random_case(seed).dense]
    for seed in hashed[:8]:
        case = replace(column_cases.random_case(seed), compiled=True)
        column_cases.check(case, simulate(column_cases.main, case, workers=case.peers, seed=seed))
        column_cases.check(case, dataflow.execute(column_cases.main, case, workers=case.peers))
