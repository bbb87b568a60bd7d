"""A sample of kills of real processes; `make soak` goes on with others."""

from __future__ import annotations

import pytest

from tests.kills.kills import PROGRAMS, run_case


@pytest.mark.parametrize("seed", range(len(PROGRAMS)))
def test_killed_and_started_again(seed: int) -> None:
    run_case(seed)
