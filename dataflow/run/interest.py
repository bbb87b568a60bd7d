"""What a sleeping worker wants to be woken for: frontiers at places that it watches, as bits of one number.

Every worker reads the progress of all others, but it needs not be woken for each piece of it: only if a frontier that
it watches has moved. Whoever moves a frontier wakes those that watch it. The places of all dataflows share the bits, so
a worker may be woken in vain; it is never left asleep. docs/internals/progress.md says why.
"""

from __future__ import annotations

_BITS = 61
EVERYTHING = (1 << (_BITS + 1)) - 1  # bit 0 stands for what is sent to a worker itself


def bit(dataflow: int, location: int) -> int:
    """The bit of a place."""
    return 2 << (dataflow * 17 + location) % _BITS
