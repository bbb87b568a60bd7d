"""Memory of segments: addresses and pages are used again, and places without a bin have zeros."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from dataflow.state.memory import allocation, reuse
from dataflow.state.memory.segments import RESERVED, Segments
from dataflow.state.tables.table import DenseTable
from tests.columns.mapped import resident_of


def test_addresses_of_tables_that_are_garbage_are_used_again() -> None:
    """More arrays than there are addresses for, each in a cycle that only the collector can free."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(600):
            garbage: list[Any] = [segments := Segments(2, 1)]
            garbage.append(garbage)
            assert segments.words.nbytes == RESERVED
    finally:
        gc.enable()
        gc.collect()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which pages are there")
def test_large_segments_without_a_bin_have_no_memory_and_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the large page that one written word would cost. But for those that are kept."""
    rows, bins, kept = 1 << 19, 16, 2  # 4 MiB each
    monkeypatch.setattr(reuse, "MOST", (kept * rows + 1) * 8)
    monkeypatch.setattr(reuse, "SECONDS", 3600.0)
    segments = Segments(bins, 1)

    def fill() -> set[int]:
        for bin in range(bins):
            segments.make(bin, rows, rows)
            segments.contents(bin)[:] = bin + 1
        assert all((segments.contents(bin) == bin + 1).all() for bin in range(bins))
        return set(segments.meta[:, allocation.FIRST].tolist())

    places = fill()
    assert len(places) == bins and resident_of(segments.words, bins * rows) == bins << 22
    for round in range(2):
        for bin in range(bins):
            segments.clear(bin)
        assert resident_of(segments.words, bins * rows) == kept << 22
        if round:
            segments.let_go()
            assert resident_of(segments.words, bins * rows) == 0
        assert fill() == places


@pytest.mark.parametrize("kept", [0, 1 << 30])
@pytest.mark.parametrize(("rows", "words"), [(1 << 10, 5), (96, 86), (1 << 14, 5), (1 << 18, 5)])
def test_a_place_that_is_kept_has_zeros_once_its_bin_has_left(
    rows: int, words: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that lie within it are given back or written to, and so are its edges (96 rows of 86 words begin and end in
    the middle of a page); its neighbours are not."""
    monkeypatch.setattr(reuse, "MOST", kept)
    table = DenseTable(4, {"a": ("i8", words)}, 4 * rows)
    keys = np.arange(4 * rows, dtype=np.uint64)
    table["a"][table.rows(keys)] = 7
    for gone in (1, 2):
        table.segments.clear(gone)
        table.departed(gone)
        places = table.rows(keys)  # bins that are not there are made where they were
        assert (table["a"][places] == np.where(keys % 4 == gone, 0, 7)[:, None]).all()
        table["a"][places] = 7
