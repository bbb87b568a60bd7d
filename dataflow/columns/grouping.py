"""Grouping and joining columns, by sorting: what operators on columns do with the rows of one time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dataflow.columns import sums
from dataflow.columns.arrow import join, type_name
from dataflow.columns.batch import Columns
from dataflow.columns.column import Array, Column, Integers, Mask
from dataflow.columns.zones import plain, with_zone, zone_of
from dataflow.values import Value

# How an aggregate is made of rows, and how the aggregates of several parts become one. A mean is a sum and a count.
_FIRST = {"count": "count", "sum": "sum", "min": "min", "max": "max"}
_AGAIN = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_KINDS = (*_FIRST, "mean")

Aggregate: TypeAlias = str | tuple[str, str]
"""One as people write it: "count", or ("sum", "price")."""


class Aggregates:
    """Named aggregates of columns: {"bids": "count", "total": ("sum", "price")}.

    `partial` aggregates rows, `merge` several partials, `finish` gives the result: so each worker aggregates its own
    rows before any are sent.
    """

    def __init__(self, by: Sequence[str], aggregates: Mapping[str, Aggregate]) -> None:
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

    @property
    def sources(self) -> dict[str, str]:
        """The columns of a partial that hold what a column of the batch holds, and that column."""
        made = {name: column for name, what, column in self._parts if column is not None and what in ("min", "max")}
        return {**{name: name for name in self.by}, **made}

    def partial(self, batch: Columns) -> Columns:
        """One row per group of a batch."""
        return self._group(batch, [(name, _FIRST[what], column) for name, what, column in self._parts], False)

    def merge(self, partials: Sequence[Columns]) -> Columns:
        """One row per group of several partials."""
        halved = [name for name, what, _ in self._parts if what == "sum" and any(_upper(name) in p for p in partials)]
        joined = Columns.concat([_halved(partial, halved) for partial in partials] if halved else partials)
        return self._group(joined, [(name, _AGAIN[what], name) for name, what, _ in self._parts], bool(halved))

    def finish(self, merged: Columns, where: str) -> Columns:
        """The aggregates that were asked for, in their order. OverflowError for a sum that does not fit says `where`
        it is: the operator, and the time."""
        columns = {name: merged.column(name) for name in self.by}
        for name in self._names:
            if name in self._means:
                columns[name] = _mean(merged, *self._means[name])
            elif _upper(name) in merged:
                raise self._too_large(merged, name, where)
            else:
                columns[name] = merged[name]
        return Columns.trusted(columns, len(merged))

    def _too_large(self, merged: Columns, name: str, where: str) -> OverflowError:
        lower, upper = merged[name], merged[_upper(name)]
        row = int(sums.out_of_range(upper)[0])
        (key,) = merged.select(self.by).slice(row, row + 1).rows()
        column = next(column for part, _, column in self._parts if part == name)
        return OverflowError(
            f"{where}: the sum of column {column!r} for {_described(self.by, key)} is {sums.exact(lower, upper, row)}, "
            f"which {lower.dtype} cannot hold: make the column floats first, or use a mean"
        )

    def _group(self, batch: Columns, parts: Sequence[tuple[str, str, str | None]], halved: bool) -> Columns:
        order, starts = group(batch, self.by)
        firsts = order[starts]
        columns: dict[str, Column] = {name: batch.column(name).take(firsts) for name in self.by}
        for name, what, column in parts:
            if column is not None and what == "sum" and _is_integers(batch.column(column)):
                columns |= _sum(name, batch, column, order, starts, halved and _upper(name) in batch)
            else:
                columns[name] = _reduce(what, None if column is None else batch.column(column), order, starts, column)
        return Columns.trusted(columns, len(starts))


def _parse(name: str, spec: Aggregate) -> tuple[str, str | None]:
    what, column = (spec, None) if isinstance(spec, str) else spec
    if what not in _KINDS or (column is None) != (what == "count"):
        raise ValueError(
            f"{name}={spec!r} is not an aggregate: say 'count', or ('sum' | 'min' | 'max' | 'mean', column)"
        )
    return what, column


def _reduce(what: str, values: Column | None, order: Integers, starts: Integers, column: str | None) -> Array:
    if what == "count":
        return np.diff(starts, append=len(order))
    if not isinstance(values, np.ndarray):
        raise TypeError(f"column {column!r} holds strings, of which there is no {what}")
    if what == "sum" and values.dtype.kind == "M":
        raise TypeError(f"column {column!r} holds {type_name(values)}, of which there is neither a sum nor a mean")
    if not len(starts):
        nothing: Array = values[:0]
        return nothing
    if what == "sum" and values.dtype.kind == "m":
        return _sum_of_spans(values[order], starts, column)
    ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[what]
    result: Array = ufunc.reduceat(plain(values)[order], starts)
    return with_zone(result, zone_of(values))


def _is_integers(column: Column) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iub"


def _sum(name: str, batch: Columns, column: str, order: Integers, starts: Integers, halved: bool) -> dict[str, Array]:
    """Sums of integers, in two halves if one of them is too large. `halved`: the batch has them in halves already."""
    given = batch[column]
    values = given.astype(np.uint64 if given.dtype.kind == "u" else np.int64, copy=False)[order]
    if halved:
        lower, upper = sums.halves(values, batch[_upper(name)][order], starts)
    elif given.itemsize < 8 and len(starts):  # of less than 2^32 values of 32 bits
        lower, upper = np.add.reduceat(values, starts), None
    else:
        lower, upper = sums.sums(values, starts)
    return {name: lower} if upper is None else {name: lower, _upper(name): upper}


def _sum_of_spans(values: Array, starts: Integers, column: str | None) -> Array:
    numbers = values.astype(values.dtype.newbyteorder("="), copy=False).view(np.int64)
    missing = np.isnat(values)
    lower, upper = sums.sums(np.where(missing, 0, numbers), starts)
    if upper is not None:
        raise OverflowError(f"the sum of column {column!r} is more than {values.dtype} can hold: use a coarser unit")
    result = lower.view(values.dtype.newbyteorder("="))
    result[np.logical_or.reduceat(missing, starts)] = np.timedelta64("NaT")
    return result


def _upper(name: str) -> str:
    """The column of the upper halves of sums that are too large."""
    return f"{name}\0upper"  # which nobody calls a column


def _halved(partial: Columns, names: Sequence[str]) -> Columns:
    """A partial with these sums in halves, as another partial (or this one) has them."""
    columns = partial.columns
    for name in names:
        if _upper(name) not in columns:
            columns[name], columns[_upper(name)] = sums.split(partial[name])
    return Columns.trusted(columns, len(partial))


def _mean(merged: Columns, total: str, count: str) -> Array:
    """The mean. It is right even if the sum does not fit into 64 bits."""
    if _upper(total) not in merged:
        mean: Array = merged[total] / merged[count]
        return mean
    lower, upper, counts = merged[total], merged[_upper(total)], merged[count].tolist()
    return np.array([sums.exact(lower, upper, row) / counts[row] for row in range(len(merged))], np.float64)


def _described(names: Sequence[str], key: Sequence[Value]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, key, strict=True)) or "all rows"


def group(batch: Columns, by: Sequence[str]) -> tuple[Integers, Integers]:
    """Rows in an order in which groups are together, and where each group starts. O(n log n)."""
    codes = [codes_of(batch.column(name)) for name in by]
    if not codes:
        return np.arange(len(batch)), np.zeros(1 if len(batch) else 0, np.int64)
    order = np.argsort(codes[0], kind="stable") if len(codes) == 1 else np.lexsort(codes[::-1])
    changed = np.zeros(len(order), bool)
    changed[:1] = True
    for column in codes:
        changed[1:] |= _differ(column[order])
    return order, np.flatnonzero(changed)


def _differ(ordered: Array) -> Mask:
    """Whether each value differs from the one before. Not-a-number equals itself here, and so does not-a-time."""
    differ: Mask = ordered[1:] != ordered[:-1]
    if ordered.dtype.kind in "fcmM":
        nothing = ordered != ordered
        differ &= ~(nothing[1:] & nothing[:-1])
    return differ


def codes_of(column: Column) -> Array:
    """Numbers that are equal where values are; strings become their places in a dictionary."""
    if isinstance(column, np.ndarray):
        return plain(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False)


def match(left: Columns, right: Columns, on: Sequence[str], right_on: Sequence[str]) -> tuple[Integers, Integers]:
    """The pairs of rows with equal keys, as row numbers of both sides. O(n log n + pairs)."""
    left_codes, right_codes = _common_codes(left, right, on, right_on)
    order = np.argsort(right_codes, kind="stable")
    ordered = right_codes[order]
    starts = np.searchsorted(ordered, left_codes, "left")
    counts = np.searchsorted(ordered, left_codes, "right") - starts
    left_rows = np.repeat(np.arange(len(left_codes)), counts)
    within = np.arange(len(left_rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return left_rows, order[np.repeat(starts, counts) + within]


def _common_codes(
    left: Columns, right: Columns, on: Sequence[str], right_on: Sequence[str]
) -> tuple[Integers, Integers]:
    """One number per row of either side, equal where all key columns are."""
    from dataflow.columns.hashing import words_of

    columns: dict[str, Column] = {}
    for i, (ours, theirs) in enumerate(zip(on, right_on, strict=True)):
        pair = (left[ours], right[theirs])
        if _family(pair[0]) != _family(pair[1]):
            kinds = " and ".join(type_name(column) for column in pair)
            raise TypeError(f"a join compares {ours!r} with {theirs!r}, which hold {kinds}: make them one type first")
        if _family(pair[0]) == "integers":  # int64 and uint64 have no type in common: words, and who is negative
            columns[f"{i} negative"] = np.concatenate([column < 0 for column in pair])
            pair = (words_of(pair[0]), words_of(pair[1]))
        elif zone_of(pair[0]) is not None:  # a moment is the same in whatever zone it is told
            pair = (plain(pair[0]), plain(pair[1]))
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


def _family(column: Column) -> str:
    """The family of a column. Columns of one family can be compared."""
    if not isinstance(column, np.ndarray):
        return type_name(column).removeprefix("large_")
    kind = column.dtype.kind
    if kind in "mM":  # whatever the unit, but with a time zone or without
        return "spans" if kind == "m" else "moments" if zone_of(column) is None else "moments with a time zone"
    return "integers" if kind in "iub" else "floats" if kind == "f" else type_name(column)
