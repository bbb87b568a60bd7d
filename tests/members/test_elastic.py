"""Sources, snapshots and crashes while workers come and go: the outside sees each row once, whoever took part."""

from __future__ import annotations

import pytest

from tests.engine.harness import failsafe
from tests.members.crashing import run_elastic, states
from tests.members.elastic_mutants import MUTANTS

CASES, EACH = 60, 10


@pytest.mark.parametrize("first", range(0, CASES, EACH))
def test_workers_come_and_go_through_crashes(first: int) -> None:
    with failsafe(300):
        cases = [run_elastic(seed) for seed in range(first, first + EACH)]
    assert states(cases)["done"] > EACH // 2, "the programs do what they are for"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_caught(mutant: object) -> None:
    """By wrong rows, a right that is not there, or a run that does not end."""
    assert callable(mutant)
    for seed in range(1, 90):
        if seed % 6:
            try:
                with mutant():
                    run_elastic(seed, often=0.0)
            except Exception:  # whatever it is: it was noticed
                return
    raise AssertionError(f"{mutant.__name__} was not noticed")


def test_a_change_is_put_off_if_all_inputs_end_while_it_is_decided() -> None:
    """Found by `python -m tests.soak --kind elastic`: no cut could be announced any more at its time."""
    run_elastic(67977966882549)
