"""A limit of open files that is soon reached."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_open_files(more: int = 9) -> Iterator[int]:
    """At most `more` files can be opened in this process; gives the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = []
    for _ in range(more):  # where there are holes among the numbers of open files these are found first
        free.append(os.open(os.devnull, os.O_RDONLY))
    limit = max(free) + 1
    for fd in free:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield limit
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
