"""Programs under a limit: what the tests of backpressure have in common."""

from __future__ import annotations

from typing import Any

import pytest

import dataflow
from tests.engine.harness import failsafe

BATCH = 10
WAYS = [pytest.param(True, id="in one process"), pytest.param(False, id="processes")]


def run(main: Any, *args: Any, workers: int, limit: int, in_process: bool) -> list[Any]:
    """What main returns on each worker."""
    with failsafe(15.0):
        return dataflow.execute(main, *args, workers=workers, limit=limit, in_process=in_process)


def pass_on(input: Any, output: Any) -> None:
    """An operator that passes batches on as they are."""
    for message, batch in input:
        output.give(message, batch)
