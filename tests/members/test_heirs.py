"""Who goes on with a partition that was far ahead: it knows where that was, and sends nothing before it."""

from __future__ import annotations

import pytest

from tests.members.elastic_mutants import heirs_behind, history_forgotten
from tests.members.heirs import is_right


@pytest.mark.parametrize("timed", [True, False])
def test_a_snapshot_has_the_position_of_long_ago(timed: bool) -> None:
    assert all(is_right(timed, seed) for seed in range(4))


def test_an_heir_without_its_history_is_caught() -> None:
    with history_forgotten():
        assert not is_right(timed=True, seed=0)


def test_an_heir_that_sends_before_the_change_is_caught() -> None:
    with heirs_behind():
        assert not is_right(timed=False, seed=0)
