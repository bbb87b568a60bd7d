"""Heavy keys of rows: a summary of counts of any keys (Misra and Gries), without anything compiled.

It keeps counts of some keys. When there are twice as many as it may keep, the count that is just too small to be kept
is subtracted from all, and whatever is left with nothing is forgotten. So a count is below the truth by what was
subtracted so far at most, which is never more than the total over (capacity + 1): each subtraction took as much from
capacity + 1 keys at least.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dataflow.state.stores.row_store import KeyOf, Rows
from dataflow.state.values import Key

CAPACITY = 256  # keys that the summary keeps
SAMPLE = 64  # records of a batch that it sees
SHARE = 1 / 1024  # of a worker's records, for a key to be reported


class Tally:
    """Counts of the heaviest keys. An update costs O(1) on average.

    >>> tally = Tally(capacity=2)
    >>> for key in "abacadaeafag":
    ...     tally.add(key)
    >>> [(key, estimate - error <= 6 <= estimate) for key, estimate, error in tally.heavy(least=4)]
    [('a', True)]
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._counts: dict[Key, int] = {}
        self.total = 0
        self.error = 0  # by how much a count may be below the truth; invariant: error * (capacity + 1) <= total

    def add(self, key: Key, weight: int = 1) -> None:
        """Counts a key."""
        self._counts[key] = self._counts.get(key, 0) + weight
        self.total += weight
        if len(self._counts) > 2 * self._capacity:
            self._compress()

    def _compress(self) -> None:
        too_small = sorted(self._counts.values(), reverse=True)[self._capacity]
        self._counts = {key: count - too_small for key, count in self._counts.items() if count > too_small}
        self.error += too_small

    def heavy(self, least: float) -> list[tuple[Key, int, int]]:
        """Keys that may have `least` or more, the heaviest first: (key, estimate, error), where estimate - error <= the
        truth <= estimate."""
        found = [(key, count + self.error, self.error) for key, count in self._counts.items()]
        return sorted((entry for entry in found if entry[1] >= least), key=lambda entry: -entry[1])


class HeavyRows:
    """Watches batches of rows; `take` gives the keys that were heavy since it was last asked. It samples large
    batches."""

    def __init__(self, keys: Sequence[KeyOf]) -> None:
        self._key_of = keys
        self._tally = Tally(CAPACITY)
        self._chance = random.Random(0)

    def watch(self, batches: Sequence[Sequence[Rows]]) -> None:
        """Records with their places are about to be applied, by input."""
        for key_of, parts in zip(self._key_of, batches, strict=False):
            for batch in parts:
                self._watch(key_of, batch)

    def _watch(self, key_of: KeyOf, batch: Rows) -> None:
        """A call of the key function for each record that is looked at."""
        add = self._tally.add
        stride = -(-len(batch) // SAMPLE)
        for _, record in batch[self._chance.randrange(stride) :: stride] if stride > 1 else batch:
            add(key_of(record), stride)

    def take(self) -> tuple[list[Key], NDArray[np.int64], NDArray[np.int64]]:
        """The heavy keys, their records, and by how much these may be too many; a new interval begins."""
        found = self._tally.heavy(max(1.0, SHARE * self._tally.total))[:CAPACITY]
        self._tally = Tally(CAPACITY)
        counts = np.array([entry[1:] for entry in found], np.int64).reshape(-1, 2)
        return [key for key, *_ in found], counts[:, 0].copy(), counts[:, 1].copy()

    def names(self, keys: Sequence[Key] | NDArray[np.int64]) -> Sequence[Key]:
        """Nothing: keys of rows are as people write them."""
        return ()
