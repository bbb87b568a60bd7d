"""The hash table of a ring: by key, the number of its last row.

It grows by putting all of it into one twice as large, which was filled with nothing beforehand, a little whenever rows
came: that is most of the work, because its memory is written to for the first time.
"""

from __future__ import annotations

import numpy as np

from dataflow.state.arrays import Ints
from megaphone.plans.columns import kernels
from megaphone.plans.columns.pages import anonymous

_LEAST = 1 << 6
_FULL = 0.6  # of the slots
_SOON = 0.4  # from here on the next table is made ready
_FILLED = 12  # its slots that are, for each row: that is done before the table is full


class Slots:
    """Slots by hash. `tally` has how many are in use: kernels count them."""

    def __init__(self, tally: Ints, large: bool) -> None:
        self._tally = tally
        self._large = large  # whether in large pages
        self.table: Ints = np.full((_LEAST, 2), -1, np.int64)
        self._next: Ints | None = None
        self._filled = 0
        self._swept = 0  # the slot that is looked at next

    def reserve(self, count: int, base: int) -> None:
        """Makes room for so many keys more. `base`: the first row that there is."""
        needed = int(self._tally[kernels.USED]) + count
        if needed <= _SOON * len(self.table):
            return
        if needed > _FULL * len(self.table):
            self._put_into(self._ready(max(2 * len(self.table), 1 << int(needed / _FULL).bit_length())), base)
        else:
            self._fill(_FILLED * count)

    def _fill(self, count: int) -> None:
        """Fills some of the next table with nothing."""
        if self._next is None:
            self._next, self._filled = anonymous(32 * len(self.table), self._large).reshape(-1, 2), 0
        self._next[self._filled : self._filled + count] = -1
        self._filled = min(self._filled + count, len(self._next))

    def _ready(self, size: int) -> Ints:
        """A table of a size, in which there is nothing."""
        if self._next is None or len(self._next) != size:
            return np.full((size, 2), -1, np.int64)
        self._next[self._filled :] = -1
        return self._next

    def _put_into(self, table: Ints, base: int) -> None:
        kernels.rehash(self.table, table, base, self._tally)
        self.table, self._next, self._swept = table, None, 0

    def forget(self, base: int, share: float) -> None:
        """The rows before a number are gone, a share of all. Their keys lose their slots: as many slots are looked at
        as make it all of them in the time in which all rows go. Makes the table smaller if little is left."""
        size = len(self.table)
        end = self._swept + min(size, int(share * size) + 1)
        kernels.sweep(self.table, self._swept, min(end, size), base, self._tally)
        if end > size:
            kernels.sweep(self.table, 0, end - size, base, self._tally)
        self._swept = end & (size - 1)
        used = int(self._tally[kernels.USED])
        if len(self.table) > _LEAST and 32 * used < len(self.table):
            self._put_into(np.full((max(_LEAST, 1 << (4 * used).bit_length()), 2), -1, np.int64), base)

    def clear(self) -> None:
        """Forgets all."""
        self._tally[kernels.USED] = 0
        self.table, self._next, self._swept = np.full((_LEAST, 2), -1, np.int64), None, 0
