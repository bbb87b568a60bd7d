"""Every program against its oracle: on 1 to 4 workers, under many seeds, and as users run them."""

from __future__ import annotations

import pytest

from tests.programs.cases import PROGRAMS, check_program, run_case
from tests.programs.running import Executed, Simulated

WORKERS = (1, 2, 3, 4)
SEEDS = {1: 10, 2: 30, 3: 30, 4: 30}  # one worker alone has few interleavings


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_under_every_seed(program: str, workers: int) -> None:
    for seed in range(SEEDS[workers]):
        # Debug mode asserts that every frontier only moves forward, and is slower.
        check_program(program, Simulated(workers, seed, debug=seed % 4 == 0), seed)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_users_run_it(program: str, workers: int) -> None:
    for seed in range(100, 106):
        check_program(program, Executed(workers, debug=seed % 4 == 0), seed)


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_processes(program: str) -> None:
    for workers in (2, 3):
        check_program(program, Executed(workers, in_process=False), seed=200 + workers)


@pytest.mark.parametrize("program", PROGRAMS)
def test_one_input_under_many_schedules(program: str) -> None:
    # The order of things is all that differs between these runs: what they have in common is the answer.
    for seed in range(10):
        check_program(program, Simulated(3, 1000 + seed), seed=7)


def test_random_cases() -> None:
    for seed in range(60):
        run_case(seed)
