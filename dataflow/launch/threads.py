"""Whether this process has threads, so that its forks could hang on what they had locked."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings

_MOMENT = 0.002  # seconds
_MOMENTS = 25


def has_threads() -> bool:
    """Whether there are threads that do not end by themselves when the process forks.

    Libraries that care (OpenBLAS, which numpy loads) end theirs before a fork and start them again when they are
    needed. So this forks, and looks what is left.
    """
    if threading.active_count() > 1:
        return True
    if sys.platform != "linux":
        return False  # nothing tells
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about forks of processes with threads
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(_MOMENTS):  # a thread that has ended may be seen for a moment longer
        if len(os.listdir("/proc/self/task")) == 1:
            return False
        time.sleep(_MOMENT)
    return True
