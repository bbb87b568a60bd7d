"""The fuzzer can fail: each fault is found within a few programs that could show it."""

from __future__ import annotations

import itertools

import pytest

from tests.engine.harness import failsafe
from tests.fuzz.generating import random_program
from tests.fuzz.mutants import MUTANTS, relevant
from tests.fuzz.running import Way

FEW = 40


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = itertools.islice((seed for seed in range(1, 1000) if shows(name, seed)), FEW)
    with failsafe(120):
        MUTANTS[name][0](monkeypatch)
        found = next((seed for seed in seeds if fails(seed)), None)
        assert found is not None, f"{FEW} programs did not find it"
        monkeypatch.undo()
        assert not fails(found), "the fault is not to blame"


def shows(name: str, seed: int) -> bool:
    """Whether a seed's program could show the fault, and is quick to run."""
    program = random_program(seed)
    return program.peers > 1 and relevant(name, program) and not program.compiled


def fails(seed: int) -> bool:
    """Whether a program fails: by wrong rows, an assertion of the engine, or because it is stuck."""
    try:
        Way("starving" if seed % 2 else "simulated", seed)(random_program(seed))
    except Exception:
        return True
    return False
