"""A few changes of the workers under load, and a kill; `make soak` goes on with fifty."""

from __future__ import annotations

from tests.kills.scaled import run_case


def test_scaled_and_killed() -> None:
    became = run_case(1, changes=6, every=6)
    assert became["killed"] == 1 and became["done"] >= 5
