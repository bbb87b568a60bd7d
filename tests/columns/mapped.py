"""How much of an array is in memory: of itself, whatever others in this process have."""

from __future__ import annotations

import mmap

import numpy as np

from dataflow.columns.batch import Array

_PRESENT = np.uint64(63)  # the bit of a page's entry


def resident_of(words: Array, count: int) -> int:
    """Bytes of the pages of the first `count` words that are in memory, as Linux tells."""
    first, end = words.ctypes.data // mmap.PAGESIZE, -(-(words.ctypes.data + 8 * count) // mmap.PAGESIZE)
    with open("/proc/self/pagemap", "rb") as pages:
        pages.seek(8 * first)
        entries = np.frombuffer(pages.read(8 * (end - first)), np.uint64)
    return int((entries >> _PRESENT).sum()) * mmap.PAGESIZE
