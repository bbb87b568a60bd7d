"""The state of one edge of a plan, for all bins of a store: composites in the order in which they came, in a ring.

Costs: adding and probing O(1) for each row that is met; forgetting what has expired O(1) for each row; to forget a bin
O(1): the ring notes that what it has of it so far is not valid. To list a bin's rows the whole ring is looked through.
"""

from __future__ import annotations

import sys
import weakref
from typing import NamedTuple, TypeVar

import numpy as np

from dataflow.state.arrays import Flags, Ints, Words
from dataflow.state.memory.prefault import STOP, start
from megaphone.plans.columns import kernels

A = TypeVar("A", Ints, Words)
_LARGE = 32 << 20  # bytes of a room that are touched ahead
_LEAST = 1 << 6  # rows and slots of a ring in which there is nothing


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
    """The composites of one edge. `width`: how many components each has; a stream's own ring has 0.

    `room`: for how many rows there is room at first. Memory that has not been written to costs nothing, and to move
    many rows to a larger room is a pause.
    """

    def __init__(self, bins: int, shift: int, width: int, room: int = _LEAST) -> None:
        self.width = width
        self.shift = shift
        self.rows: Ints = np.empty((room, kernels.PARTS + width), np.int64)
        self.stamps: Ints = np.empty(room, np.int64)  # when each came; invariant: never before the one before it
        self.slots: Ints = np.full((_LEAST, 2), -1, np.int64)
        self.base = 0  # the first row that has not been forgotten
        self.end = 0  # the number of the next
        self.hint = room  # where it is moved to another room: for at least so many rows
        self._first = 0  # the number of the first row that is touched ahead
        self._moved = 0  # the first row that was moved to this room, or came to it
        self.start = 0  # the number of the first of the time at hand
        self.used = 0  # slots
        self.valid: Ints = np.zeros(max(bins, 2), np.int64)  # by bin, its first row that counts
        self.counts: Ints = np.zeros(max(bins, 2), np.int64)  # by bin, its rows that count
        self._live: Ints = np.zeros(1, np.int64)  # the sum of these
        self._stamp = kernels.NEVER
        self._given: Ints = np.zeros(1, np.int64)  # rows of this room that have been written to
        self._ahead: Ints | None = None  # what a thread looks at that touches memory ahead of these
        self._prefault()

    @property
    def live(self) -> int:
        """How many of its rows count."""
        return int(self._live[0])

    def __len__(self) -> int:
        return self.end - self.base

    @property
    def is_source(self) -> bool:
        """Whether its rows are records of a stream."""
        return self.width == 0

    def reserve(self, count: int) -> None:
        """Makes room for so many rows."""
        if len(self) + count > len(self.rows):
            self.resize(max(self.hint, 1 << (len(self) + count - 1).bit_length()))
        if 5 * (self.used + count) > 3 * len(self.slots):
            self._rehash(count)

    def _rehash(self, count: int) -> None:
        live = int(np.count_nonzero(self.slots[:, 1] >= self.base))
        size = max(_LEAST, 1 << (11 * (live + count) // 5).bit_length())
        slots = np.full((size, 2), -1, np.int64)
        self.used = int(kernels.rehash(self.slots, self.base, slots))
        self.slots = slots

    def resize(self, room: int) -> None:
        """Moves its rows to a larger or a smaller room."""
        self.rows, self.stamps = self.moved(self.rows, room), self.moved(self.stamps, room)
        self._moved = self.base
        self._prefault()

    def _prefault(self) -> None:
        """Has a large room touched ahead of what is written: for the first time that takes milliseconds a page."""
        if self._ahead is not None:
            self._ahead[STOP] = 1
            self._ahead = None
        if self.rows.nbytes >= _LARGE and sys.platform == "linux":
            words = self.rows[self.end & (len(self.rows) - 1) :]  # until the ring comes round
            self._given = np.zeros(1, np.int64)
            self._first = self.end
            self._ahead = start(words.view(np.uint64), self._given, 8 * words.shape[1], words.nbytes)
            weakref.finalize(self, self._ahead.__setitem__, STOP, 1)

    def moved(self, array: A, room: int) -> A:
        """An array by row in another room: a few copies of what lies side by side."""
        larger = np.empty((room, *array.shape[1:]), array.dtype)
        number = self.base
        while number < self.end:
            was, now = number & (len(array) - 1), number & (room - 1)
            count = min(self.end - number, len(array) - was, room - now)
            larger[now : now + count] = array[was : was + count]
            number += count
        return larger

    def add(self, delta: Delta, stamp: int) -> None:
        """Adds composites, which came at a time or before it."""
        count = len(delta)
        if not count:
            return
        self.reserve(count)
        self._stamp = max(self._stamp, stamp)
        self._fill(self.stamps, self._stamp, count)
        parts = delta.parts[:, :0] if self.is_source else delta.parts
        self.used = int(
            kernels.insert(
                delta.hashes, delta.first, delta.last, np.ascontiguousarray(parts), self.rows, self.slots, self.base,
                self.end, self.used, self.shift, self.counts,
            )
        )  # fmt: skip
        self.end += count
        self._live += count
        if self._ahead is not None:
            self._given[0] = self.end - self._first

    def _fill(self, array: Ints, value: int, count: int) -> None:
        at, room = self.end & (len(array) - 1), len(array)
        array[at : at + count] = value
        array[: max(0, at + count - room)] = value

    def probe(self, delta: Delta, low: Ints, window: int, limit: int, start: int = 0, most: int | None = None) -> Pairs:
        """Pairs of composites and rows before `limit`; with `most`, those of as many composites as give about so many
        pairs."""
        size = 2 * len(delta) + 64 if most is None else most
        ones, others, count = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(1, np.int64)
        while True:
            start = int(
                kernels.probe(
                    delta.hashes, delta.first, delta.last, low, self.rows, self.slots, self.base, limit, self.valid,
                    self.shift, window, self.is_source, start, ones, others, count,
                )
            )  # fmt: skip
            found = int(count[0])
            if start == len(delta) or (most is not None and found):
                return Pairs(ones[:found], others[:found], start)
            ones, others = (_grown(array, found) for array in (ones, others))

    def purge(self, before: int) -> None:
        """Forgets what came before a time."""
        self.base = int(
            kernels.purge(
                self.rows, self.stamps, self.base, self.end, before, self.shift, self.valid, self.counts, self._live
            )
        )
        self._shrink()

    def _shrink(self) -> None:
        """Moves to a smaller room if little is left of what has been written to."""
        written = min(len(self.rows), self.end - self._moved)
        if written > 8 * _LEAST and 8 * len(self) < written:
            self.resize(max(_LEAST, 1 << (2 * len(self)).bit_length()))
            self._rehash(0)

    def numbers(self, wanted: Flags, low: int) -> Ints:
        """The rows of some bins, without what begins before a time."""
        numbers = np.empty(int(self.counts[wanted].sum()), np.int64)
        count = kernels.scan(self.rows, self.base, self.end, self.shift, wanted, self.valid, low, numbers)
        return numbers[:count]

    def fetch(self, numbers: Ints) -> Delta:
        """Rows as composites."""
        count, width = len(numbers), self.width or 1
        delta = Delta(
            np.empty(count, np.uint64), np.empty(count, np.int64), np.empty(count, np.int64),
            np.empty((count, width), np.int64),
        )  # fmt: skip
        kernels.fetch(numbers, self.rows, *delta)
        return delta

    def forget(self, bins: Ints) -> None:
        """Forgets all that it has of some bins."""
        self._live -= self.counts[bins].sum()
        self.valid[bins] = self.end
        self.counts[bins] = 0
        if not self.live:
            self.base = self.end
            self._shrink()


    def forget_key(self, hashed: int, numbers: Ints) -> None:
        """Forgets a key, whose rows are given."""
        kernels.unlink(self.slots, hashed)
        self.rows[numbers & (len(self.rows) - 1), kernels.FIRST] = kernels.NEVER
        self.counts[hashed >> self.shift] -= len(numbers)
        self._live -= len(numbers)


class Pairs(NamedTuple):
    """What a probe found: numbers among the composites that were given, and of rows; and where it stopped."""

    ones: Ints
    others: Ints
    stopped: int


def _grown(array: Ints, used: int) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[:used] = array[:used]
    return larger
