"""The heavy keys of what a worker's S applies: a sketch that sees a sample of large batches, all of small ones.

Of n records that are applied at once it sees about `SAMPLE`, of each batch each n / SAMPLE-th one from a random start,
and counts each for those it stands for. Its estimates are then off by the sketch's own bound (see `sketch`) and by the
sample's: a key with a share p of these records is seen p * SAMPLE times, give or take the square root of that. All
batches of a time share one sample: on many workers a time comes in as many batches, and each would cost as much as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from dataflow.columns import Columns
from dataflow.columns.batch import Array
from dataflow.columns.column import Words
from dataflow.columns.hashing import as_words
from dataflow.state.store import Key, Numbers
from megaphone.load.sketch import SpaceSaving

CAPACITY = 512  # keys that the sketch keeps
SAMPLE = 1 << 9  # records that it sees of those that are applied at once
WAITING = 8 * SAMPLE  # keys that are shown to it together: a call costs as much as many keys
REPORTED = 256  # keys that a worker reports at most
SHARE = 1 / 1024  # of a worker's records, for a key to be reported


class HeavyKeys:
    """Watches batches; `take` gives the keys that were heavy since it was last asked."""

    def __init__(self, keys: Sequence[str], names_of: Callable[[Words], list[Key]] | None = None) -> None:
        """`names_of`: from words to keys, where these are spelled out."""
        self._names = tuple(keys)  # of each input
        self._names_of = names_of
        self._sketch = SpaceSaving(CAPACITY)
        self._sketch.update(np.zeros(1, np.uint64), np.ones(1))  # compiles now rather than under load
        self._sketch.clear()
        self._chance = Random(0)
        self._waiting = np.empty(WAITING, np.uint64)
        self._weights = np.empty(WAITING)  # for how many records each stands
        self._waits = 0  # how many of them

    def watch(self, batches: Sequence[Sequence[Columns]]) -> None:
        """Records are about to be applied. One probe of the sketch for each that is looked at, sooner or later."""
        for name, parts in zip(self._names, batches, strict=False):
            stride = -(-sum(map(len, parts)) // SAMPLE)
            for batch in parts:
                first = self._chance.randrange(stride) if stride > 1 else 0
                if first < len(batch):
                    self._put_off(as_words(batch[name], name)[first::stride], stride)

    def _put_off(self, words: Array, weight: int) -> None:
        first, end = self._waits, self._waits + len(words)
        if end > WAITING:
            self._catch_up()
            first, end = 0, len(words)
        self._waiting[first:end] = words
        self._weights[first:end] = weight
        self._waits = end

    def _catch_up(self) -> None:
        self._sketch.update(self._waiting[: self._waits], self._weights[: self._waits])
        self._waits = 0

    def take(self) -> tuple[Numbers, Numbers, Numbers]:
        """The heavy keys, the heaviest first, their records and by how much these may be too many; a new interval
        begins."""
        self._catch_up()
        found = self._sketch.heavy(share=SHARE)
        self._sketch.clear()
        keys, estimates, errors = (column[:REPORTED] for column in (found.keys, found.estimates, found.errors))
        return keys.view(np.int64), estimates.astype(np.int64), errors.astype(np.int64)

    def names(self, keys: Sequence[Key] | Numbers) -> Sequence[Key]:
        """Keys as people write them, where these are spelled out; else nothing."""
        return () if self._names_of is None else self._names_of(np.asarray(keys, np.int64).view(np.uint64))
