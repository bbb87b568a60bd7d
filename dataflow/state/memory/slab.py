"""Memory that copies of state go into, used again for each snapshot: fresh memory takes thirty times as long to write
to as memory that has been touched (2.4 s and 0.08 s for a gigabyte, where this was written)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dataflow.state.arrays import Words

_TOUCHED = 1 << 16  # words that are touched at once: half a megabyte, about a millisecond


class Slab:
    """One large array that is given out from its beginning. Costs O(1) for each piece."""

    def __init__(self) -> None:
        self._words: Words = np.empty(0, np.uint64)
        self._used = 0

    def take(self, count: int) -> Words:
        """So many words, which nobody else has before `reset`; of fresh memory if none is left."""
        if self._used + count > len(self._words):
            return np.empty(count, np.uint64)
        taken = self._words[self._used : self._used + count]
        self._used += count
        return taken

    def reset(self) -> None:
        """Nobody needs any longer what was taken."""
        self._used = 0

    def grow(self, count: int) -> Iterator[None]:
        """Makes room for so many words, and touches it, a little with each step. Only while nothing is taken."""
        if count <= len(self._words):
            return
        words = np.empty(count + (count >> 2), np.uint64)
        for first in range(0, len(words), _TOUCHED):
            words[first : first + _TOUCHED : 512] = 0  # a word in each page
            yield
        if not self._used:
            self._words = words
