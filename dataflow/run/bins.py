"""Where the shards of an operator are and what they cost, in at most so many cells: for a picture of any number.

A cell has neighbouring groups of shards (those that move as one), on one worker or on several: an entry is the part of
a cell that one worker has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dataflow.build.hooks import Stateful

MOST_KEYS = 20
MOST_CELLS = 1 << 14
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BinsReading:
    """The shards of one operator from `first` to `last`, in cells. The last five arrays are by entry."""

    operator: str
    movable: bool
    shards: int  # in all
    groups: int  # in all
    members: tuple[int, ...]  # the workers that can have shards
    first: int
    last: int
    seconds: float  # how long the interval is in which records were counted; 0 if nobody counts
    cell_first: Numbers  # by cell, its first shard
    cell_last: Numbers
    cell: Numbers
    worker: Numbers
    bins: Numbers  # groups of shards
    bytes: Numbers
    records: Numbers  # in the interval
    heavy: tuple[tuple[str, int, int, int], ...]  # a key as text, its records, its worker, its shard; heaviest first


def read_bins(stateful: Stateful, worker: int, first: int, last: int, cells: int) -> BinsReading:
    """Of the shards from one to another, in at most so many cells. O(shards)."""
    shards = stateful.durable.shards
    first, last = max(0, min(first, shards - 1)), max(0, min(last, shards - 1))
    counts = np.ones(shards, np.int64) if stateful.placement is None else stateful.placement.groups()
    firsts = np.cumsum(counts) - counts
    shown = np.flatnonzero((firsts + counts > first) & (firsts <= last))
    starts = firsts[shown]
    members: tuple[int, ...] = (worker,)
    owners = np.full(len(shown), worker, np.int64)
    if stateful.placement is not None:
        owners = stateful.placement.workers()[starts].astype(np.int64)
        members = tuple(stateful.placement.members)
    seconds, sizes, records = _costs(stateful)
    each = -(-len(shown) // max(1, min(cells, MOST_CELLS)))
    cell_of = np.arange(len(shown)) // max(1, each)
    amount = int(cell_of[-1]) + 1
    width = int(owners.max(initial=0)) + 1
    place = cell_of * width + owners
    grouped = [_by_group(values, starts, counts[shown]) for values in (sizes, records)]
    if stateful.placement is None:
        present = np.bincount(place, weights=grouped[0] > 0, minlength=amount * width)
    else:
        present = np.bincount(place, minlength=amount * width)
    entries = np.flatnonzero(present)
    summed = [np.bincount(place, weights=values, minlength=amount * width)[entries] for values in grouped]
    lasts = starts + counts[shown] - 1
    return BinsReading(
        stateful.name,
        stateful.steering is not None,
        shards,
        len(counts),
        members,
        int(starts[0]),
        int(lasts[-1]),
        seconds,
        starts[::each].astype(np.int64),
        lasts[np.minimum(np.arange(amount) * each + each - 1, len(shown) - 1)].astype(np.int64),
        entries // width,
        entries % width,
        present[entries].astype(np.int64),
        summed[0].astype(np.int64),
        summed[1].astype(np.int64),
        _heavy(stateful),
    )


def _costs(stateful: Stateful) -> tuple[float, Numbers, Numbers]:
    """As reported by all workers, where they report; the bytes that are here otherwise."""
    if stateful.loads is not None:
        known = stateful.loads.loads()
        if known.seconds > 0:
            return known.seconds, known.bytes, known.records
    sizes = stateful.durable.sizes()
    return 0.0, sizes, np.zeros_like(sizes)


def _by_group(values: Numbers, starts: Numbers, counts: Numbers) -> Numbers:
    if counts.size == 0 or int(counts.max()) == 1:
        return values[starts]
    total = np.concatenate(([0], np.cumsum(values)))
    found: Numbers = total[starts + counts] - total[starts]
    return found


def _heavy(stateful: Stateful) -> tuple[tuple[str, int, int, int], ...]:
    if stateful.loads is None or stateful.lookup is None:
        return ()
    found = stateful.loads.loads().heavy[:MOST_KEYS]
    return tuple((repr(key)[:200], records, worker, stateful.lookup.look(key).shard) for key, records, worker in found)
