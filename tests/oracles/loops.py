"""Loops, one record after the other. Results are multisets of (time, result)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def halvings(epochs: Sequence[Sequence[tuple[int, int, int, int]]]) -> Counter[Any]:
    """Records (origin, number, halvings, restarts left) as they pass: ((epoch, restart, halving), record) in the inner
    loop, and (epoch, record) at the end.

    >>> sorted(halvings([[(2, 2, 0, 0)]]), key=str)
    [((0, 0, 0), (2, 2, 0, 0)), ((0, 0, 1), (2, 1, 1, 0)), (0, (2, 1, 1, 0))]
    """
    result = Counter()
    for epoch, records in enumerate(epochs):
        for origin, number, total, restarts in records:
            for outer in range(restarts + 1):
                left, inner = restarts - outer, 0
                result[(epoch, outer, inner), (origin, number, total, left)] += 1
                while number > 1:
                    number, total, inner = number // 2, total + 1, inner + 1
                    result[(epoch, outer, inner), (origin, number, total, left)] += 1
                if outer == restarts:
                    result[epoch, (origin, number, total, left)] += 1
                number = origin + total
    return result


def hops(epochs: Sequence[Sequence[tuple[int, int]]], increment: int) -> Counter[Any]:
    """Records (name, rounds left) as they pass, each time `increment` later; ("passed", count) for each time.

    >>> sorted(hops([[(7, 1)]], increment=2), key=str)
    [(0, ('passed', 1)), (0, (7, 1)), (2, ('passed', 1)), (2, (7, 0))]
    """
    passed = [
        (epoch + hop * increment, (name, rounds - hop))
        for epoch, records in enumerate(epochs)
        for name, rounds in records
        for hop in range(rounds + 1)
    ]
    times = [time for time, _ in passed]
    return Counter(passed + [(time, ("passed", times.count(time))) for time in set(times)])
