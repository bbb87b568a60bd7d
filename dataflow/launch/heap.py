"""Keeps freed memory for the next batch.

Every epoch a worker allocates the arrays of its batches and frees them again. The C library gives what is freed at the
end of its heap back to the system at once, and takes it anew a moment later, page by page, each of which costs a fault
(a microsecond or more on a virtual machine). Measured with `python -m bench run count-throughput` on dense keys: 2,000
faults per million records and a sixth of the time in the kernel; 100 faults if the memory is kept.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # names of mallopt's parameters (malloc.h)
_KEPT = 128 << 20  # bytes at the end of the heap that a worker may keep for itself
_ON_THE_HEAP = 32 << 20  # arrays up to this size; the library allows no more
_STRIDE = 1 << 22  # by how much the heap grows at least


def keep_freed_memory() -> None:
    """Has the C library keep up to 128 MiB of what is freed. Does nothing where the library is not glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _ON_THE_HEAP)
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_TOP_PAD, _STRIDE)
