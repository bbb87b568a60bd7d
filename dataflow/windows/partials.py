"""Columns before they become state: the rows of a batch that are of one key and one pane (or of one run of a session)
are aggregated first, all at once, so that Python handles groups and not rows.

A group leaves as (key, first time, [last time, states]): the states of its aggregates, as `WindowAggregates.add` would
have made them of its rows one by one. What numpy cannot do for a column (strings, a user's fold) is done row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dataflow.columns import sums
from dataflow.columns.batch import Columns
from dataflow.columns.column import Array, Column, Integers
from dataflow.columns.grouping import codes_of
from dataflow.values import Value
from dataflow.windows import sketches

_SMALL = 1 << 16  # codes below it are sorted by radix


def listed(batch: Columns, name: str) -> list[Value]:
    """A column as Python's own values."""
    return [row[0] for row in batch.select([name]).rows()]


@dataclass(frozen=True)
class Groups:
    """Rows of a batch in an order in which groups are together; within a group, in the order of their times if that
    was asked for."""

    batch: Columns
    order: Integers
    starts: Integers
    times: Integers  # of the rows, in that order

    @cached_property
    def counts(self) -> Integers:
        """How many rows each group has."""
        return np.diff(self.starts, append=len(self.order))

    @cached_property
    def firsts(self) -> list[int]:
        """The earliest time of each group."""
        return list(np.minimum.reduceat(self.times, self.starts).tolist())

    @cached_property
    def lasts(self) -> list[int]:
        """The latest time of each group."""
        return list(np.maximum.reduceat(self.times, self.starts).tolist())

    def numbers(self, name: str) -> Array | None:
        """A column of numbers, in order; None if it holds something else."""
        column = self.batch.column(name)
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iufb" or column.itemsize > 8:
            return None
        kind = {"f": np.float64, "u": np.uint64}.get(column.dtype.kind, np.int64)
        ordered: Array = column.astype(kind, copy=False)[self.order]
        return ordered

    def values(self, name: str) -> list[Value]:
        """Any column, in order, as Python's values."""
        return listed(self.batch.select([name]).take(self.order), name)

    def keys(self, by: Sequence[str]) -> list[Value]:
        """The key of each group: a value, or a tuple of several; None without any columns."""
        first = self.batch.select(by).take(self.order[self.starts])
        if not by:
            return [None] * len(self.starts)
        return [row[0] for row in first.rows()] if len(by) == 1 else list(first.rows())

    def tally(self, codes: Array) -> tuple[Integers, Integers, Integers]:
        """Of codes in order: by group and code how many there are, as (groups, codes, numbers)."""
        groups = np.repeat(np.arange(len(self.starts)), self.counts)
        by = np.lexsort((codes, groups))
        groups, codes = groups[by], codes[by]
        new = np.ones(len(codes), bool)
        new[1:] = (groups[1:] != groups[:-1]) | (codes[1:] != codes[:-1])
        at = np.flatnonzero(new)
        return groups[at], codes[at], np.diff(at, append=len(codes))


def grouped(batch: Columns, by: Sequence[str], times: Integers, pane: int) -> Groups:
    """The rows of a batch by key and by stretch of time, of length `pane`. O(n) as long as there are few groups."""
    stretches = times // pane
    stretches -= stretches.min()
    codes, sizes = _codes(batch, by, [stretches])
    order = _sorted(codes, sizes)
    ordered = codes[order]
    return Groups(batch, order, _starts(ordered[1:] != ordered[:-1]), times[order])


def runs(batch: Columns, by: Sequence[str], times: Integers, gap: int) -> Groups:
    """The rows of a batch by key, cut where two that follow each other in time are `gap` or more apart."""
    codes, _ = _codes(batch, by, [])
    order = np.lexsort((times, codes))
    ordered, codes = times[order], codes[order]
    return Groups(batch, order, _starts((codes[1:] != codes[:-1]) | (ordered[1:] - ordered[:-1] >= gap)), ordered)


def _starts(differ: Array) -> Integers:
    return np.concatenate([np.zeros(1, np.int64), np.flatnonzero(differ) + 1])


def _codes(batch: Columns, by: Sequence[str], more: Sequence[Integers]) -> tuple[Integers, int]:
    """One number for each row, equal where all of the columns are; and a bound that none reaches."""
    codes, size = np.zeros(len(batch), np.int64), 1
    for column in (*(_dense(batch.column(name)) for name in by), *more):
        each = int(column.max()) + 1
        if size * each > _SMALL:
            codes, column = _dense(codes), _dense(column)
            size, each = int(codes.max()) + 1, int(column.max()) + 1
        codes = codes * each + column
        size *= each
    if size > _SMALL:
        codes = _dense(codes)
        size = int(codes.max()) + 1
    return codes, size


def _dense(column: Column) -> Integers:
    """Places in the dictionary of a column's values."""
    import pyarrow as pa  # programs of rows do not wait for it

    array = pa.array(codes_of(column)) if isinstance(column, np.ndarray) else column
    encoded = array.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def _sorted(codes: Integers, size: int) -> Integers:
    return np.argsort(codes.astype(np.uint16) if size <= _SMALL else codes, kind="stable")


# The states of each kind of aggregate, group by group; None where a column does not allow it


def count_states(groups: Groups, name: str | None) -> list[Value]:
    """Numbers of rows."""
    return list(groups.counts.tolist())


def sum_states(groups: Groups, name: str) -> list[Value] | None:
    """Sums; those of integers are exact, however large."""
    values = groups.numbers(name)
    if values is None:
        return None
    if values.dtype.kind == "f":
        return list(np.add.reduceat(values, groups.starts).tolist())
    lower, upper = sums.sums(values, groups.starts)
    if upper is None:
        return list(lower.tolist())
    return [sums.exact(lower, upper, row) for row in range(len(lower))]


def extreme_states(groups: Groups, name: str, least: bool) -> list[Value] | None:
    """The least or the greatest values."""
    values = groups.numbers(name)
    if values is None or groups.batch[name].dtype.kind == "b":
        return None
    return list((np.minimum if least else np.maximum).reduceat(values, groups.starts).tolist())


def mean_states(groups: Groups, name: str) -> list[Value] | None:
    """Sums with their numbers."""
    totals = sum_states(groups, name)
    return None if totals is None else list(zip(totals, groups.counts.tolist(), strict=True))


def moment_states(groups: Groups, name: str) -> list[Value] | None:
    """Number, mean and sum of squared distances from it."""
    values = groups.numbers(name)
    if values is None:
        return None
    values, counts = values.astype(np.float64, copy=False), groups.counts
    means = np.add.reduceat(values, groups.starts) / counts
    apart = values - np.repeat(means, counts)
    squares = np.add.reduceat(apart * apart, groups.starts)
    return list(zip(counts.tolist(), means.tolist(), squares.tolist(), strict=True))


def end_states(groups: Groups, name: str, first: bool) -> list[Value]:
    """The first or the last value with its time: of several at that time, the least or the greatest."""
    ends = groups.firsts if first else groups.lasts
    at = np.flatnonzero(groups.times == np.repeat(np.array(ends, np.int64), groups.counts))
    owners = np.repeat(np.arange(len(groups.starts)), groups.counts)[at]
    found: list[Value] = [None] * len(ends)
    values = listed(groups.batch.select([name]).take(groups.order[at]), name)
    for owner, value in zip(owners.tolist(), values, strict=True):
        pair = (ends[owner], value)
        known = found[owner]
        found[owner] = pair if known is None else min(known, pair) if first else max(known, pair)
    return found


def distinct_states(groups: Groups, name: str) -> list[Value]:
    """{value: 1}."""
    return _tallied(groups, *_in_dictionary(groups, name), number=1)


def register_states(groups: Groups, name: str) -> list[Value]:
    """The registers of a HyperLogLog: {register: rank}."""
    values, codes = _in_dictionary(groups, name)
    places = [sketches.register(value) for value in values]
    owners, codes, _ = groups.tally(codes)
    found: list[Value] = [{} for _ in groups.starts]
    for owner, code in zip(owners.tolist(), codes.tolist(), strict=True):
        register, rank = places[code]
        ranks = found[owner]
        ranks[register] = max(rank, ranks.get(register, 0))
    return found


def bucket_states(groups: Groups, name: str) -> list[Value] | None:
    """The buckets of a DDSketch: {bucket: number}."""
    values = groups.numbers(name)
    if values is None:
        return None
    places = sketches.buckets(values.astype(np.float64, copy=False))
    owners, places, numbers = groups.tally(places)
    found: list[Value] = [{} for _ in groups.starts]
    for owner, place, number in zip(owners.tolist(), places.tolist(), numbers.tolist(), strict=True):
        found[owner][place] = number
    return found


def _in_dictionary(groups: Groups, name: str) -> tuple[list[Value], Integers]:
    """The distinct values of a column, and for each row, in order, which it is."""
    codes = _dense(groups.batch.column(name))
    firsts = np.full(int(codes.max()) + 1, -1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    return listed(groups.batch.select([name]).take(firsts), name), codes[groups.order]


def _tallied(groups: Groups, values: list[Value], codes: Integers, number: int) -> list[Value]:
    owners, codes, _ = groups.tally(codes)
    found: list[Value] = [{} for _ in groups.starts]
    for owner, code in zip(owners.tolist(), codes.tolist(), strict=True):
        found[owner][values[code]] = number
    return found
