"""Values that travel between processes arrive alike.

These tests stand apart from the others of values, which import hypothesis: workers import the module of their main, and
trio and hypothesis warn when they are imported in that order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dataflow
from tests.comm.alike import alike
from tests.comm.family import ALIKE


def test_results_and_records_of_two_workers_are_alike() -> None:
    async def main(worker: dataflow.Worker) -> list[Any]:
        from tests.comm import family  # here: what main brings along is pickled, which loses types that numpy has twice

        arrived: list[Any] = []
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            stream.exchange(lambda pair: pair[0]).inspect(lambda _, pair: arrived.append(pair))
        handle.send([(1 - worker.index, value) for value in family.ALIKE])
        return arrived

    expected = [[(index, value) for value in ALIKE] for index in (0, 1)]
    assert alike(dataflow.execute(main, workers=2), expected)


def test_a_result_that_cannot_come_back_is_refused_by_name() -> None:
    async def main(worker: dataflow.Worker) -> Any:
        return np.ma.array([1, 3, 2], mask=[False, False, True])

    with pytest.raises(TypeError, match="a MaskedArray cannot be sent"):
        dataflow.execute(main, workers=2)
