"""What event time means, spelled out: a program that a reader can see to be right, with no code of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Event = tuple[int, str, int]
"""(time, key, value)"""


def split_late(events: Sequence[Event], delay: int) -> tuple[list[Event], list[Event]]:
    """(those on time, the late ones) of one partition, in the order in which they came."""
    on_time, late = [], []
    for place, event in enumerate(events):
        before = [time for time, _, _ in events[:place]]
        (late if before and event[0] < max(before) - delay else on_time).append(event)
    return on_time, late


def some_events(chance: Random, count: int, spread: int) -> list[Event]:
    """Events whose times are out of order by about `spread`."""
    return [
        (max(0, place + chance.randint(-spread, spread)), chance.choice("abc"), chance.randint(0, 9))
        for place in range(count)
    ]
