"""A limit for the state of a worker: a clear refusal before the system kills the process."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dataflow.errors import StateTooLarge
from dataflow.text import size_text

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

LOOK_EVERY = 250_000_000  # nanoseconds between looks at the size of the state
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12} | {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_GROUP = Path("/sys/fs/cgroup/memory.max")


def parse_limit(most: int | str) -> int:
    """A number of bytes: 500_000_000, "2GB", "512 MiB", or "60%" of the memory that there is for this process.

    >>> parse_limit("1.5 GiB"), parse_limit("20MB"), parse_limit(7)
    (1610612736, 20000000, 7)
    """
    if isinstance(most, str):
        share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", most)
        if share:
            return _positive(int(float(share[1]) / 100 * available()), most)
        given = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]i?|t)?b?\s*", most, re.IGNORECASE)
        if given:
            return _positive(int(float(given[1]) * _UNITS[(given[2] or "").lower()]), most)
    elif type(most) is int:
        return _positive(most, most)
    raise ValueError(f"a limit is a number of bytes, a size such as '2GB' or a share such as '60%', not {most!r}")


def _positive(found: int, given: object) -> int:
    if found < 1:
        raise ValueError(f"a limit is more than nothing, and {given!r} is not")
    return found


def available() -> int:
    """The memory that this process may have: of its control group, or of the machine."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        text = _GROUP.read_text().strip()
    except OSError:
        return whole
    return min(whole, int(text)) if text.isdecimal() else whole


class StateLimit:
    """Looks at the size of the state now and then, between two turns of a worker."""

    def __init__(self, most: int | str) -> None:
        self.most = parse_limit(most)
        self._next = 0

    def check(self, pump: Pump, now: int) -> None:
        """StateTooLarge, which names who has it, if there is too much. O(shards), four times in a second at most."""
        if now < self._next:
            return
        self._next = now + LOOK_EVERY
        sizes = {
            f"{stateful.name!r} of {dataflow.name!r}": int(stateful.durable.sizes().sum())
            for dataflow in pump.dataflows
            for stateful in dataflow.hooks
        }
        total = sum(sizes.values())
        if total > self.most:
            largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
            shares = ", ".join(f"{name} {size_text(sizes[name])}" for name in largest)
            raise StateTooLarge(
                f"worker {pump.index} has {size_text(total)} of state, and its limit is {size_text(self.most)}: "
                f"{shares}. Let keys expire (ttl=), spread them over more workers, or raise worker.limit_state"
            )
