"""Stateful nodes as operators: native ones, or Megaphone's on a control stream."""

from __future__ import annotations

from typing import Any

import megaphone
from dataflow.columns import Columns
from dataflow.state import native as stateful
from tests.fuzz import folds
from tests.fuzz.description import PRIME, Control, Node, Record
from tests.fuzz.functions import paired, when_back

KINDS = ("totals", "versus", "row_machine", "machine", "ordered", "two_folds", "batches", "pairs")


def build(node: Node, streams: list[Any], control: Control | None, configuration: Any, compiled: bool) -> Any:
    """The operator's output as it is for a controller, and its stream of records."""
    options = {} if control is None else {"bins": control.bins}
    if node.form == "rows":
        return _rows(node, streams, configuration, options)
    operators: Any = megaphone if control is not None else stateful
    inputs = streams if control is None else [configuration, *streams]
    return _columns(node, operators, inputs, options, compiled)


def _rows(node: Node, streams: list[Any], configuration: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    by_key = bool(node.numbers[0])
    if node.kind == "totals":
        out = megaphone.unary(configuration, *streams, key=_key, fold=_totals, by_key=by_key, **options)
    elif node.kind == "versus":
        out = megaphone.binary(configuration, *streams, key=_key, fold=_versus, by_key=by_key, **options)
    else:
        timed = streams[0].unary("stamp", lambda _: _stamp)
        out = megaphone.state_machine(configuration, timed, fold=_machine, **options)
    return out, out


def _key(record: Record) -> int:
    return record[0]


def _stamp(input: Any, output: Any) -> None:
    for message, batch in input:
        output.give(message, [(k, (message.time, v)) for k, v in batch])


def _add(time: int, records: list[Record], state: dict[int, int], notificator: Any) -> None:
    for k, v in records:
        state[k] = state.get(k, 0) + v
        later = when_back(time, v)
        if later is not None:
            notificator.notify_at(later, (k, v % 5 + 1))


def _totals(time: int, records: list[Record], state: dict[int, int], notificator: Any) -> Any:
    _add(time, records, state, notificator)
    yield from ((k, state[k] % PRIME) for k in dict(records))


def _versus(
    time: int, left: list[Record], right: list[Record], state: dict[int, int], notificator: Any, again: Any
) -> Any:
    _add(time, left, state, notificator)
    for k, v in right:
        yield k, (state.get(k, 0) + v) % PRIME
        if v % 2 == 0 and v > 0:
            again.notify_at(time + 2, (k, v - 1))


def _machine(key: int, value: tuple[int, int], state: Any) -> Any:
    time, v = value
    at, before, total = state or (-1, 0, 0)
    if at != time:
        at, before = time, total
    return (at, before, total + v), [(key, (v * 3 + before) % PRIME)]


def _columns(node: Node, operators: Any, inputs: list[Any], options: dict[str, Any], compiled: bool) -> tuple[Any, Any]:
    add, add_to_known, come_back, come_back_and_go, run_total = folds.folds(compiled)
    last = come_back_and_go if node.numbers and node.numbers[0] else come_back
    if node.kind == "machine":
        out = operators.state_machine(*inputs, key="k", value="v", fold=add, due=last, **options)
    elif node.kind == "ordered":
        out = operators.state_machine(*inputs, key="k", value="v", fold=run_total, order=["v"], **options)
    elif node.kind == "two_folds":
        out = operators.binary(
            *inputs, key="k", value="v", right_value="v", fold=add, right_fold=add_to_known, due=last, **options
        )
    elif node.kind == "batches":
        state, pending = {"total": "i8"}, folds.PENDING
        out = operators.unary(*inputs, key="k", fold=folds.in_batches, state=state, pending=pending, **options)
    else:
        return _pairs(node, operators, inputs, options)
    return out, out


def _pairs(node: Node, operators: Any, inputs: list[Any], options: dict[str, Any]) -> tuple[Any, Any]:
    *before, right = inputs
    renamed = right.columns.map(lambda batch: {"k": batch["k"], "v2": batch["v"]})
    unique = "right" if node.numbers[0] else None
    out = operators.join(*before, renamed, key="k", value=["v"], right_value=["v2"], unique=unique, **options)

    def together(batch: Columns) -> dict[str, Any]:
        return {"k": batch["key"], "v": paired(batch["v"], batch["v2"])}

    return out, out.columns.map(together)
