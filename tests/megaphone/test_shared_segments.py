"""The three properties again where bins share the segments of hash tables, as very many do: a bin leaves row by row,
and its rows go in among those of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dataflow
from dataflow.state.tables import table
from dataflow.testing import simulate
from tests.megaphone import column_cases, pin_cases
from tests.megaphone import test_joins as join_cases
from tests.patched import Patched


@pytest.fixture(params=[2, 4], ids=["two segments", "four segments"], autouse=True)
def few_segments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    values = {
        f"{table.__name__}.MOST": request.param,
        "megaphone.router.routing.PIECE": 8,  # words: a bin goes in several messages
    }
    for name, value in values.items():
        monkeypatch.setattr(name, value)
    return values


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


def test_compiled_and_on_processes(few_segments: dict[str, int]) -> None:
    hashed = [seed for seed in range(100) if not column_cases.random_case(seed).dense]
    for seed in hashed[:8]:
        case = replace(column_cases.random_case(seed), compiled=True)
        column_cases.check(case, simulate(column_cases.main, case, workers=case.peers, seed=seed))
        column_cases.check(case, dataflow.execute(Patched(column_cases.main, few_segments), case, workers=case.peers))
