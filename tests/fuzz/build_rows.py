"""Nodes of rows as operators of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow import Stream
from dataflow.columns import Columns
from dataflow.lowlevel import Exchange
from tests.fuzz.description import PRIME, Record
from tests.fuzz.functions import FILTERS, MAPS, ROUTES, copies, lateness, paired

Rows = Stream[Record]
Numbers = tuple[int, ...]


def _key(record: Record) -> int:
    return record[0]


def _aggregate(stream: Rows, numbers: Numbers) -> Rows:
    if numbers[0] == 3:
        return stream.count(_key)
    if numbers[0] == 4:
        return stream.aggregate(
            _key, lambda: (0, 0), lambda s, r: (s[0] + r[1], s[1] + 1), lambda k, s: (k, s[0] // s[1])
        )
    if numbers[0] == 0:
        return stream.aggregate(_key, int, lambda n, r: n + r[1], lambda k, n: (k, n % PRIME))
    best = (min, max)[numbers[0] - 1]

    def fold(state: int | None, record: Record) -> int:
        return record[1] if state is None else best(state, record[1])

    return stream.aggregate(_key, lambda: None, fold, lambda k, v: (k, v % PRIME))


def _reduce(stream: Rows, numbers: Numbers) -> Rows:
    def reduce(k: int, records: list[Record]) -> list[Record]:
        return [*((k, v) for v in {v for _, v in records}), (k, len(records))]

    return stream.reduce(_key, reduce)


def _iterate(stream: Rows, numbers: Numbers) -> Rows:
    variant = numbers[0]

    def halves(inner: Rows, least: int = 0) -> Rows:
        return inner.filter(lambda r: r[1] > least).map(lambda r: (r[0], r[1] // 2))

    def body(inner: Rows) -> Any:
        if variant == 0:
            return halves(inner.exchange(lambda r: r[1])), inner.filter(lambda r: r[1] == 0)
        if variant == 1:
            return halves(inner, 1).exchange(lambda r: r[0] + r[1])
        if variant == 2:
            once = inner.aggregate(lambda r: r, int, lambda n, _: n + 1, lambda r, _: r)
            return halves(once), once
        if variant == 3:
            return halves(inner), inner.filter(lambda r: r[1] % 2 == 0).iterate(
                lambda deeper: (halves(deeper.exchange(_key)), deeper.filter(lambda r: r[1] == 0))
            )
        later = halves(inner.exchange(_key)).delay(lambda t, r: (*t[:-1], t[-1] + r[1] % 2))
        return later, inner.filter(lambda r: r[1] % 2 == 1)

    return stream.iterate(body)


def _feedback(stream: Rows, numbers: Numbers) -> Rows:
    loop, cycle = stream.scope.feedback(numbers[0])
    merged = stream.concat(cycle)
    again = merged.filter(lambda r: r[1] > 0).exchange(lambda r: r[1]).map(lambda r: (r[0], r[1] // 3))
    again.connect_loop(loop)
    return merged


def _running(stream: Rows, numbers: Numbers) -> Rows:
    """A native operator with state: totals by key that outlive times."""

    def make(context: Any) -> Any:
        totals: dict[int, int] = {}
        waiting: dict[int, list[Record]] = {}
        due = context.notificator()

        def step(input: Any, output: Any) -> None:
            for message, batch in input:
                if message.time not in waiting:
                    due.notify_at(message.retain())
                waiting.setdefault(message.time, []).extend(batch)
            for capability in due:
                records = waiting.pop(capability.time)
                for k, v in records:
                    totals[k] = totals.get(k, 0) + v
                output.give(capability, [(k, totals[k] % PRIME) for k in dict(records)])

        return step

    return stream.unary("running", make, pact=Exchange(_key), frontier=True)


def _first(stream: Rows, numbers: Numbers) -> Rows:
    seen: set[int] = set()
    waiting: dict[int, list[Record]] = {}

    def on_batch(message: Any, batch: Any, output: Any, notificator: Any) -> None:
        if message.time not in waiting:
            notificator.notify_at(message.retain())
        waiting.setdefault(message.time, []).extend(batch)

    def on_notify(capability: Any, output: Any, notificator: Any) -> None:
        records = waiting.pop(capability.time)
        fresh = {k for k, _ in records} - seen
        seen.update(fresh)
        output.give(capability, [(k, min(v for k2, v in records if k2 == k)) for k in fresh])

    return stream.unary_notify("first", on_batch, on_notify, pact=Exchange(_key))


def _to_rows(stream: Stream[Any], numbers: Numbers) -> Rows:
    def step(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, batch.rows())

    return stream.unary("to rows", lambda _: step)


def partition(stream: Rows, parts: int) -> list[Rows]:
    """Streams by the remainder of a value."""
    if parts == 2:
        even, odd = stream.branch(lambda r: r[1] % 2 == 0)
        return [even, odd]
    return stream.partition(parts, lambda r: r[1] % parts)


def join(left: Rows, right: Rows) -> Rows:
    """Pairs at a time."""
    return left.join(right, _key, _key, lambda k, a, b: (k, paired(a[1], b[1])))


UNARY: dict[str, Callable[[Any, Numbers], Rows]] = {
    "to_rows": _to_rows,
    "map": lambda stream, n: stream.map(lambda r: MAPS[n[0]](*r)),
    "filter": lambda stream, n: stream.filter(lambda r: FILTERS[n[0]](*r)),
    "flat_map": lambda stream, n: stream.flat_map(lambda r: [(r[0], r[1] + i) for i in range(copies(r[1]))]),
    "exchange": lambda stream, n: stream.exchange(ROUTES[n[0]]),
    "broadcast": lambda stream, n: stream.broadcast(),
    "delay": lambda stream, n: stream.delay(lambda t, r: t + lateness(n[0], r[1])),
    "aggregate": _aggregate,
    "reduce": _reduce,
    "distinct": lambda stream, n: stream.aggregate(lambda r: r, int, lambda s, _: s, lambda r, _: r),
    "count": lambda stream, n: stream.count().map(lambda count: (0, count)),
    "iterate": _iterate,
    "feedback": _feedback,
    "running": _running,
    "first": _first,
}


def columns_of(records: Any) -> Columns:
    """Records as a batch of columns."""
    import numpy as np

    pairs = np.array(list(records), np.int64).reshape(-1, 2)
    return Columns({"k": pairs[:, 0].copy(), "v": pairs[:, 1].copy()})
