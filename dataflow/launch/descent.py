"""Parents and children: forking a process, and that none outlives the one that started it."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys

from dataflow.errors import TooManyWorkers

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Has the kernel kill this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


def fork() -> int:
    """`os.fork`. TooManyWorkers if the system starts no more processes."""
    try:
        return os.fork()
    except OSError as error:
        raise no_process(error) or error from None


def no_process(error: OSError) -> TooManyWorkers | None:
    """What to say where a process could not be started; None if that was not for want of room."""
    if error.errno not in (errno.EAGAIN, errno.ENOMEM):
        return None
    return TooManyWorkers(
        f"the system starts no more processes ({os.strerror(error.errno)}): start fewer workers, or raise the limit of "
        "processes first (ulimit -u; in a container pids.max)"
    )
