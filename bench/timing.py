"""How a short piece of code is timed."""

import gc
import time
from collections.abc import Callable


def best_of(repeats: int, body: Callable[[], object]) -> float:
    """The least seconds that one call of ``body`` took.

    The least, because on a shared machine noise only ever adds; and with the garbage collector held off, because when
    it strikes depends on what ran before.
    """
    return min(_seconds(body) for _ in range(repeats))


def _seconds(body: Callable[[], object]) -> float:
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        body()
        return time.perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
