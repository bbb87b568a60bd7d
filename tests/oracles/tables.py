"""Joins and counts, by looking at everything. Results are multisets of (time, result)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def join(left: Sequence[tuple[Any, Any]], right: Sequence[tuple[Any, Any]]) -> Counter[Any]:
    """(key, left, right) for every pair at equal times in which the left's first is the right's second.

    >>> join([(0, ("k", 1)), (1, ("k", 2))], [(0, (3, "k"))])
    Counter({(0, ('k', ('k', 1), (3, 'k'))): 1})
    """
    return Counter((t, (a[0], a, b)) for t, a in left for u, b in right if t == u and a[0] == b[1])


def word_count(lines: Sequence[Sequence[str]]) -> Counter[Any]:
    """("epoch", word, occurrences) and ("so far", word, occurrences up to then) for each word of each epoch.

    >>> sorted(word_count([["a"], ["a a"]]))
    [(0, ('epoch', 'a', 1)), (0, ('so far', 'a', 1)), (1, ('epoch', 'a', 2)), (1, ('so far', 'a', 3))]
    """
    words = [" ".join(some).split() for some in lines]
    result = Counter()
    for epoch, now in enumerate(words):
        before = [word for some in words[: epoch + 1] for word in some]
        for word in set(now):
            result[epoch, ("epoch", word, now.count(word))] += 1
            result[epoch, ("so far", word, before.count(word))] += 1
    return result


def total_words(lines: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
    """(word, occurrences in all epochs)."""
    words = " ".join(line for some in lines for line in some).split()
    return [(word, words.count(word)) for word in set(words)]


def count_by_time(records: Sequence[tuple[Any, Any]]) -> Counter[Any]:
    """(record, occurrences at its time) for each record of each time.

    >>> count_by_time([(3, "a"), (4, "a"), (3, "a")]) == Counter([(3, ("a", 2)), (4, ("a", 1))])
    True
    """
    return Counter((time, (record, records.count((time, record)))) for time, record in set(records))


def records_and_counts(epochs: Sequence[Sequence[Any]]) -> Counter[Any]:
    """Every record, and ("count", record, occurrences) for each record of each epoch."""
    records = [(epoch, record) for epoch, some in enumerate(epochs) for record in some]
    counts = [(epoch, ("count", record, records.count((epoch, record)))) for epoch, record in set(records)]
    return Counter(records + counts)
