"""Whether what was seen is good: nothing wrong, nothing that grows without end, nothing that gets slower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.endure.watching import Glance, Lookout


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and its answer."""

    question: str
    answer: str
    good: bool


def judge(watch: Lookout) -> list[Answer]:
    """The verdicts on a run. The second quarter is compared with the last: the first is for warming up."""
    seen = watch.seen
    second, last = seen[len(seen) // 4 : len(seen) // 2], seen[3 * len(seen) // 4 :]
    faults = "; ".join(watch.faults[:3]) or f"nothing wrong: every count was compared {watch.compared} times"
    return [
        Answer("Was any count wrong, or not shown in the end?", faults, not watch.faults and watch.compared > 0),
        _growth("Does a worker's memory grow?", "MiB", _of(second, "memory"), _of(last, "memory"), 1.25, 48),
        _growth("Does the supervisor's?", "MiB", _of(second, "supervisor"), _of(last, "supervisor"), 1.25, 16),
        _growth("Do open files of a worker?", "files", _of(second, "files"), _of(last, "files"), 1.5, 16),
        _growth("Of the supervisor?", "files", _of(second, "supervisor_files"), _of(last, "supervisor_files"), 1.5, 16),
        # 2.6 is more than one step of the histogram that latencies are counted in.
        _growth("Does latency (median of the .99) drift?", "ms", _ms(second), _ms(last), 2.6, 25),
        _growth("Does the table fall behind (median)?", "s", _of(second, "behind"), _of(last, "behind"), 2.0, 3),
    ]


def _of(seen: Sequence[Glance], name: str) -> list[float]:
    return [float(getattr(each, name)) for each in seen if each.workers]


def _ms(seen: Sequence[Glance]) -> list[float]:
    return [1e3 * each.high for each in seen if each.high == each.high]


def _growth(question: str, unit: str, before: list[float], after: list[float], factor: float, slack: float) -> Answer:
    """Good if the median is at most `factor` times what it was, and `slack`."""
    if not before or not after:
        return Answer(question, "too few looks to tell", good=False)
    old, new = float(np.median(before)), float(np.median(after))
    good = new <= factor * old + slack
    return Answer(question, f"{old:,.1f} {unit} in the second quarter, {new:,.1f} in the last", good)
