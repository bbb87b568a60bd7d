"""Where the time of a worker goes, by what it is for: every function that a profiler saw belongs to one purpose.

The parts add up to the whole. Compiled code and numpy count for the function that called them.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping
from typing import Any

PURPOSES = ("generation", "query", "routing", "transport", "folding", "progress", "idle", "engine")

# The first prefix that fits says the purpose; what fits none is the engine: scheduling, ports, trio.
_PLACES = (
    ("folds/fold_", "folding"),
    ("nexmark/generator", "generation"),
    ("nexmark/kernels", "generation"),
    ("nexmark/sources", "generation"),
    ("nexmark/", "query"),
    ("dataflow/columns/hashing", "routing"),
    ("dataflow/columns/pacts", "routing"),
    ("megaphone/routing", "routing"),
    ("megaphone/configuration", "routing"),
    ("megaphone/columns.py:route", "routing"),
    ("dataflow/comm/", "transport"),
    ("dataflow/progress/", "progress"),
    ("dataflow/antichain", "progress"),
    ("dataflow/capability", "progress"),
    ("dataflow/columns/operators", "engine"),
    ("dataflow/columns/", "folding"),
    ("megaphone/", "folding"),
)
_WAITS = ("'poll' of 'select.epoll'", "select.select", "time.sleep")

Function = tuple[str, int, str]


def purpose_of(function: Function) -> str | None:
    """What a function is for; None for what is written in C, which is for whatever its caller is.

    >>> purpose_of(("/home/x/nexmark/generator.py", 146, "_fill")), purpose_of(("~", 0, "<method 'take' of ...>"))
    ('generation', None)
    >>> purpose_of(("~", 0, "<method 'poll' of 'select.epoll' objects>"))
    'idle'
    """
    file, _, name = function
    if file == "~":
        return "idle" if any(wait in name for wait in _WAITS) else None
    place = f"{file}:{name}"
    for prefix, purpose in _PLACES:
        if f"/{prefix}" in place:
            return purpose
    return "engine"


def seconds_by_purpose(profile: cProfile.Profile) -> dict[str, float]:
    """By purpose, the time that the profiler saw."""
    stats: Mapping[Function, tuple[int, int, float, float, Mapping[Function, Any]]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    seconds = dict.fromkeys(PURPOSES, 0.0)
    for function, (_, _, own, _, callers) in stats.items():
        purpose = purpose_of(function)
        if purpose is not None:
            seconds[purpose] += own
            continue
        for caller, (_, _, part, _) in callers.items():
            seconds[purpose_of(caller) or "engine"] += part
        if not callers:
            seconds["engine"] += own
    return seconds
