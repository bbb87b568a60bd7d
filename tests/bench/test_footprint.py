"""What counts as memory that a migration adds."""

import gc
import sys

import numpy as np
import pytest

from bench.footprint import Footprint, tables
from dataflow.state.tables.table import DenseTable

MIB = 1 << 20


@pytest.mark.parametrize(
    ("before", "peak", "tables_before", "tables_after", "received", "beyond"),
    [
        (100, 130, 50, 70, 20, 10),  # what came is excused
        (100, 130, 50, 50, 20, 30),  # not if it went where there was room already: then something else has grown
        (100, 130, 50, 80, 20, 10),  # nor what tables took besides
        (100, 130, 50, 30, 0, 30),  # who sends has no excuse
        (100, 100, 50, 30, 0, 0),
    ],
)
def test_only_state_that_came_is_excused(
    before: int, peak: int, tables_before: int, tables_after: int, received: int, beyond: int
) -> None:
    seen = Footprint(before, peak, peak, tables_before, tables_after, received)
    assert seen.beyond == beyond


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what memory is resident")
def test_tables_are_told_from_other_memory() -> None:
    gc.collect()  # other tests' tables, so that they do not go in between
    before = tables()
    other = np.ones(16 * MIB // 8)
    table = DenseTable(2, {"n": "i8"}, 8 * MIB // 8)
    table["n"][table.rows(np.arange(MIB, dtype=np.uint64))] = 1
    assert 8 * MIB <= tables() - before <= 12 * MIB
    assert other.all()
