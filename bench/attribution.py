"""Where the time of a worker goes, by what it is for: every function that a profiler saw belongs to one purpose.

The parts add up to the whole. Compiled code, numpy and the functions that cut and join batches count for their callers,
because they serve any purpose.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping

PURPOSES = ("generation", "query", "routing", "transport", "folding", "progress", "idle", "engine")

# The first place that fits says the purpose; what fits none is the engine: scheduling, ports, trio.
PLACES = (
    ("folds/fold_", "folding"),  # users' folds, where compiled code is kept
    ("nexmark/events/", "generation"),
    ("nexmark/runs/sources", "generation"),
    ("nexmark/", "query"),
    ("dataflow/columns/hashing", "routing"),
    ("dataflow/columns/pact", "routing"),
    ("dataflow/columns/scatter", "routing"),
    ("megaphone/router/", "routing"),
    ("megaphone/control/configuration", "routing"),
    ("dataflow/comm/", "transport"),
    ("dataflow/progress/", "progress"),
    ("dataflow/time/antichain", "progress"),
    ("dataflow/build/capability", "progress"),
    ("dataflow/columns/operators", "engine"),
    ("dataflow/columns/", "folding"),
    ("dataflow/state/", "folding"),
    ("megaphone/", "folding"),
)
_FOR_CALLERS = ("/numpy/", "/dataflow/columns/batch.py")
_WAITS = ("'poll' of 'select.epoll'", "select.select", "time.sleep")

Function = tuple[str, int, str]
Stats = Mapping[Function, tuple[int, int, float, float, Mapping[Function, tuple[int, int, float, float]]]]


def purpose_of(function: Function) -> str | None:
    """What a function is for; None for a helper, which is for whatever its caller is for.

    >>> purpose_of(("/x/nexmark/events/generator.py", 146, "_fill")), purpose_of(("~", 0, "<method 'take' of ...>"))
    ('generation', None)
    >>> purpose_of(("~", 0, "<method 'poll' of 'select.epoll' objects>"))
    'idle'
    >>> [purpose_of((f"/x/megaphone/{room}/columns.py", 1, "give")) for room in ("router", "host")]
    ['routing', 'folding']
    """
    file, _, name = function
    if file == "~":
        return "idle" if any(wait in name for wait in _WAITS) else None
    if any(part in file for part in _FOR_CALLERS):
        return None
    place = f"{file}:{name}"
    for prefix, purpose in PLACES:
        if f"/{prefix}" in place:
            return purpose
    return "engine"


def seconds_by_purpose(profile: cProfile.Profile) -> dict[str, float]:
    """By purpose, the time that the profiler saw."""
    return divided(pstats.Stats(profile).stats)  # type: ignore[attr-defined]


def divided(stats: Stats) -> dict[str, float]:
    """By purpose, the seconds of a profile. A profile has, for each function: the calls (counted in two ways), its own
    seconds, the seconds with those of the functions that it called, and the same four figures by caller."""
    seconds = dict.fromkeys(PURPOSES, 0.0)
    known: dict[Function, dict[str, float]] = {}
    for function, (_, _, own, _, _) in stats.items():
        for purpose, share in _shares(stats, function, known).items():
            seconds[purpose] += own * share
    return seconds


def _shares(stats: Stats, function: Function, known: dict[Function, dict[str, float]]) -> dict[str, float]:
    """What a function is for, in shares that add up to one. A helper has the shares of its callers, weighed by the time
    that it took for each, with the functions that it called."""
    purpose = purpose_of(function)
    if purpose is not None:
        return {purpose: 1.0}
    if function not in known:
        known[function] = {"engine": 1.0}  # a function that calls itself, or that no function seen has called
        callers = stats[function][4] if function in stats else {}
        whole = sum(entry[3] for entry in callers.values())
        shares: dict[str, float] = {}
        for caller, entry in callers.items():
            for purpose, share in _shares(stats, caller, known).items():
                shares[purpose] = shares.get(purpose, 0.0) + share * (entry[3] / whole if whole else 1 / len(callers))
        known[function] = shares or known[function]
    return known[function]
