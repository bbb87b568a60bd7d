"""Maximal frequent patterns over a sliding window: the second application of the papers on optimal migration.

Section 6 of the live version has it in words.

A tweet enters twice: when it comes (+1), and when it leaves the window (-1). The *generator* makes of it all patterns:
combinations of its words. The *detector* counts them, by pattern. It reports those that occur often enough and have no
frequent pattern above them, one with more words. What is in a frequent pattern is frequent itself, so those with one
more word decide. They are in other bins, on other workers: that is what the loop is for. A pattern that becomes
frequent, or is no more, says so through it to those with one word less, and to itself.

The loop is in the root of the dataflow, where times are numbers, because state moves at a time. So an epoch is two
times: 2e, at which counts change, and 2e + 1, at which everybody has heard of everybody else and reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import megaphone
from dataflow import Scope, Stream
from megaphone.assembly import Migratable
from megaphone.control.updates import Update

Pattern: TypeAlias = tuple[int, ...]  # words, ascending
Tweet: TypeAlias = tuple[int, Sequence[int]]  # +1 or -1, and its words
COUNT, ABOVE, FREQUENT, REPORTED = range(
    4
)  # of a pattern: how often it occurs, how many lie right above, what was told
Row: TypeAlias = list[int]
Change: TypeAlias = tuple[Pattern, int, int]  # pattern, COUNT or ABOVE, by how much
AGAIN, REPORT = "again", "report"
Said: TypeAlias = tuple[
    str, Pattern, int
]  # AGAIN: to whom, by how much; REPORT: a pattern is maximal now (1) or not (0)


def generated(tweet: Tweet, longest: int) -> Iterator[Change]:
    """The patterns of a tweet: each combination of up to so many of its words."""
    amount, words = tweet
    once = sorted(set(words))
    for size in range(1, min(longest, len(once)) + 1):
        for pattern in combinations(once, size):
            yield pattern, COUNT, amount


def detecting(threshold: int) -> Callable[[int, list[Change], dict[Pattern, Row], object], Iterable[Said]]:
    """The detector's fold, for bins of patterns."""

    def detect(time: int, changes: list[Change], state: dict[Pattern, Row], _: object) -> Iterator[Said]:
        touched: dict[Pattern, Row] = {}
        for pattern, what, amount in changes:
            row = touched[pattern] = state.setdefault(pattern, [0, 0, 0, 0])
            row[what] += amount
        for pattern, row in sorted(touched.items()):
            yield from _announced(pattern, row, threshold) if time % 2 == 0 else _reported(pattern, row)
            if not any(row):
                del state[pattern]

    return detect


def _announced(pattern: Pattern, row: Row, threshold: int) -> Iterator[Said]:
    """At 2e: whether it is frequent has changed, and those below it hear of it."""
    frequent = int(row[COUNT] >= threshold)
    if frequent != row[FREQUENT]:
        step, row[FREQUENT] = frequent - row[FREQUENT], frequent
        yield AGAIN, pattern, 0  # to decide, when all have said so
        if len(pattern) > 1:
            for below in combinations(pattern, len(pattern) - 1):
                yield AGAIN, below, step


def _reported(pattern: Pattern, row: Row) -> Iterator[Said]:
    """At 2e + 1: whether it is maximal has changed."""
    maximal = int(row[FREQUENT] and not row[ABOVE])
    if maximal != row[REPORTED]:
        row[REPORTED] = maximal
        yield REPORT, pattern, maximal


def mine(
    scope: Scope,
    control: Stream[Update],
    tweets: Stream[Tweet],
    *,
    threshold: int,
    longest: int = 3,
    bins: int = 64,
) -> tuple[Migratable[Said], Stream[tuple[Pattern, int]]]:
    """The detector, for a controller, and what it reports: at odd times, patterns that are maximal now (1), or are no
    more (0). Tweets are sent at even times."""
    loop, again = scope.feedback(1, "again")
    changes: Stream[Change] = tweets.flat_map(lambda tweet: generated(tweet, longest), name="generator")
    detected = megaphone.unary(
        control, changes.concat(again), key=_pattern, fold=detecting(threshold), by_key=True, bins=bins, name="detector"
    )
    detected.filter(lambda said: said[0] == AGAIN).map(lambda said: (said[1], ABOVE, said[2])).connect_loop(loop)
    return detected, detected.filter(lambda said: said[0] == REPORT).map(lambda said: (said[1], said[2]))


def _pattern(change: Change) -> Pattern:
    return change[0]
