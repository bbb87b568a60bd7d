"""The proof can fail: each broken variant is caught within a few programs that could show it."""

from __future__ import annotations

import itertools

import pytest

from tests.crashes.driving import Case, random_plan, random_programs
from tests.crashes.mutants import MUTANTS
from tests.engine.harness import failsafe

FEW = 150


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = MUTANTS[name]
    seeds = list(itertools.islice(filter(fault.concerns, range(fault.start, 100_000)), FEW))
    with failsafe(120):
        fault.patch(monkeypatch)
        found = next((seed for seed in seeds if fails(seed)), None)
        assert found is not None, f"{FEW} programs did not find it"
        monkeypatch.undo()
        assert not fails(found), "the fault is not to blame"


def fails(seed: int) -> bool:
    """Whether a program shows wrong rows, fails an assertion of the engine, or is stuck."""
    try:
        Case(random_programs(seed), random_plan(seed), seed).run()
    except Exception:
        return True
    return False
