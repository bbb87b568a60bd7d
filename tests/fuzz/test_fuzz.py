"""A sample of random programs, in every way of running them; `make soak` goes on with others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dataflow.testing import Starving, simulate
from tests.engine.harness import failsafe
from tests.fuzz import generating
from tests.fuzz.direct import evaluate
from tests.fuzz.generating import random_program
from tests.fuzz.mutants import MUTANTS
from tests.fuzz.running import Way, WrongRows, main, random_way
from tests.fuzz.shrinking import shrink

BLOCK = 10


@pytest.mark.parametrize("start", range(10_001, 10_051, BLOCK))
def test_a_sample_of_programs(start: int) -> None:
    with failsafe(120):
        for seed in range(start, start + BLOCK):
            way = random_way(seed)
            program = replace(random_program(seed), compiled=False)  # to compile would take longer than all the rest
            (Way("simulated", seed) if way.kind == "processes" else way)(program)


@pytest.mark.parametrize("seed", [20_003, 20_008])
def test_programs_on_processes(seed: int) -> None:
    program = replace(random_program(seed), compiled=False)
    assert program.peers > 1
    with failsafe(60):
        Way("processes", seed)(program)


def test_a_program_with_compiled_folds() -> None:
    def only_one_fold(seed: int) -> bool:
        kinds = {node.kind for flow in random_program(seed).flows for node in flow.nodes}
        return "ordered" in kinds and not kinds & {"machine", "two_folds"}

    seed = next(filter(only_one_fold, range(1, 500)))
    with failsafe(120):
        Way("simulated", seed)(replace(random_program(seed), compiled=True))


def test_programs_get_everywhere() -> None:
    # A fuzzer whose programs are all alike, or empty, would find nothing.
    kinds: Counter[str] = Counter()
    migrating: Counter[str] = Counter()
    updates: Counter[object] = Counter()
    results = 0
    for seed in range(400):
        program = random_program(seed)
        results += sum(
            len(records) for flow in evaluate(program) for bags in flow for bag in bags for records in bag.values()
        )
        for flow in program.flows:
            kinds.update(node.kind for node in flow.nodes)
            migrating.update(f"{node.kind} of {node.form}" for node in flow.nodes if node.control is not None)
            updates.update(update.what[0] for control in flow.controls for update in control.updates)
    everything = {
        *generating.ON_ROWS,
        *generating.ON_COLUMNS,
        *generating.MIGRATING_ROWS,
        *generating.MIGRATING_COLUMNS,
    }
    assert everything <= set(kinds) and {"replay", "windows", "feedback", "partition", "concat"} <= set(kinds)
    assert min(kinds.values()) >= 15 and min(migrating.values()) >= 15 and len(migrating) == 8
    assert set(updates) == {"move", "moves", "assign", "pin", "unpin", "migrate"}
    assert results > 100 * 400


def test_a_failure_comes_with_a_small_program(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["concat_drops_an_input"][0](monkeypatch)
    way = Way("simulated", 2)
    with pytest.raises(WrongRows) as raised:
        way(random_program(2))
    smaller = shrink(random_program(2), way, raised.value)
    with pytest.raises(WrongRows):
        way(smaller)
    assert len(str(smaller).splitlines()) < len(str(random_program(2)).splitlines()) / 2
    assert "concat" in str(smaller)


def test_starving_replays_and_differs() -> None:
    program = replace(random_program(3), compiled=False)

    def trace(starve: bool) -> list[tuple[str, ...]]:
        turns: list[tuple[str, ...]] = []
        scheduler = Starving() if starve else None
        simulate(main, program, workers=program.peers, seed=5, trace=turns, scheduler=scheduler)
        return turns

    assert trace(starve=True) == trace(starve=True) != trace(starve=False)
