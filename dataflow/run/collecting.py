"""Python's garbage collector, less often than Python would have it.

The collector looks at young containers after every 700 that were made and not freed. A batch of ten thousand rows is
fifteen such looks, and each follows every list that is young: the lists of the batch, with all of their rows. Measured
with `python -m bench run rows-count`: a third of the time on one worker, and most of it on two, where rows are also
made when they arrive. Nearly all containers of a dataflow end by their count of references, so looking less often
finds as much garbage. A program that has set thresholds of its own, or has turned the collector off, keeps that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_PYTHONS = (700, 10, 10)  # what CPython begins with
_OURS = (50_000, *_PYTHONS[1:])  # containers made and not freed since the last look: a millisecond to look at


def collect_seldom() -> bool:
    """From now on young containers are looked at less often; False if the program has thresholds of its own."""
    changes = gc.get_threshold() == _PYTHONS
    if changes:
        gc.set_threshold(*_OURS)
    return changes


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """While the block runs, young containers are looked at less often."""
    changed = collect_seldom()
    try:
        yield
    finally:
        if changed and gc.get_threshold() == _OURS:
            gc.set_threshold(*_PYTHONS)
