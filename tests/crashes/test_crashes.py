"""A sample of random programs that crash; `make soak` goes on with others."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crashes import generating
from tests.crashes.driving import Case, random_plan, random_programs, run_case
from tests.crashes.generating import random_program
from tests.engine.harness import failsafe

BLOCK = 50


@pytest.mark.parametrize("start", range(0, 500, BLOCK))
def test_a_sample_of_crashes(start: int) -> None:
    with failsafe(300):
        for seed in range(start, start + BLOCK):
            run_case(seed)


# Found by soaks. An operator that asks was run while its worker's tasks had ended: only in simulations.
@pytest.mark.parametrize("seed", [262637333688065])
def test_what_failed_once(seed: int) -> None:
    with failsafe(60):
        run_case(seed)


def test_programs_get_everywhere() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(1000):
        kinds.update(random_program(seed).kinds)
    everything = {*generating.ON_ROWS, *generating.ON_COLUMNS, *generating.KEEPING_ROWS, *generating.KEEPING_COLUMNS}
    everything |= {*generating.MIGRATING_ROWS, *generating.MIGRATING_COLUMNS, "partition", "later", "saves"}
    everything |= {*generating.timed_meaning.TIMED}
    everything |= {"source", "by hand", "append sink", "keyed sink", "move", "moves", "assign", "pin", "unpin"}
    everything |= {"split", "merge"}
    assert everything <= set(kinds), everything - set(kinds)
    assert min(kinds.values()) >= 8, kinds


def test_crashes_get_everywhere() -> None:
    happened: Counter[str] = Counter()
    with failsafe(120):
        for seed in range(5000, 5060):
            case = Case(random_programs(seed), random_plan(seed), seed)
            case.run()
            happened += case.happened
    assert happened["crashed while a manifest was written"] and happened["crashed while a file was written"], happened
    assert happened["after a snapshot"] > 30 and happened["before a snapshot"] and happened["ended"] > 10, happened
