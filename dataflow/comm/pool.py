"""Memory for what is received. A block is used again once nothing refers to it any more."""

from __future__ import annotations

import sys

import numpy as np

from dataflow.columns.batch import Array

_SMALL = 1 << 16  # below this the allocator is as good
_UNUSED = 3  # references to a block: the pool's list, a local variable, and the argument of getrefcount


class BufferPool:
    """Blocks of memory of a few sizes. A block is free when nothing refers to it but the pool.

    Whoever keeps an array that lies in a block keeps the block, without knowing of any pool. Fresh memory from the
    system has to be cleared page by page, which for large frames took as long as receiving them did.
    """

    def __init__(self, most: int = 1 << 26) -> None:
        self._most = most
        self._held = 0
        self._blocks: dict[int, list[Array]] = {}  # by size, a power of two

    def take(self, size: int) -> memoryview:
        """A buffer of that size, with anything in it. O(blocks of that size)."""
        if size < _SMALL:
            return np.empty(size, np.uint8).data
        room = 1 << (size - 1).bit_length()
        blocks = self._blocks.setdefault(room, [])
        for block in blocks:
            if sys.getrefcount(block) == _UNUSED:
                return block.data[:size]
        block = np.empty(room, np.uint8)
        if self._held + room <= self._most:
            self._held += room
            blocks.append(block)
        return block.data[:size]
