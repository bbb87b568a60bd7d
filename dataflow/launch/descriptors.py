"""The numbers 0, 1 and 2: standard streams that the caller may have closed (`<&-`, `>&-`, `2>&-`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def standard_numbers_taken() -> Iterator[None]:
    """Meanwhile no new file gets the number of a standard stream: those that are closed refer to /dev/null.

    Otherwise a connection would get such a number, and whoever prints or reads would do so in the middle of it.
    """
    taken: list[int] = []
    try:
        while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:  # the system gives the lowest number that is free
            taken.append(fd)
        os.close(fd)
        yield
    finally:
        for fd in taken:
            os.close(fd)
