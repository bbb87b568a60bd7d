"""Timers of the kernel's (timerfd), which are precise to microseconds. Python has them as of 3.13."""

from __future__ import annotations

import contextlib
import ctypes
import os
from functools import cache
from time import CLOCK_MONOTONIC

import trio

_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class _Setting(ctypes.Structure):
    """`struct itimerspec`: how often after the first time, and when that is: seconds and nanoseconds each."""

    _fields_ = (
        ("every_seconds", ctypes.c_long),
        ("every_rest", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("rest", ctypes.c_long),
    )


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class Timer:
    """One timer, for one task at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._setting = _Setting()

    async def wait(self, seconds: float) -> None:
        """Waits for so long, and no longer. A checkpoint, unless that is no time at all."""
        nanoseconds = max(1, round(seconds * 1e9))  # 0 would stop it
        self._setting.seconds, self._setting.rest = divmod(nanoseconds, 1_000_000_000)
        _library().timerfd_settime(self._descriptor, 0, ctypes.byref(self._setting), None)
        await trio.lowlevel.wait_readable(self._descriptor)
        with contextlib.suppress(BlockingIOError):  # it was set anew
            os.read(self._descriptor, 8)

    def close(self) -> None:
        """Gives it back."""
        os.close(self._descriptor)


def make_timer() -> Timer | None:
    """A timer; None where the system has none, or none left: whoever sleeps then does so a little too long."""
    create = getattr(_library(), "timerfd_create", None)
    descriptor = -1 if create is None else create(CLOCK_MONOTONIC, _FLAGS)
    return Timer(descriptor) if descriptor >= 0 else None
