"""Nodes of columns as operators of the engine. Every stream has the columns k and v."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dataflow import Stream
from dataflow.columns import Columns
from tests.fuzz.build_rows import Numbers, columns_of
from tests.fuzz.description import PRIME
from tests.fuzz.functions import FILTERS, MAPS, copies, event_time, paired

Batches = Stream[Columns]
AGGREGATES: tuple[dict[str, Any], ...] = (
    {"x": ("sum", "v")}, {"x": ("min", "v")}, {"x": ("max", "v")}, {"x": "count"}, {"x": ("mean", "v")},
)  # fmt: skip


def _mapped(batch: Columns, number: int) -> dict[str, Any]:
    k, v = MAPS[number](batch["k"], batch["v"])
    return {"k": k, "v": v}


def _with(batch: Columns, number: int) -> dict[str, Any]:
    k, v = MAPS[number](batch["k"], batch["v"])
    return {"k2": k, "v2": v, "one": np.ones(len(batch), "i4")}


def _with_columns(stream: Any, numbers: Numbers) -> Batches:
    more = stream.columns.with_columns(lambda batch: _with(batch, numbers[0])).columns.project("v2", "k2")
    return more.columns.map(lambda batch: {"k": batch["k2"], "v": batch["v2"]})


def _flat_map(stream: Any, numbers: Numbers) -> Batches:
    def explode(batch: Columns) -> dict[str, Any]:
        many = copies(batch["v"])
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        return {"k": np.repeat(batch["k"], many), "v": np.repeat(batch["v"], many) + within}

    return stream.columns.map(explode)


def _aggregate(stream: Any, numbers: Numbers) -> Batches:
    found = stream.columns.aggregate("k", **AGGREGATES[numbers[0]])
    return found.columns.map(lambda batch: {"k": batch["k"], "v": batch["x"].astype("i8") % PRIME})


def _distinct(stream: Any, numbers: Numbers) -> Batches:
    def unique(batch: Columns) -> dict[str, Any]:
        return dict(zip(("k", "v"), np.unique(np.stack([batch["k"], batch["v"]]), axis=1), strict=True))

    return stream.columns.gather(["k", "v"], unique)


def _count(stream: Any, numbers: Numbers) -> Batches:
    found = stream.columns.aggregate(n="count")
    return found.columns.map(lambda batch: {"k": np.zeros(len(batch), "i8"), "v": batch["n"]})


def _windows(stream: Any, numbers: Numbers) -> Batches:
    slide, size = numbers[0], numbers[0] * numbers[1]

    def step(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, batch.with_columns({"t": event_time(message.time, batch["v"])}))

    stamped = stream.unary("stamp", lambda _: step)
    if size == slide:
        found = stamped.columns.tumbling("t", size, "k", total=("sum", "v"))
    else:
        found = stamped.columns.sliding("t", size, slide, "k", total=("sum", "v"))
    return found.columns.map(lambda batch: {"k": batch["k"], "v": (batch["total"] * 7 + batch["window_end"]) % PRIME})


def _to_columns(stream: Any, numbers: Numbers) -> Batches:
    def step(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, columns_of(batch))

    return stream.unary("to columns", lambda _: step)


def join(left: Any, right: Any) -> Batches:
    """Pairs at a time."""
    found = left.columns.join(right, "k")
    return found.columns.map(lambda batch: {"k": batch["k"], "v": paired(batch["v"], batch["v_right"])})


UNARY: dict[str, Callable[[Any, Numbers], Batches]] = {
    "to_columns": _to_columns,
    "map": lambda stream, n: stream.columns.map(lambda batch: _mapped(batch, n[0])),
    "with_columns": _with_columns,
    "filter": lambda stream, n: stream.columns.filter(lambda batch: FILTERS[n[0]](batch["k"], batch["v"])),
    "flat_map": _flat_map,
    "exchange": lambda stream, n: stream.columns.exchange(*(("k",), ("v",), ("k", "v"))[n[0]]),
    "aggregate": _aggregate,
    "distinct": _distinct,
    "count": _count,
    "windows": _windows,
}
