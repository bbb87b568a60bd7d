"""The three properties of section 3.2 for state in columns: uncompiled under the seeded scheduler, compiled, and on
real processes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import dataflow
from dataflow.testing import simulate
from tests.megaphone import cases
from tests.megaphone.column_cases import check, main, oracle, random_case, run_case

CASES = 240
SHARES = 8


@pytest.mark.parametrize("share", range(SHARES))
def test_correctness_migration_and_completion(share: int) -> None:
    for seed in range(share, CASES, SHARES):
        run_case(seed)


@pytest.mark.parametrize("kind", ["one", "two"])
def test_compiled_folds_give_the_same(kind: str) -> None:
    seeds = [seed for seed in range(CASES) if random_case(seed).kind == kind][:25]
    for seed in seeds:
        case = replace(random_case(seed), compiled=True)
        check(case, simulate(main, case, workers=case.peers, seed=seed))


@pytest.mark.parametrize("workers", [2, 4])
def test_on_real_processes_columns(workers: int) -> None:
    chosen = [seed for seed in range(CASES) if random_case(seed).peers == workers][:6]
    for seed in chosen:
        case = replace(random_case(seed), compiled=seed % 2 == 0)
        check(case, dataflow.execute(main, case, workers=workers))


@pytest.mark.parametrize("workers", [2, 4])
def test_on_real_processes_rows(workers: int) -> None:
    for seed in range(6):
        cases.run_on_processes(seed, workers)


def test_the_oracle_and_the_cases_have_something_in_them() -> None:
    """A case without post-dated records, moves or results would prove nothing."""
    made = [random_case(seed) for seed in range(CASES)]
    assert sum(bool(oracle(case)[0]) for case in made) > CASES // 2
    assert {case.kind for case in made} == {"one", "two", "batches"} and {case.dense for case in made} == {True, False}
    assert sum(len(case.updates) > 2 for case in made) > CASES // 3


@pytest.mark.parametrize(
    ("target", "how"),
    [
        ("megaphone.control.configuration.Configurations.at", lambda self, time: self.latest),
        ("dataflow.state.stores.fold_store.FoldStore.parts", property(lambda self: [self.table])),
        ("megaphone.keys.pinning.PinningStore.put", lambda self, piece: None),
    ],
    ids=["routes by the latest configuration", "leaves pending records behind", "loses what arrives"],
)
def test_a_broken_rule_is_found_out(target: str, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, how)

    def fails(seed: int) -> bool:
        try:
            run_case(seed)
        except (AssertionError, ExceptionGroup, dataflow.DataflowError, KeyError):
            return True
        return False

    assert any(fails(seed) for seed in range(60))
