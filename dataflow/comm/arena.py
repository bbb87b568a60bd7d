"""Memory that the workers of one host share: the bodies of large frames lie there instead of going through a socket.

Each worker has an arena. It copies a body into it and says where in a frame; the others read it where it lies, and give
it back when nothing refers to it any more. That is one copy where a socket makes two, into memory that is used again
and again, so that it is seldom touched for the first time.

An arena is anonymous memory that was mapped before the workers were forked, or a part of a file in memory whose
descriptor was handed to them. It has no name: when the last of them has ended, in whatever way, it is gone.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable, Sequence

import numpy as np

Piece = bytes | memoryview

LARGE = 1 << 16  # a body of at least this size is worth it
_MOST = 1 << 26  # of an arena
_BLOCKS = 256  # lent at a time: looking for room among them stays cheap


class Arena:
    """One worker's. What it lends is at most its size; what does not fit goes another way, so nobody ever waits.

    >>> arena = Arena(1 << 20)
    >>> at = arena.lend([b"some", b"thing"], 9)
    >>> returned = []
    >>> bytes(arena.borrow(at, 9, returned.append)), returned
    (b'something', [0])
    """

    def __init__(self, size: int, memory: memoryview | None = None) -> None:
        """Maps memory, which costs nothing until it is written to. Where none is to be had it lends nothing.

        `memory`: of that size, for those who share memory that was not mapped before they were forked.
        """
        self.size = size - size % mmap.PAGESIZE
        if memory is not None:
            self._memory = memory
        else:
            self._map()
        self._lent: dict[int, int] = {}  # by where they begin, the sizes of blocks that somebody has
        self._starts: list[int] = []  # the same places, in order; invariant: blocks do not overlap

    def _map(self) -> None:
        try:
            self._memory = memoryview(mmap.mmap(-1, self.size) if self.size else b"")
        except OSError:
            self.size = 0
            self._memory = memoryview(b"")

    def lend(self, pieces: Sequence[Piece], size: int) -> int | None:
        """Copies pieces of that size in all, one after the other; where to, or None if there is no room.

        Takes the first place that is large enough: those are the ones that were used most. O(blocks lent).
        """
        start = self._find(size)
        if start is not None:
            at = start
            for piece in pieces:
                self._memory[at : at + len(piece)] = memoryview(piece).cast("B")
                at += len(piece)
        return start

    def _find(self, size: int) -> int | None:
        size += -size % mmap.PAGESIZE
        if len(self._starts) == _BLOCKS:
            return None
        start = 0
        for place, end in enumerate((*self._starts, self.size)):
            if end - start >= size:
                self._starts.insert(place, start)
                self._lent[start] = size
                return start
            start = end + self._lent.get(end, 0)
        return None

    def give_back(self, start: int) -> None:
        """Nobody refers to a block any more. KeyError if it was not lent."""
        del self._lent[start]
        self._starts.remove(start)

    def borrow(self, start: int, size: int, give_back: Callable[[int], object]) -> memoryview:
        """A view of somebody else's block; when nothing refers to it any more, `give_back` is called with its start.

        ValueError if there is no such place.
        """
        if start + size > self.size:
            raise ValueError(f"{size} bytes at {start} of a memory of {self.size}")
        block = np.frombuffer(self._memory, np.uint8, size, start)
        weakref.finalize(block, give_back, start).atexit = False
        return block.data


def arena_size(limit: int) -> int:
    """The size of an arena, given how much may be on its way from a worker: no more than that, which users set."""
    return min(limit, _MOST)
