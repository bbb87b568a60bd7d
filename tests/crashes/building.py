"""The nodes of a description as operators of the engine, each under a name of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import megaphone
from dataflow import Stream
from dataflow.columns import Columns
from dataflow.lowlevel import Keeps
from dataflow.state import native
from megaphone.plans.query import Query
from tests.crashes import timed_building, timed_meaning
from tests.crashes.description import COLUMNS, ROWS, Node, Record
from tests.fuzz import build_columns, build_rows, build_state, folds
from tests.fuzz.build_columns import columns_of
from tests.fuzz.description import PRIME
from tests.fuzz.functions import event_time, lateness, paired

Numbers = tuple[int, ...]


def build(node: Node, name: str, streams: list[Any], configuration: Any, bins: int, made: list[Any]) -> list[Any]:
    """The streams that come out of a node. Operators that migrate are added to `made`."""
    if node.kind == "partition":
        return build_rows.partition(streams[0], node.numbers[0])
    if node.kind == "concat":
        return [streams[0].concat(*streams[1:])]
    rooms: Any = build_rows if node.form == ROWS else build_columns
    if node.kind == "join":
        return [rooms.join(*streams)]
    if node.kind in timed_meaning.TIMED:
        operator, out = timed_building.build(node.kind, streams, node.numbers, name, configuration, bins)
        made += [operator] * (configuration is not None)
        return [out]
    if node.kind in KEEPING:
        return [KEEPING[node.kind](streams[0], node.numbers, name)]
    if node.form == COLUMNS and node.kind in COLUMN_STATE:
        operators, options = (native, {}) if configuration is None else (megaphone, {"bins": bins})
        inputs = streams if configuration is None else [configuration, *streams]
        out = COLUMN_STATE[node.kind](operators, inputs, node.numbers, {**options, "name": name})
        made += [out] * (configuration is not None)
        return [out.columns.map(TOGETHER[node.kind]) if node.kind in TOGETHER else out]
    if configuration is not None:
        made.append(_migratable(node, streams, configuration, {"bins": bins, "name": name}))
        return [made[-1].map(_combined)] if node.kind == "window_join" else made[-1:]
    return [rooms.UNARY[node.kind](streams[0], node.numbers)]


def payload(form: str, records: tuple[Record, ...]) -> Any:
    """Records as an input of a form wants them."""
    return list(records) if form == ROWS else columns_of(records)


# ---------------------------------------------------------------------------------------------------------------- rows


def _key(record: Record) -> int:
    return record[0]


def _run(key: int, value: int, total: int | None) -> tuple[int, list[Record]]:
    total = (total or 0) + value
    return total, [(key, total % PRIME)]


def _sums(stream: Any) -> Any:
    """One record by key and time, so that the order within a time makes no difference."""
    return stream.aggregate(_key, int, lambda total, record: total + record[1], lambda k, total: (k, total))


def _tick(key: int, value: int, count: int | None) -> tuple[int, list[Record]]:
    count = (count or 0) + 1
    return count, [(key, count)]


def _combined(three: tuple[Record, Record, Record]) -> Record:
    (key, a), (_, b), (_, c) = three
    return key, paired(paired(a, b), c)


def _delay(stream: Any, numbers: Numbers, name: str) -> Any:
    return stream.delay(lambda t, r: t + lateness(numbers[0], r[1]), name=name)


def _feedback(stream: Any, numbers: Numbers, name: str) -> Any:
    loop, cycle = stream.scope.feedback(numbers[0], name)
    merged = stream.concat(cycle)
    again = merged.filter(lambda r: r[1] > 0).exchange(lambda r: r[1]).map(lambda r: (r[0], r[1] // 3))
    again.connect_loop(loop)
    return merged


def _windows(stream: Any, numbers: Numbers, name: str) -> Any:
    slide, size = numbers[0], numbers[0] * numbers[1]

    def stamp(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, batch.with_columns({"t": event_time(message.time, batch["v"])}))

    stamped: Stream[Columns] = stream.unary("stamp", lambda _: stamp, keeps=Keeps.NOTHING)
    found = stamped.columns.sliding("t", size, slide, "k", name=name, total=("sum", "v"))
    return found.columns.map(lambda batch: {"k": batch["k"], "v": (batch["total"] * 7 + batch["window_end"]) % PRIME})


def _native_running(stream: Any, numbers: Numbers, name: str) -> Any:
    return native.state_machine(_sums(stream), fold=_run, name=name)


def _native_totals(stream: Any, numbers: Numbers, name: str) -> Any:
    return native.unary(stream, key=_key, fold=build_state._totals, name=name)


def _native_tally(stream: Any, numbers: Numbers, name: str) -> Any:
    return native.state_machine(stream, fold=_tick, name=name)


KEEPING: dict[str, Callable[[Any, Numbers, str], Any]] = {
    "delay": _delay,
    "feedback": _feedback,
    "windows": _windows,
    "native_running": _native_running,
    "native_totals": _native_totals,
    "native_tally": _native_tally,
}


def _migratable(node: Node, streams: list[Any], configuration: Any, options: dict[str, Any]) -> Any:
    if node.kind == "tally":
        return megaphone.state_machine(configuration, *streams, fold=_tick, **options)
    by_key = bool(node.numbers[0])
    if node.kind == "window_join":
        named = dict(zip("abc", streams, strict=True))
        query = Query(("a", "b", "c"), node.numbers[0], on=0)
        return megaphone.window_join(configuration, named, query, plan="(a b) c", **options)
    if node.kind == "totals":
        return megaphone.unary(configuration, *streams, key=_key, fold=build_state._totals, by_key=by_key, **options)
    if node.kind == "versus":
        return megaphone.binary(configuration, *streams, key=_key, fold=build_state._versus, by_key=by_key, **options)
    return megaphone.state_machine(configuration, _sums(streams[0]), fold=_run, **options)


# ------------------------------------------------------------------------------------------------------------- columns

Operators = Any  # the module `megaphone`, or `native`


def _machine(operators: Operators, inputs: list[Any], numbers: Numbers, options: dict[str, Any]) -> Any:
    add, _, come_back, come_back_and_go, _ = folds.folds(compiled=False)
    last = come_back_and_go if numbers[0] else come_back
    return operators.state_machine(*inputs, key="k", value="v", fold=add, due=last, **options)


def _ordered(operators: Operators, inputs: list[Any], numbers: Numbers, options: dict[str, Any]) -> Any:
    run_total = folds.folds(compiled=False)[-1]
    return operators.state_machine(*inputs, key="k", value="v", fold=run_total, order=["v"], **options)


def _two_folds(operators: Operators, inputs: list[Any], numbers: Numbers, options: dict[str, Any]) -> Any:
    add, known, come_back, come_back_and_go, _ = folds.folds(compiled=False)
    last = come_back_and_go if numbers[0] else come_back
    values = {"value": "v", "right_value": "v"}
    return operators.binary(*inputs, key="k", fold=add, right_fold=known, due=last, **values, **options)


def _batches(operators: Operators, inputs: list[Any], numbers: Numbers, options: dict[str, Any]) -> Any:
    state = {"total": "i8"}
    return operators.unary(*inputs, key="k", fold=folds.in_batches, state=state, pending=folds.PENDING, **options)


def _pairs(operators: Operators, inputs: list[Any], numbers: Numbers, options: dict[str, Any]) -> Any:
    *before, right = inputs
    renamed = right.columns.map(lambda batch: {"k": batch["k"], "v2": batch["v"]})
    return operators.join(*before, renamed, key="k", value=["v"], right_value=["v2"], **options)


def _together(batch: Columns) -> dict[str, Any]:
    return {"k": batch["key"], "v": paired(batch["v"], batch["v2"])}


def _window_pairs(operators: Operators, inputs: list[Any], numbers: Numbers, options: dict[str, Any]) -> Any:
    control, a, b = inputs
    query = Query(("a", "b"), numbers[0], on="k")
    return operators.window_join(control, {"a": a, "b": b}, query, plan="a b", **options)


def _within_window(batch: Columns) -> dict[str, Any]:
    return {"k": batch["a_k"], "v": paired(batch["a_v"], batch["b_v"])}


COLUMN_STATE: dict[str, Callable[[Operators, list[Any], Numbers, dict[str, Any]], Any]] = {
    "machine": _machine,
    "native_machine": _machine,
    "ordered": _ordered,
    "two_folds": _two_folds,
    "batches": _batches,
    "pairs": _pairs,
    "window_pairs": _window_pairs,
}
TOGETHER = {"pairs": _together, "window_pairs": _within_window}  # kinds whose rows are of two records
