"""The programs of the engine's tests on 2 to 4 processes: the same answers as everywhere else."""

from __future__ import annotations

import pytest

from tests.engine.harness import failsafe
from tests.programs.cases import PROGRAMS, check_program
from tests.programs.running import Executed


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_processes(program: str) -> None:
    with failsafe(60):
        for seed, workers in enumerate((2, 3, 4), start=300):
            check_program(program, Executed(workers, debug=seed % 5 == 0, in_process=False), seed)
