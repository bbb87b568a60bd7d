"""A thread that works behind the stream, at low priority: it hashes and writes what a snapshot has.

Writing takes little of a processor, but when both are busy with records it must not be their turn that it takes. A
thread of lower priority gets what is left, and about a tenth when nothing is: enough for a snapshot to come to its end.
It has to be a thread of its own, since what was lowered cannot be raised again without privileges.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

import trio

T = TypeVar("T")

_LOWER = 10  # than what the process has

_lock = threading.Lock()
_jobs: SimpleQueue[Callable[[], object]] | None = None


async def run_backstage(call: Callable[..., T], *args: object) -> T:
    """What a call gives, made by the thread when those before it are done. Cannot be cancelled."""
    token, done = trio.lowlevel.current_trio_token(), trio.Event()
    found = Future[T]()

    def job() -> None:
        try:
            found.set_result(call(*args))
        except BaseException as error:
            found.set_exception(error)
        token.run_sync_soon(done.set)

    _queue().put(job)
    with trio.CancelScope(shield=True):
        await done.wait()
    return found.result()


def start_backstage(call: Callable[[], object]) -> None:
    """Has a call made that nobody waits for, and that does not fail."""
    _queue().put(call)


def _queue() -> SimpleQueue[Callable[[], object]]:
    """Where the thread of this process finds what to do; it is made when it is first needed, never before a fork."""
    global _jobs
    with _lock:
        if _jobs is None:
            _jobs = SimpleQueue()
            threading.Thread(target=_work, args=(_jobs,), name="dataflow backstage", daemon=True).start()
        return _jobs


def _work(jobs: SimpleQueue[Callable[[], object]]) -> None:
    with suppress(OSError, AttributeError):  # where threads have no priority of their own
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + _LOWER, 19))
    while True:
        jobs.get()()
