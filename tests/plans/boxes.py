"""Opaque plans for tests: a join of two streams within w, with the median of what came out in the last v on top; each
in two ways. And what they should give, by looking at all pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.plans.cases import Epochs, Results

W, V = 4, 3


def join_first(time: int, arrivals: Any, state: dict[Any, Any]) -> Iterable[Any]:
    """Keeps records of both sides, and everything that came out, in three lists."""
    left, right, out = (state.setdefault(part, []) for part in ("left", "right", "out"))
    left[:] = [(t, r) for t, r in left if t >= time - W]
    right[:] = [(t, r) for t, r in right if t >= time - W]
    out[:] = [(t, p) for t, p in out if t >= time - V]
    new = [(a, b) for a in arrivals["a"] for _, b in right if a[0] == b[0]]
    left += [(time, a) for a in arrivals["a"]]
    new += [(a, b) for b in arrivals["b"] for _, a in left if a[0] == b[0]]
    right += [(time, b) for b in arrivals["b"]]
    out += [(time, pair) for pair in new]
    for a, b in new:
        yield a, b, median(x[1] + y[1] for _, (x, y) in out if x[0] == a[0])


def by_key(time: int, arrivals: Any, state: dict[Any, Any]) -> Iterable[Any]:
    """Keeps them by key: lists of (time, record) for each side, and the times and values of what came out."""
    made: list[Any] = []
    for side, name in enumerate("ab"):
        for record in arrivals[name]:
            mine = state.setdefault(record[0], [[], [], []])
            for then, other in mine[1 - side]:
                if then >= time - W:
                    made.append((record, other) if side == 0 else (other, record))
            mine[side].append((time, record))
    for a, b in made:
        state[a[0]][2].append((time, a[1] + b[1]))
    for a, b in made:
        yield a, b, median(value for then, value in state[a[0]][2] if then >= time - V)
    for key in [*state]:
        a_s, b_s, out = state[key]
        state[key] = [
            [e for e in a_s if e[0] >= time - W], [e for e in b_s if e[0] >= time - W],
            [e for e in out if e[0] >= time - V],
        ]  # fmt: skip
        if not any(state[key]):
            del state[key]


def first_only(time: int, arrivals: Any, state: dict[Any, Any]) -> Iterable[Any]:
    """Distinct records of a stream: once, and again when it has not been seen for longer than W. What it keeps depends
    on when it was last silent, however long ago that is."""
    seen = state.setdefault("seen", {})
    for record in arrivals["a"]:
        if record not in seen or seen[record] < time - W:
            seen[record] = time
            yield record


def median(values: Iterable[int]) -> int:
    """The lower one, of an even number."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def all_pairs(epochs: Epochs) -> Results:
    """The oracle of both plans."""
    a_s, b_s = ([(t, r) for t, epoch in enumerate(epochs) for r in epoch[name]] for name in "ab")
    pairs = [(max(t, u), a, b) for t, a in a_s for u, b in b_s if abs(t - u) <= W and a[0] == b[0]]
    results: Results = {}
    for time, a, b in pairs:
        values = [x[1] + y[1] for t, x, y in pairs if time - V <= t <= time and x[0] == a[0]]
        results.setdefault(time, Counter())[a, b, median(values)] += 1
    return results
