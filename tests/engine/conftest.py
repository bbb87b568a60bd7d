"""Every test that asks for `run` is run in each way that there is."""

from __future__ import annotations

import pytest

from tests.engine.harness import RUNS, TOGETHER, Run


@pytest.fixture(params=RUNS, ids=str)
def run(request: pytest.FixtureRequest) -> Run:
    """One to three workers, really and under several seeds."""
    way = request.param
    assert isinstance(way, Run)
    return way


@pytest.fixture(params=TOGETHER, ids=str)
def together(request: pytest.FixtureRequest) -> Run:
    """Two or three workers, really and under several seeds."""
    way = request.param
    assert isinstance(way, Run)
    return way
