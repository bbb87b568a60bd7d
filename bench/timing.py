"""How a short piece of code is timed."""

import gc
import time
from collections.abc import Callable


def best_of(repeats: int, body: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """The least seconds that one call of ``body`` took.

    The least, because on a shared machine noise only ever adds; and with the garbage collector held off, because when
    it strikes depends on what ran before. ``clock=time.thread_time`` counts what this thread had of a core, for work
    that never waits.
    """
    return min(_seconds(body, clock) for _ in range(repeats))


def _seconds(body: Callable[[], object], clock: Callable[[], float]) -> float:
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        body()
        return clock() - start
    finally:
        if was_enabled:
            gc.enable()
