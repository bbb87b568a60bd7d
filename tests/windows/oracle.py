"""What windows mean, spelled out: no code of the engine, no cleverness."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.events.oracle import Event

Found = tuple[str, int, int, list[Event]]
"""(key, start, end, the records of a window)"""


def sliding(events: Sequence[Event], size: int, slide: int) -> list[Found]:
    """Every window that has a record."""
    found = []
    for key in {event[1] for event in events}:
        for end in range(slide, max(event[0] for event in events) + size + slide, slide):
            inside = [event for event in events if event[1] == key and end - size <= event[0] < end]
            if inside:
                found.append((key, end - size, end, inside))
    return found


def sessions(events: Sequence[Event], gap: int) -> list[Found]:
    """Runs of records that are less than `gap` apart."""
    found: list[Found] = []
    for key in {event[1] for event in events}:
        run: list[Event] = []
        for event in sorted(event for event in events if event[1] == key):
            if run and event[0] >= run[-1][0] + gap:
                found.append((key, run[0][0], run[-1][0] + gap, run))
                run = []
            run.append(event)
        if run:
            found.append((key, run[0][0], run[-1][0] + gap, run))
    return found


def counted(events: Sequence[Event], size: int) -> list[Found]:
    """Every `size` records of a key, by time and value."""
    found = []
    for key in {event[1] for event in events}:
        mine = sorted(event for event in events if event[1] == key)
        for first in range(0, len(mine) - size + 1, size):
            part = mine[first : first + size]
            found.append((key, part[0][0], part[-1][0], part))
    return found


def aggregated(records: Sequence[Event]) -> dict[str, Any]:
    """What the tests ask for."""
    values = [event[2] for event in sorted(records)]
    return {
        "n": len(values),
        "total": sum(values),
        "least": min(values),
        "most": max(values),
        "mean": statistics.fmean(values),
        "variance": statistics.variance(values) if len(values) > 1 else math.nan,
        "first": values[0],
        "last": values[-1],
        "distinct": len(set(values)),
        "about": len(set(values)),
        "text": "".join(map(str, values)),
    }


def listed(records: Sequence[Event]) -> dict[str, Any]:
    """Those that are lists."""
    values = [event[2] for event in records]
    counts = sorted(Counter(values).items(), key=lambda pair: (-pair[1], repr(pair[0])))
    return {"top": sorted(values, reverse=True)[:3], "frequent": counts[:2]}


def median_range(records: Sequence[Event]) -> tuple[float, float]:
    """What a sketch of relative error 1 % may say of the median."""
    values = sorted(event[2] for event in records)
    exact = values[math.floor(0.5 * (len(values) - 1))]
    return exact * 0.99 - 1e-9, exact * 1.01 + 1e-9
