"""Maximal frequent patterns, by trying everything: for each epoch, all combinations of words in the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

Pattern = tuple[int, ...]


def maximal_patterns(tweets: Sequence[Sequence[int]], threshold: int, longest: int) -> set[Pattern]:
    """Patterns of up to so many words that occur in so many tweets, and are in no other such pattern."""
    counts = Counter(
        pattern
        for words in tweets
        for size in range(1, longest + 1)
        for pattern in combinations(sorted(set(words)), size)
    )
    frequent = {pattern for pattern, count in counts.items() if count >= threshold}
    return {one for one in frequent if not any(set(one) < set(other) for other in frequent)}


def reports(epochs: Sequence[Sequence[Sequence[int]]], window: int, threshold: int, longest: int) -> list[object]:
    """(epoch, (pattern, 1 if it is maximal from now on, else 0)), sorted: tweets of epoch e are in the window up to
    epoch e + window - 1."""
    before: set[Pattern] = set()
    found: list[object] = []
    for epoch in range(len(epochs) + window):
        inside = [words for each in epochs[max(0, epoch - window + 1) : epoch + 1] for words in each]
        now = maximal_patterns(inside, threshold, longest)
        found += [(epoch, (pattern, int(pattern in now))) for pattern in sorted(before ^ now)]
        before = now
    return sorted(found)  # type: ignore[type-var]
