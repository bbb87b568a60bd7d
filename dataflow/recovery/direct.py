"""Files that are written and read past the system's cache, where that is possible.

A snapshot is written once, and read after a crash, if ever. Through the cache every byte is copied once more, into
memory that the system must find for it. Where that has to come from a host first, everybody on that processor waits
meanwhile: on the machine where this was written 400 MiB took 4.0 s, and 0.2 s past the cache. What is written must
begin at a page, as `pages` gives it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4096  # where transfers past the cache begin and end: a multiple of what disks ask for
_LEAST = 1 << 20  # bytes from which on it is worth its while
_STEP = 4 << 20  # bytes in one call
_POPULATE, _TOUCHED = 23, 1 << 18  # MADV_POPULATE_WRITE; bytes that are touched in one call
_DIRECT = getattr(os, "O_DIRECT", 0)
_UNABLE = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def pages(size: int) -> NDArray[np.uint8]:
    """Memory that begins at a page, for so many bytes; a page has none before it is first written to."""
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8, size)


def touch(memory: NDArray[np.uint8]) -> None:
    """Has the system find memory for pages that were not written to yet, where it can be asked to (Linux since 5.14).
    Others run meanwhile."""
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if sys.platform == "linux" and madvise is not None:
        for first in range(0, len(memory), _TOUCHED):
            length = min(_TOUCHED, len(memory) - first)
            madvise(ctypes.c_void_p(memory.ctypes.data + first), ctypes.c_size_t(length), _POPULATE)


def write_all(fd: int, data: memoryview) -> None:
    """Writes everything to a file that is empty."""
    data = data.cast("B")
    written = 0
    if len(data) >= _LEAST and np.frombuffer(data, np.uint8).ctypes.data % _BLOCK == 0:
        written = _past_the_cache(fd, _write_blocks, data[: len(data) - len(data) % _BLOCK])
    while written < len(data):
        written += os.pwrite(fd, data[written : written + _STEP], written)


def read_all(fd: int, size: int) -> memoryview:
    """Reads a file of so many bytes; all that there is, if they are fewer. The memory is the heap's, which keeps what
    is given back (`dataflow.launch.heap`): the next file finds it touched."""
    heap = np.empty(size + 2 * _BLOCK, np.uint8)
    first = -heap.ctypes.data % _BLOCK
    memory = heap[first : first + size + -size % _BLOCK].data
    got = _past_the_cache(fd, _read_blocks, memory) if size >= _LEAST else 0
    while got < size and (count := os.preadv(fd, [memory[got : min(got + _STEP, size)]], got)):
        got += count
    return memory[: min(got, size)]


def _write_blocks(fd: int, data: memoryview) -> int:
    """Writes blocks as long as whole ones are taken; how many bytes. A disk that is full says so when one goes on."""
    written = 0
    while written < len(data) and written % _BLOCK == 0:
        written += os.pwrite(fd, data[written : written + _STEP], written)
    return written


def _read_blocks(fd: int, memory: memoryview) -> int:
    """Reads blocks as long as whole ones come; how many bytes."""
    got = 0
    while got < len(memory) and got % _BLOCK == 0:
        count = os.preadv(fd, [memory[got : got + _STEP]], got)
        if not count:
            break
        got += count
    return got


def _past_the_cache(fd: int, transfer: Callable[[int, memoryview], int], memory: memoryview) -> int:
    """How many bytes of a file a transfer has moved past the cache: 0 where the file system or the disk cannot."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags | _DIRECT)
        return transfer(fd, memory)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        return 0
    finally:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags)
