"""Memory for rows that are numbered for ever: pages, of which those that are not needed any more are used again.

Costs: a page more O(1); where it is, one look into an array. Memory that is written to for the first time costs a few
microseconds for each 4 KiB here, and a larger room costs nothing more where the system can move it without copying. So
nothing is touched ahead, and nobody waits for a large copy.
"""

from __future__ import annotations

import mmap
import sys

import numpy as np

from dataflow.state.arrays import Ints
from megaphone.plans.columns.kernels import PAGE, REST

_LARGE = 4 << 20  # bytes from which on large pages are worth it, for a table
_MANY = 32 << 20  # and for rows: below that, streams that grow at one time would pause for tens of milliseconds
_FIRST = 4  # pages that there is room for at first
_SPARE = 2  # pages that are kept although nothing is in them, besides as many as are in use
_AT_ONCE = 16  # pages that are given back to the system at once: more would be a pause


def stride(words: int) -> int:
    """The words of memory that a row of so many has, so that what every row has is in one cache line."""
    return 8 if words <= 8 else -(-words // 4) * 4


class Pages:
    """Rows of `width` words, by number. `large`: where there are many, in large pages of the system's: they are found
    faster, and each is a pause of milliseconds when it is first written to. For what has its size for long."""

    def __init__(self, width: int, large: bool = False) -> None:
        self._width = stride(width)
        self._large = large
        self.where: Ints = np.zeros(_FIRST, np.int64)  # by number of page, modulo its length: the first row's place
        self._begin = self._end = 0  # the pages that are there, by number
        self._free: list[int] = []  # places that were in use
        self._given_back: list[int] = []  # places that were, whose memory the system has
        self._fresh = 0  # the number of places that were ever in use
        self._room = _FIRST  # of places
        self._memory = _anonymous(self._bytes(_FIRST))
        self.rows: Ints = self._view()

    def _bytes(self, pages: int) -> int:
        return (pages << PAGE) * self._width * 8

    def _view(self) -> Ints:
        return np.frombuffer(self._memory, np.int64).reshape(-1, self._width)

    def reach(self, end: int) -> None:
        """Has pages for the rows before a number."""
        while self._end <= (end - 1) >> PAGE:
            if self._end - self._begin == len(self.where):
                self._look_farther()
            self.where[self._end & (len(self.where) - 1)] = self._take() << PAGE
            self._end += 1

    def _look_farther(self) -> None:
        numbers = np.arange(self._begin, self._end)
        where = np.zeros(2 * len(self.where), np.int64)
        where[numbers & (len(where) - 1)] = self.where[numbers & (len(self.where) - 1)]
        self.where = where

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        if self._given_back:
            return self._given_back.pop()
        if self._fresh == self._room:
            self._grow(2 * self._room)
        self._fresh += 1
        return self._fresh - 1

    def _grow(self, room: int) -> None:
        was = self.rows
        self.rows = was[:0].copy()  # whose memory is moved must not be looked at meanwhile
        del was
        try:
            self._memory.resize(self._bytes(room))
        except (BufferError, SystemError, OSError, ValueError):  # somebody looks at it, or the system cannot move it
            larger = _anonymous(self._bytes(room))
            larger[: len(self._memory)] = self._memory[:]
            self._memory = larger
        self._room = room
        enlarge(self._memory, self._large and len(self._memory) >= _MANY)
        self.rows = self._view()

    def pass_by(self, base: int) -> None:
        """The rows before a number are not needed any more."""
        turn = len(self.where) - 1
        while self._begin < base >> PAGE:
            self._free.append(int(self.where[self._begin & turn]) >> PAGE)
            self._begin += 1
        if len(self._free) > self._end - self._begin + _SPARE:
            self._give_back()

    def _give_back(self) -> None:
        """Gives memory back that has not been in use for longest, a little at a time."""
        some, self._free = self._free[:_AT_ONCE], self._free[_AT_ONCE:]
        if sys.platform == "linux":
            for place in some:
                self._memory.madvise(mmap.MADV_DONTNEED, self._bytes(place), self._bytes(1))
        self._given_back += some

    def places(self, numbers: Ints) -> Ints:
        """Where rows are."""
        places: Ints = self.where[(numbers >> PAGE) & (len(self.where) - 1)] + (numbers & REST)
        return places

    @property
    def touched(self) -> int:
        """Bytes of memory that it has, about."""
        return self._bytes(self._fresh - len(self._given_back))


def anonymous(size: int, large: bool) -> Ints:
    """So many bytes of memory as words, in large pages or small ones."""
    memory = _anonymous(size)
    enlarge(memory, large)
    return np.frombuffer(memory, np.int64)


def enlarge(memory: mmap.mmap, large: bool) -> None:
    """Asks for large pages, where the system has some and it is worth it."""
    if large and len(memory) >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)


def _anonymous(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # what is shared cannot grow
    return mmap.mmap(-1, size, flags=flags)
