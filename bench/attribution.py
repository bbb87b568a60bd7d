"""Where the time of a worker goes, by what it is for: every function that a profiler saw belongs to one purpose.

The parts add up to the whole. Compiled code, numpy and what cuts and joins batches count for whoever called them: what
they are for is not theirs to say.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Mapping

PURPOSES = ("generation", "query", "routing", "transport", "folding", "progress", "idle", "engine")

# Functions of F in `megaphone.router.columns`.
_OF_F = (
    "route", "give", "_select", "_divide", "_owners", "has_room", "add", "taken", "departures", "_departing", "_message"
)  # fmt: skip
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
    ("dataflow/columns/scatter", "routing"),
    *((f"megaphone/router/columns.py:{name}", "routing") for name in _OF_F),
    ("dataflow/comm/", "transport"),
    ("dataflow/codec", "transport"),
    ("dataflow/progress/", "progress"),
    ("dataflow/antichain", "progress"),
    ("dataflow/capability", "progress"),
    ("dataflow/columns/operators", "engine"),
    ("dataflow/columns/", "folding"),
    ("megaphone/", "folding"),
)
_FOR_CALLERS = ("/numpy/", "/dataflow/columns/batch.py")
_WAITS = ("'poll' of 'select.epoll'", "select.select", "time.sleep")

Function = tuple[str, int, str]
Stats = Mapping[Function, tuple[int, int, float, float, Mapping[Function, tuple[int, int, float, float]]]]


def purpose_of(function: Function) -> str | None:
    """What a function is for; None for one that is for whatever its caller is.

    >>> purpose_of(("/home/x/nexmark/generator.py", 146, "_fill")), purpose_of(("~", 0, "<method 'take' of ...>"))
    ('generation', None)
    >>> purpose_of(("~", 0, "<method 'poll' of 'select.epoll' objects>"))
    'idle'
    >>> [purpose_of(("/x/megaphone/columns.py", 1, name)) for name in ("give_rest", "_owners_of", "apply_all")]
    ['routing', 'routing', 'folding']
    """
    file, _, name = function
    if file == "~":
        return "idle" if any(wait in name for wait in _WAITS) else None
    if any(part in file for part in _FOR_CALLERS):
        return None
    place = f"{file}:{name}"
    for prefix, purpose in _PLACES:
        if f"/{prefix}" in place:
            return purpose
    return "engine"


def seconds_by_purpose(profile: cProfile.Profile) -> dict[str, float]:
    """By purpose, the time that the profiler saw."""
    return divided(pstats.Stats(profile).stats)  # type: ignore[attr-defined]


def divided(stats: Stats) -> dict[str, float]:
    """The same of what a profiler told: by function (calls, calls, own seconds, with those it called, callers), where
    callers have the same of each."""
    seconds = dict.fromkeys(PURPOSES, 0.0)
    known: dict[Function, dict[str, float]] = {}
    for function, (_, _, own, _, _) in stats.items():
        for purpose, share in _shares(stats, function, known).items():
            seconds[purpose] += own * share
    return seconds


def _shares(stats: Stats, function: Function, known: dict[Function, dict[str, float]]) -> dict[str, float]:
    """What a function is for, in parts that add up to one: those of its callers, by the time it and what it
    called took for each."""
    purpose = purpose_of(function)
    if purpose is not None:
        return {purpose: 1.0}
    if function not in known:
        known[function] = {"engine": 1.0}  # who calls itself, or is called by nobody that was seen
        callers = stats[function][4] if function in stats else {}
        whole = sum(entry[3] for entry in callers.values())
        shares: dict[str, float] = {}
        for caller, entry in callers.items():
            for purpose, share in _shares(stats, caller, known).items():
                shares[purpose] = shares.get(purpose, 0.0) + share * (entry[3] / whole if whole else 1 / len(callers))
        known[function] = shares or known[function]
    return known[function]
