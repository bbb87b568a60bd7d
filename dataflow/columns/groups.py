"""Grouping and joining columns, by sorting: what operators on columns do with the rows of one time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dataflow.columns.arrow import join, type_name
from dataflow.columns.batch import Array, Columns

# What an aggregate keeps of rows, and how what was kept of several parts becomes one. A mean is a sum and a count.
_FIRST = {"count": "count", "sum": "sum", "min": "min", "max": "max"}
_AGAIN = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_KINDS = (*_FIRST, "mean")


class Aggregates:
    """Named aggregates of columns: {"bids": "count", "total": ("sum", "price")}.

    `partial` of rows, `merge` of partials, `finish` of what was merged: so parts can be aggregated where they are.
    """

    def __init__(self, by: Sequence[str], aggregates: Mapping[str, Any]) -> None:
        self.by = tuple(by)
        self._parts: list[tuple[str, str, str | None]] = []  # (name, what, column)
        self._means: dict[str, tuple[str, str]] = {}
        self._names = tuple(aggregates)
        for name, spec in aggregates.items():
            if name in self.by:
                raise ValueError(f"{name}={spec!r}: {name!r} is a column to group by: give the aggregate another name")
            self._add(name, *_parse(name, spec))

    def _add(self, name: str, what: str, column: str | None) -> None:
        if what == "mean":
            self._means[name] = (f"{name} sum", f"{name} count")
            self._parts += [(f"{name} sum", "sum", column), (f"{name} count", "count", None)]
        else:
            self._parts.append((name, what, column))

    def partial(self, batch: Columns) -> Columns:
        """One row per group of a batch."""
        return self._group(batch, [(name, _FIRST[what], column) for name, what, column in self._parts])

    def merge(self, partials: Sequence[Columns]) -> Columns:
        """One row per group of several partials."""
        joined = Columns.concat(partials)
        return self._group(joined, [(name, _AGAIN[what], name) for name, what, _ in self._parts])

    def finish(self, merged: Columns) -> Columns:
        """The aggregates that were asked for, in their order."""
        columns = {name: merged[name] for name in self.by}
        for name in self._names:
            if name in self._means:
                total, count = self._means[name]
                columns[name] = merged[total] / merged[count]
            else:
                columns[name] = merged[name]
        return Columns.trusted(columns, len(merged))

    def _group(self, batch: Columns, parts: Sequence[tuple[str, str, str | None]]) -> Columns:
        order, starts = group(batch, self.by)
        firsts = order[starts]
        columns: dict[str, Any] = {name: batch[name].take(firsts) for name in self.by}
        for name, what, column in parts:
            columns[name] = _reduce(what, None if column is None else batch[column], order, starts, column)
        return Columns.trusted(columns, len(starts))


def _parse(name: str, spec: Any) -> tuple[str, str | None]:
    what, column = (spec, None) if isinstance(spec, str) else spec
    if what not in _KINDS or (column is None) != (what == "count"):
        raise ValueError(
            f"{name}={spec!r} is not an aggregate: say 'count', or ('sum' | 'min' | 'max' | 'mean', column)"
        )
    return what, column


def _reduce(what: str, values: Any, order: Array, starts: Array, column: str | None) -> Array:
    if what == "count":
        counts: Array = np.diff(starts, append=len(order))
        return counts
    if not isinstance(values, np.ndarray):
        raise TypeError(f"column {column!r} holds strings, of which there is no {what}")
    if what == "sum" and values.dtype.kind in "bi":
        values = values.astype(np.int64, copy=False)
    ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[what]
    if not len(starts):
        nothing: Array = values[:0]
        return nothing
    result: Array = ufunc.reduceat(values[order], starts)
    return result


def group(batch: Columns, by: Sequence[str]) -> tuple[Array, Array]:
    """Rows in an order in which groups are together, and where each group starts. O(n log n)."""
    codes = [codes_of(batch[name]) for name in by]
    if not codes:
        return np.arange(len(batch)), np.zeros(1 if len(batch) else 0, np.int64)
    order = np.argsort(codes[0], kind="stable") if len(codes) == 1 else np.lexsort(codes[::-1])
    changed = np.zeros(len(order), bool)
    changed[:1] = True
    for column in codes:
        changed[1:] |= _differ(column[order])
    return order, np.flatnonzero(changed)


def _differ(ordered: Array) -> Array:
    """Whether each value is another than the one before. What is not a number (or a time) is like its kind."""
    differ: Array = ordered[1:] != ordered[:-1]
    if ordered.dtype.kind in "fcmM":
        nothing = ordered != ordered
        differ &= ~(nothing[1:] & nothing[:-1])
    return differ


def codes_of(column: Any) -> Array:
    """Numbers that are equal where values are; strings become their places in a dictionary."""
    if isinstance(column, np.ndarray):
        return column
    encoded = column.dictionary_encode(null_encoding="encode")
    codes: Array = encoded.indices.to_numpy(zero_copy_only=False)
    return codes


def match(left: Columns, right: Columns, on: Sequence[str], right_on: Sequence[str]) -> tuple[Array, Array]:
    """The pairs of rows with equal keys, as row numbers of both sides. O(n log n + pairs)."""
    left_codes, right_codes = _common_codes(left, right, on, right_on)
    order = np.argsort(right_codes, kind="stable")
    ordered = right_codes[order]
    starts = np.searchsorted(ordered, left_codes, "left")
    counts = np.searchsorted(ordered, left_codes, "right") - starts
    left_rows = np.repeat(np.arange(len(left_codes)), counts)
    within = np.arange(len(left_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return left_rows, order[np.repeat(starts, counts) + within]


def _common_codes(left: Columns, right: Columns, on: Sequence[str], right_on: Sequence[str]) -> tuple[Array, Array]:
    """One number per row of either side, equal where all key columns are."""
    from dataflow.columns.hashing import words_of

    columns: dict[str, Any] = {}
    for i, (ours, theirs) in enumerate(zip(on, right_on, strict=True)):
        pair = (left[ours], right[theirs])
        if _family(pair[0]) != _family(pair[1]):
            kinds = " and ".join(type_name(column) for column in pair)
            raise TypeError(f"a join compares {ours!r} with {theirs!r}, which hold {kinds}: make them one type first")
        if _family(pair[0]) == "integers":  # int64 and uint64 have no type in common: words, and who is negative
            columns[f"{i} negative"] = np.concatenate([column < 0 for column in pair])
            pair = (words_of(pair[0]), words_of(pair[1]))
        columns[f"{i}"] = join(ours, list(pair))
    order, starts = group(Columns.trusted(columns, len(left) + len(right)), tuple(columns))
    codes = np.empty(len(order), np.int64)
    codes[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    left_codes, right_codes = codes[: len(left)], codes[len(left) :]
    for column in columns.values():
        if isinstance(column, np.ndarray) and column.dtype.kind in "fcmM":  # NaN is one group, and equal to nothing
            nothing = column != column
            left_codes[nothing[: len(left)]], right_codes[nothing[len(left) :]] = -1, -2
    return left_codes, right_codes


def _family(column: Any) -> str:
    """What a column can be compared with: others of the same family."""
    if not isinstance(column, np.ndarray):
        return type_name(column).removeprefix("large_")
    kind = column.dtype.kind
    return "integers" if kind in "iub" else "floats" if kind == "f" else type_name(column)
