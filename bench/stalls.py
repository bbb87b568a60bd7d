"""Stalls of the host: which epochs of a run it held up, because it ran something else on the processors.

On a virtual machine such stalls take from ten to some hundred milliseconds, and are in a run's maximum. They are told
apart by what the system counts as withheld, which is looked at with every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from megaphone.harness.machine import stolen
from megaphone.harness.schedule import SECOND, Ints

ENOUGH = 20_000_000  # nanoseconds, on all processors together: two ticks of the clock that counts; one is always about


@dataclass
class HostLog:
    """What the host had withheld in all, by nanoseconds since the start of a run. One look costs some 50 us."""

    at: list[int] = field(default_factory=list)
    withheld: list[int] = field(default_factory=list)

    def look(self, elapsed: float) -> None:
        """Notes what it is now, so many seconds after the start."""
        self.at.append(round(elapsed * SECOND))
        self.withheld.append(stolen())


def held_up(begins: Ints, done: Ints, log: HostLog, enough: int = ENOUGH) -> NDArray[np.bool_]:
    """The epochs from whose begin until they were complete the host withheld at least so much, as far as was seen.

    >>> log = HostLog(at=[0, 20, 40, 60], withheld=[5, 5, 9, 9])
    >>> held_up(np.array([0, 20, 45]), np.array([20, 39, 60]), log, enough=3).tolist()
    [False, True, False]
    """
    at, withheld = np.array(log.at), np.array(log.withheld)
    first = np.maximum(np.searchsorted(at, begins, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(at, done), len(at) - 1)
    flags: NDArray[np.bool_] = withheld[last] - withheld[first] >= enough
    return flags
