"""The highest bid of each window within a batch: what query 7 sends on, in the place of every bid. Compiled."""

from __future__ import annotations

import numpy as np

from dataflow.columns import Columns
from dataflow.compiled.kernel import kernel
from nexmark.events.kernels import Ints


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64, int64[::1])")
def _find_highest(dates: Ints, prices: Ints, events: Ints, length: int, first: int, best: Ints) -> int:
    """The row of the highest bid of each window from `first` on, -1 where there is none. Ties to the smaller event."""
    for i in range(dates.size):
        window = dates[i] // length - first
        other = best[window]
        if other < 0 or prices[i] > prices[other] or (prices[i] == prices[other] and events[i] < events[other]):
            best[window] = i
    return 0


def highest_of_batch(bids: Columns, length: int) -> Columns:
    """The highest bid of each window that has any, with `window_end`."""
    dates = np.ascontiguousarray(bids["date_time"])
    first, last = int(dates.min()) // length, int(dates.max()) // length
    if last - first > 16 * len(dates):  # a gap of hours: windows in between are empty, and not worth an array
        middle = (first + last) // 2
        late = dates // length > middle
        return Columns.concat([highest_of_batch(bids.filter(part), length) for part in (~late, late)])
    best = np.full(last - first + 1, -1, np.int64)
    _find_highest(dates, np.ascontiguousarray(bids["price"]), np.ascontiguousarray(bids["event"]), length, first, best)
    windows = np.flatnonzero(best >= 0)
    chosen = bids.take(best[windows])
    return chosen.with_columns({"window_end": (windows + first + 1) * length})
