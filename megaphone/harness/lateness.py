"""How long a worker's records waited: from when each was due to when its epoch was complete.

All records of an epoch are complete at one instant, and were due at even distances. So the number
of records in a bucket of a histogram follows from the bucket's edges by arithmetic: a million records an epoch cost no
more than a hundred.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np

from megaphone.harness.histogram import Histogram, bucket_of, edges_of
from megaphone.harness.schedule import Ints, LoadSchedule

_CHUNK = 512  # epochs at a time: their table of buckets stays in the cache


def charge(histogram: Histogram, schedule: LoadSchedule, worker: int, first: int, done: Ints) -> None:
    """Counts the latency of each record of a worker in the epochs from `first` on, complete at `done`.

    `done` is in nanoseconds since the start, one for each epoch; so is what is counted. No epoch can be complete before
    it has ended.
    """
    for begin in range(0, len(done), _CHUNK):
        _charge_chunk(histogram, schedule, worker, first + begin, done[begin : begin + _CHUNK])


Since = Literal["due", "epoch end"]


def tally(
    schedule: LoadSchedule,
    worker: int,
    done: Ints,
    ranges: Sequence[tuple[int, int, Histogram]],
    since: Since = "due",
) -> None:
    """Charges ranges of epochs that may overlap: (first, end, histogram). Each epoch is looked at once.

    `done` is of all epochs, from 0 on. Records are charged from when they were due, or from the end of their epoch.
    """
    how = {"due": charge, "epoch end": charge_epochs}[since]
    cuts = sorted({cut for begin, end, _ in ranges for cut in (begin, end)})
    pieces = []
    for begin, end in pairwise(cuts):
        pieces.append(Histogram(ranges[0][2].bits))
        how(pieces[-1], schedule, worker, begin, done[begin:end])
    for begin, end, histogram in ranges:
        for piece in pieces[bisect_left(cuts, begin) : bisect_left(cuts, end)]:
            histogram.merge(piece)


def charge_epochs(histogram: Histogram, schedule: LoadSchedule, worker: int, first: int, done: Ints) -> None:
    """As `charge`, but each record waits only from the end of its epoch, when it was sent: what the system adds."""
    epochs = np.arange(first, first + len(done))
    low, high = schedule.shares(epochs, worker)
    histogram.record(done - (epochs + 1) * schedule.epoch_ns, high - low)


def _charge_chunk(histogram: Histogram, schedule: LoadSchedule, worker: int, first: int, done: Ints) -> None:
    epochs = np.arange(first, first + len(done))
    low, high = schedule.shares(epochs, worker)
    some = high > low
    if not some.any():
        return
    epochs, low, high, waited = epochs[some], low[some], high[some], (done - epochs * schedule.epoch_ns)[some]
    longest, shortest = waited - schedule.offset(low, epochs), waited - schedule.offset(high - 1, epochs)
    if int(shortest.min()) < 0:
        epoch = int(epochs[int(shortest.argmin())])
        raise ValueError(f"epoch {epoch} is said to have been complete before its last record was due")
    start, last = bucket_of(shortest, histogram.bits), bucket_of(longest, histogram.bits)
    # A row for each epoch, a column for each edge of the buckets from its shortest to its longest wait.
    columns = np.arange(int((last - start).max()) + 2)
    edges = _lower_edges(histogram.bits)[start[:, None] + columns]
    # A record waited at least `edge` if it was due at `waited - edge` or before.
    offsets = np.clip(waited[:, None] - edges, -1, schedule.epoch_ns - 1)
    at_least = np.clip(schedule.due_by(offsets, epochs[:, None]), low[:, None], high[:, None])
    counts = at_least[:, :-1] - at_least[:, 1:]
    buckets = start[:, None] + columns[:-1]
    base = int(start.min())
    total = np.zeros(int(buckets.max()) - base + 1, np.int64)
    np.add.at(total, (buckets - base).ravel(), counts.ravel())
    histogram.add(base, total, int(shortest.min()), int(longest.max()))


@cache
def _lower_edges(bits: int) -> Ints:
    """Of all buckets that a value of 64 bits can be in."""
    lower, _ = edges_of(np.arange((63 - bits) << bits), bits)
    return lower
