"""Random programs x joins x leaves x migrations, against plain Python and the checker of frontiers."""

from __future__ import annotations

import pytest

from tests.members.mutants import MUTANTS, not_held_back, old_membership
from tests.members.running import run_case

CASES, EACH = 440, 22  # and 60 in test_elastic


@pytest.mark.parametrize("first", range(0, CASES, EACH))
def test_workers_come_and_go_and_nothing_is_lost(first: int) -> None:
    """Every result is there once, whoever took part."""
    joined = done = 0
    for seed in range(first, first + EACH):
        case = run_case(seed)
        joined += bool(case.joined)
        done += sum(change.state == "done" for change in case.changes)
    assert joined > EACH // 4 and done > EACH // 2, "the programs do what they are for"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_caught(mutant: object) -> None:
    """By wrong results, a frontier that is ahead, or a run that does not end."""
    assert callable(mutant)
    for seed in range(60):
        try:
            with mutant():
                run_case(seed, often=0.2, simple=mutant in (not_held_back, old_membership))
        except Exception:  # whatever it is: it was noticed
            return
    raise AssertionError(f"{mutant.__name__} was not noticed")
