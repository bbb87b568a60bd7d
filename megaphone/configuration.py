"""Which worker has which bin at which time. Pure: updates and frontiers in, tables and moves out.

An update may come any time ahead. It is *pending* until the control frontier has passed its time: until then more may
come for that time. Then it is *final*, and every worker that reads the same control stream has the same one. Of
several updates for one bin at one time, the greatest worker wins, on all workers alike: messages of different workers
have no order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from megaphone.control import Assign, Move, Update

Table = NDArray[np.uint32]
"""By bin, the worker. Never changed once it is made."""


@dataclass(frozen=True, slots=True, eq=False)
class Migration:
    """What moves at a time: bins with where they are and where they go."""

    time: int
    bins: NDArray[Any]
    origins: NDArray[Any]
    destinations: NDArray[Any]


class Configurations:
    """The history of an operator's configuration, as far as anybody can still ask for it.

    Costs: `at` O(log of the history), `finalise` a copy of the table for each time that becomes final, `accept` O(1).
    """

    def __init__(self, initial: Any) -> None:
        self._times: list[int] = []  # invariant: ascending; _tables[i + 1] holds from _times[i] on
        self._tables: list[Table] = [np.asarray(initial, np.uint32)]
        self._pending: dict[int, list[Update]] = {}

    def accept(self, time: int, updates: list[Update]) -> bool:
        """Takes checked updates for a time that is not final; whether they are the first for it."""
        first = time not in self._pending
        self._pending.setdefault(time, []).extend(updates)
        return first

    def finalise(self, is_final: Callable[[int], bool]) -> list[Migration]:
        """Makes final what no more updates can come for; the migrations that follow, in the order of time."""
        migrations = []
        for time in sorted(self._pending):
            if not is_final(time):
                break
            old = self._tables[-1]
            new = _apply(old, self._pending.pop(time))
            self._times.append(time)
            self._tables.append(new)
            bins = np.flatnonzero(old != new)
            migrations.append(Migration(time, bins, old[bins], new[bins]))
        return migrations

    def at(self, time: int) -> Table:
        """The configuration at a time that is final."""
        return self._tables[bisect_right(self._times, time)]

    def retire(self, is_past: Callable[[int], bool]) -> None:
        """Forgets configurations that were replaced at times for which nobody can ask any more."""
        keep = 0
        while keep < len(self._times) and is_past(self._times[keep]):
            keep += 1
        if keep:
            del self._times[:keep]
            del self._tables[:keep]

    @property
    def latest(self) -> Table:
        """The last configuration that is final."""
        return self._tables[-1]

    @property
    def size(self) -> int:
        """How many configurations are kept."""
        return len(self._tables)


def _apply(table: Table, updates: list[Update]) -> Table:
    """Maps first, then moves; of several for one bin the greatest worker."""
    maps = [np.asarray(update.workers, np.uint32) for update in updates if isinstance(update, Assign)]
    result: Table = np.maximum.reduce(maps) if maps else table.copy()
    bins = [
        np.asarray(update.bin if isinstance(update, Move) else update.bins).reshape(-1)
        for update in updates
        if not isinstance(update, Assign)
    ]
    if bins:
        workers = [
            np.asarray(u.worker if isinstance(u, Move) else u.workers).reshape(-1)
            for u in updates
            if not isinstance(u, Assign)
        ]
        chosen = np.full(len(table), -1, np.int64)
        np.maximum.at(chosen, np.concatenate(bins), np.concatenate(workers))
        moved = chosen >= 0
        result[moved] = chosen[moved]
    return result
