"""Records as they arrive: out of order, and some of them late. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

D = TypeVar("D")


@dataclass(frozen=True)
class Arrivals(Generic[D]):
    """Records in the order in which they arrive."""

    records: list[D]
    late: list[D]  # those among them that come later than the delay allows

    @property
    def on_time(self) -> list[D]:
        """The others, in their order of arrival."""
        gone = list(self.late)
        kept = []
        for record in self.records:
            if record in gone:
                gone.remove(record)
            else:
                kept.append(record)
        return kept


def out_of_order(
    records: Iterable[D], time: Callable[[D], float], delay: float, *, late: float = 0.0, seed: int = 0
) -> Arrivals[D]:
    """Records in an order in which they could arrive: each at most `delay` behind, by its own time, except some of a
    share `late` of them.

    A record is late, by the rule of `event_time`, if its time is more than the delay before the greatest time that came
    before it. Give the records of one partition.

    >>> found = out_of_order(range(0, 100, 10), lambda time: time, 15, late=0.3, seed=2)
    >>> found.records, found.late
    ([0, 20, 30, 40, 10, 50, 60, 70, 80, 90], [10])
    """
    chance = random.Random(seed)
    given = list(records)
    spread = max(delay, 1e-9)
    keys = {}
    for place, record in enumerate(given):
        behind = chance.uniform(0, spread)
        if chance.random() < late:
            behind += spread * chance.uniform(1, 3)
        keys[place] = time(record) + behind
    arrived = [given[place] for place in sorted(keys, key=lambda place: keys[place])]
    greatest, tardy = float("-inf"), []
    for record in arrived:
        moment = time(record)
        if moment < greatest - delay:
            tardy.append(record)
        greatest = max(greatest, moment)
    return Arrivals(arrived, tardy)
