"""The migration transition matrix: from histories, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from planners.errors import BadRequest
from planners.mtm.transitions import Transitions, from_history
from tests.planners.bellman import TABLE_4


def test_changes_only_unless_told() -> None:
    history = [2, 2, 3, 3, 2, 4, 3]
    assert from_history(history).matrix.tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 1, 0]]
    stays = from_history(history, staying=True)
    assert stays.probability(2, 2) == stays.probability(2, 3) == stays.probability(2, 4) == pytest.approx(1 / 3)
    assert stays.probability(3, 3) == stays.probability(3, 2) == 0.5


@pytest.mark.parametrize("staying", [False, True])
def test_a_count_that_is_never_left_stays(staying: bool) -> None:
    assert from_history([2, 3, 7, 7], staying).probability(7, 7) == 1
    assert from_history([5], staying).matrix.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("counts", "matrix", "message"),
    [
        ([2, 3], [[0.5, 0.5], [0.5, 0.4]], r"row of 3 nodes sums to 0\.9, not to 1"),
        ([2, 3], [[1.5, -0.5], [0, 1]], "row of 2 nodes.*zero or more"),
        ([2, 3], [[np.nan, 1], [0, 1]], "zero or more"),
        ([2, 3], [[1.0]], "2 node counts need a matrix of 2 rows"),
        ([3, 2], [[1, 0], [0, 1]], "ascending"),
        ([2, 2], [[1, 0], [0, 1]], "ascending"),
        ([0, 2], [[1, 0], [0, 1]], "one or more"),
        ([], np.zeros((0, 0)), "one or more"),
    ],
)
def test_what_is_no_matrix_is_refused(counts: list[int], matrix: object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        Transitions(counts, matrix)  # type: ignore[arg-type]


def test_an_empty_history_and_an_unknown_count_are_refused() -> None:
    with pytest.raises(BadRequest, match="history"):
        from_history([])
    with pytest.raises(BadRequest, match=r"knows \[2, 3, 4\] nodes, not 5"):
        Transitions([2, 3, 4], TABLE_4).probability(2, 5)


def test_samples_follow_the_matrix_and_their_seed() -> None:
    matrix = Transitions([2, 3, 4], TABLE_4)
    drawn = matrix.sample(2, 20_000, seed=1)
    assert drawn == matrix.sample(2, 20_000, seed=1) != matrix.sample(2, 20_000, seed=2)
    assert np.abs(from_history(drawn, staying=True).matrix - matrix.matrix).max() < 0.03
