"""Which worker has which bin at which time. Pure: updates and frontiers in, tables and moves out.

An update may come any time ahead. It is *pending* until the control frontier has passed its time: until then more may
come for that time. Then it is *final*, and every worker that reads the same control stream has the same one. Of
several updates for one bin at one time, the greatest worker wins, on all workers alike: messages of different workers
have no order. Beside the table of bins there is one of single keys, where any are pinned (see `pins`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from megaphone.control import Assign, Move, Moves, Update
from megaphone.keyspace import KeySpace, Overrides
from megaphone.pins import HOME, KeyMoves, Pins

Table = NDArray[np.uint16]
"""By bin, the worker. Never changed once it is made."""


@dataclass(frozen=True, slots=True, eq=False)
class Migration:
    """What moves at a time: bins with where they are and where they go, and single keys."""

    time: int
    bins: NDArray[Any]
    origins: NDArray[Any]
    destinations: NDArray[Any]
    keys: KeyMoves | None = None


class Configurations:
    """The history of an operator's configuration, as far as anybody can still ask for it.

    Costs: `at` O(log of the history), `finalise` a copy of the table for each time that becomes final, `accept` O(1).
    """

    def __init__(self, initial: Any, keys: KeySpace) -> None:
        self._times: list[int] = []  # invariant: ascending; _tables[i + 1] holds from _times[i] on
        self._tables: list[Table] = [np.asarray(initial, np.uint16)]
        self._overrides: list[Any] = [None]  # invariant: as long as _tables
        self._keys = keys
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
            updates = self._pending.pop(time)
            new = _apply(old, [update for update in updates if isinstance(update, Move | Moves | Assign)])
            keys = self._pin([update for update in updates if isinstance(update, Pins)], old, new)
            self._times.append(time)
            self._tables.append(new)
            bins = np.flatnonzero(old != new)
            migrations.append(Migration(time, bins, old[bins], new[bins], keys))
        return migrations

    def _pin(self, updates: list[Pins], old: Table, new: Table) -> KeyMoves | None:
        """Adds the overrides of the next configuration; the keys that move, if any."""
        before = self._overrides[-1]
        if not updates:
            self._overrides.append(before)
            return None
        keys, now = self._keys.settle(updates)
        self._overrides.append(self._keys.override(before, keys, now))
        then = np.full(len(keys), HOME, np.int64) if before is None else before.workers_of(keys)
        changed = then != now
        keys, then, now = keys[changed], then[changed], now[changed]
        bins = self._keys.bins_of(keys)
        origins, destinations = np.where(then == HOME, old[bins], then), np.where(now == HOME, new[bins], now)
        return KeyMoves(keys, origins, then != HOME, destinations, now != HOME)

    def at(self, time: int) -> Table:
        """The configuration at a time that is final."""
        return self._tables[bisect_right(self._times, time)]

    def overrides_at(self, time: int) -> Any:
        """The keys that are apart from their bins at a time that is final; None if there are none."""
        return self._overrides[bisect_right(self._times, time)]  # as the key space made them

    def retire(self, is_past: Callable[[int], bool]) -> None:
        """Forgets configurations that were replaced at times for which nobody can ask any more."""
        keep = 0
        while keep < len(self._times) and is_past(self._times[keep]):
            keep += 1
        if keep:
            del self._times[:keep]
            del self._tables[:keep]
            del self._overrides[:keep]

    @property
    def latest(self) -> Table:
        """The last configuration that is final."""
        return self._tables[-1]

    @property
    def latest_overrides(self) -> Overrides | None:
        """Those of the last configuration that is final."""
        last: Overrides | None = self._overrides[-1]
        return last

    @property
    def settled(self) -> bool:
        """Whether there is one configuration, and none to come that has been heard of."""
        return not self._pending and len(self._tables) == 1

    @property
    def size(self) -> int:
        """How many configurations are kept."""
        return len(self._tables)


def _apply(table: Table, updates: list[Move | Moves | Assign]) -> Table:
    """Maps first, then moves; of several for one bin the greatest worker."""
    maps = [np.asarray(update.workers, np.uint16) for update in updates if isinstance(update, Assign)]
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
