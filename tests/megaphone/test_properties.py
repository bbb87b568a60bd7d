"""The three properties of section 3.2, over random streams, configurations, times and schedules."""

import pytest

from tests.megaphone.cases import run_case

CASES = 600
SHARES = 12


@pytest.mark.parametrize("share", range(SHARES))
def test_correctness_migration_and_completion(share: int) -> None:
    for seed in range(share, CASES, SHARES):
        run_case(seed)
