"""The state of one edge of a plan, for all bins of a store: composites in the order in which they came, in a ring.

Costs: adding and probing O(1) for each row that is met; forgetting what has expired O(1) for each row; to forget a bin
O(1): the ring notes that what it has of it so far is not valid. To list a bin's rows the whole ring is looked through.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dataflow.state.arrays import Flags, Ints, Words
from megaphone.plans.columns import kernels, probing
from megaphone.plans.columns.pages import Pages
from megaphone.plans.columns.slots import Slots


class Delta(NamedTuple):
    """Composites of some streams: what is new at an edge, or some of what is there."""

    hashes: Words  # of their keys
    first: Ints
    last: Ints
    parts: Ints  # the numbers of their components in the rings of their streams, by stream

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, which: Flags | Ints) -> Delta:
        """Some of them."""
        hashes, first, last, parts = self
        return Delta(hashes[which], first[which], last[which], parts[which])


def nothing(width: int) -> Delta:
    """No composites."""
    times = np.empty(0, np.int64)
    return Delta(np.empty(0, np.uint64), times, times, np.empty((0, width), np.int64))


def merged(some: list[Delta], width: int) -> Delta:
    """All of several."""
    some = [delta for delta in some if len(delta)]
    if len(some) == 1:
        return some[0]
    return Delta(*map(np.concatenate, zip(*some, strict=True))) if some else nothing(width)


class Ring:
    """The composites of one edge. `width`: how many components each has. Rows of a stream's own ring have the record's
    values instead: `SourceRing`."""

    is_source = False

    def __init__(self, bins: int, shift: int, width: int) -> None:
        self.width = width
        self.shift = shift
        self.base = 0  # the first row that has not been forgotten
        self.end = 0  # the number of the next
        self.start = 0  # the number of the first of the time at hand
        self.valid: Ints = np.zeros(max(bins, 2), np.int64)  # by bin, its first row that counts
        self.counts: Ints = np.zeros(max(bins, 2), np.int64)  # by bin, its rows that count
        self._tally: Ints = np.zeros(2, np.int64)  # the sum of these, and the keys of all rows
        self._stamp = kernels.NEVER
        self.pages = Pages(kernels.PARTS + width)
        self._slots = Slots(self._tally, self.is_source)

    @property
    def live(self) -> int:
        """How many of its rows count."""
        return int(self._tally[kernels.LIVE])

    def __len__(self) -> int:
        return self.end - self.base

    def add(self, delta: Delta, stamp: int) -> None:
        """Adds composites, which came at a time or before it."""
        self._insert(delta, stamp, delta.parts)

    def _insert(self, delta: Delta, stamp: int, words: Ints) -> None:
        count = len(delta)
        if not count:
            return
        self.pages.reach(self.end + count)
        self._slots.reserve(count, self.base)
        self._stamp = max(self._stamp, stamp)  # never before that of the row before
        kernels.insert(
            delta.hashes, delta.first, delta.last, self._stamp, np.ascontiguousarray(words), self.pages.rows,
            self.pages.where, self._slots.table, self.end, self.shift, self.counts, self._tally,
        )  # fmt: skip
        self.end += count

    def probe(self, delta: Delta, low: Ints, window: int, limit: int, start: int = 0, most: int | None = None) -> Pairs:
        """Pairs of composites and rows before `limit`; with `most`, those of as many composites as give about so many
        pairs."""
        size = 2 * len(delta) + 64 if most is None else most
        ones, others, count = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(1, np.int64)
        while True:
            start = int(
                probing.probe(
                    delta.hashes, delta.first, delta.last, low, self.pages.rows, self.pages.where, self._slots.table,
                    self.base, limit, self.valid, self.shift, window, self.is_source, start, ones, others, count,
                )
            )  # fmt: skip
            found = int(count[0])
            if start == len(delta) or (most is not None and found):
                return Pairs(ones[:found], others[:found], start)
            ones, others = (_grown(array, found) for array in (ones, others))

    def purge(self, before: int) -> None:
        """Forgets what came before a time."""
        rows, was = len(self), self.base
        self.base = int(
            kernels.purge(
                self.pages.rows, self.pages.where, self.base, self.end, before, self.shift, self.valid, self.counts,
                self._tally,
            )
        )  # fmt: skip
        if self.base > was:
            self.pages.pass_by(self.base)
            self._slots.forget(self.base, (self.base - was) / rows)

    def numbers(self, wanted: Flags, low: int) -> Ints:
        """The rows of some bins, without what begins before a time."""
        numbers = np.empty(int(self.counts[wanted].sum()), np.int64)
        rows, where = self.pages.rows, self.pages.where
        count = kernels.scan(rows, where, self.base, self.end, self.shift, wanted, self.valid, low, numbers)
        return numbers[:count]

    def fetch(self, numbers: Ints) -> Delta:
        """Rows as composites."""
        count, width = len(numbers), 1 if self.is_source else self.width
        delta = Delta(
            np.empty(count, np.uint64), np.empty(count, np.int64), np.empty(count, np.int64),
            np.empty((count, width), np.int64),
        )  # fmt: skip
        kernels.fetch(numbers, self.pages.rows, self.pages.where, self.is_source, *delta)
        return delta

    def forget(self, bins: Ints) -> None:
        """Forgets all that it has of some bins."""
        self._tally[kernels.LIVE] -= self.counts[bins].sum()
        self.valid[bins] = self.end
        self.counts[bins] = 0
        if not self.live:
            self.base = self.end
            self.pages.pass_by(self.base)
            self._slots.clear()

    def forget_key(self, hashed: int, numbers: Ints) -> None:
        """Forgets a key, whose rows are given."""
        kernels.unlink(self._slots.table, hashed, self._tally)
        self.pages.rows[self.pages.places(numbers), kernels.FIRST] = kernels.NEVER
        self.counts[hashed >> self.shift] -= len(numbers)
        self._tally[kernels.LIVE] -= len(numbers)

    @property
    def touched(self) -> int:
        """Bytes of memory that it has, about."""
        return self.pages.touched + self._slots.table.nbytes


class Pairs(NamedTuple):
    """What a probe found: numbers among the composites that were given, and of rows; and where it stopped."""

    ones: Ints
    others: Ints
    stopped: int


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), 0)


def _grown(array: Ints, used: int) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[:used] = array[:used]
    return larger
