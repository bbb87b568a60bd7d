"""Bids for each auction in each slide of time, within a batch: what query 5 sends on, in the place of every bid.

Compiled. Auctions of a batch are near each other, and so are its dates: a table of all combinations is small, and
counting in it takes no hashing. Where it would not be small, every bid counts for itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dataflow.columns import Columns
from dataflow.compiled.kernel import kernel
from nexmark.events.kernels import Ints

_MOST = 8  # cells for each bid, at most


@kernel("int64(int64[::1], int64[::1], int64, int64, int64, int64, int32[::1])")
def _count(
    auctions: Ints, dates: Ints, slide: int, first: int, least: int, width: int, cells: NDArray[np.int32]
) -> int:
    """Counts each bid in its cell; how many cells are not empty."""
    begin, base, filled = np.int64(0), np.int64(0), 0
    end = begin  # of the slide of the bid before: most bids are in the same one, and need no division
    for i in range(auctions.size):
        if dates[i] < begin or dates[i] >= end:
            number = dates[i] // slide
            begin, end = number * slide, (number + 1) * slide
            base = (number - first) * width - least
        cell = base + auctions[i]
        filled += cells[cell] == 0
        cells[cell] += 1
    return filled


@kernel("int64(int32[::1], int64, int64, int64, int64, int64[::1], int64[::1], int64[::1])")
def _collect(
    cells: NDArray[np.int32], slide: int, first: int, least: int, width: int, auctions: Ints, ends: Ints, counts: Ints
) -> int:
    """The cells that are not empty."""
    place = 0
    for row in range(cells.size // width):
        end = (first + row + 1) * slide
        for column in range(width):
            if cells[row * width + column]:
                auctions[place], ends[place], counts[place] = least + column, end, cells[row * width + column]
                place += 1
    return place


def counts_of_batch(bids: Columns, slide: int) -> dict[str, Ints]:
    """`auction`, `pane_end` (the end of the slide) and `bids` for each pair that occurs; a pair may occur again.

    >>> batch = Columns({"auction": [7, 9, 7, 7], "date_time": [3, 4, 9, 10]})
    >>> {name: column.tolist() for name, column in counts_of_batch(batch, 10).items()}
    {'auction': [7, 9, 7], 'pane_end': [10, 10, 20], 'bids': [2, 1, 1]}
    """
    auctions = np.ascontiguousarray(bids["auction"], np.int64)
    dates = np.ascontiguousarray(bids["date_time"], np.int64)
    least, width = int(auctions.min()), int(auctions.max()) - int(auctions.min()) + 1
    first, panes = int(dates.min()) // slide, int(dates.max()) // slide - int(dates.min()) // slide + 1
    if width * panes > _MOST * len(auctions) + 1024:
        return {"auction": auctions, "pane_end": (dates // slide + 1) * slide, "bids": np.ones(len(dates), np.int64)}
    cells = np.zeros(width * panes, np.int32)
    filled = int(_count(auctions, dates, slide, first, least, width, cells))
    auction, end, count = (np.empty(filled, np.int64) for _ in range(3))
    _collect(cells, slide, first, least, width, auction, end, count)
    return {"auction": auction, "pane_end": end, "bids": count}
