"""Whether this process has threads, so that its forks could hang on what they had locked."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from pathlib import Path

from dataflow.launch.descent import fork

_MOMENT = 0.002  # seconds
_MOMENTS = 25
_TASKS = Path("/proc/self/task")
_CAREFUL = {"jemalloc_bg_thd"}  # pyarrow's memory: it takes its locks before a fork, and gives them back in both


def has_threads() -> bool:
    """Whether there are threads that a fork could miss.

    Libraries that care (OpenBLAS, which numpy loads) end theirs before a fork and start them again when they are
    needed. So this forks, and looks what is left.
    """
    if threading.active_count() > 1:
        return True
    if sys.platform != "linux":
        return False  # nothing tells
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about forks of processes with threads
        pid = fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(_MOMENTS):  # a thread that has ended may be seen for a moment longer
        if not _others():
            return False
        time.sleep(_MOMENT)
    return True


def _others() -> list[str]:
    """The names of the threads that matter, but for this one's."""
    names = []
    for task in _TASKS.iterdir():
        try:
            name = (task / "comm").read_text().strip()
        except OSError:
            continue  # it has ended
        if task.name != str(os.getpid()) and name not in _CAREFUL:
            names.append(name)
    return names
