"""The folds of stateful operators on columns. The direct evaluation says what they do."""

from __future__ import annotations

from typing import Any

import numpy as np

from dataflow.columns import Columns
from dataflow.columns.pact import key_words
from dataflow.state.folds.fold import Fold, fold

STATE = {"total": "i8", "before": "i8", "at": "i8", "over": "b1"}
OUTPUT = {"k": "i8", "v": "i8"}
PENDING = {"amount": "i8"}


@fold(state=STATE, output=OUTPUT, pending=PENDING)
def add(time, key, value, state, emit, later):
    if state.at != time + 1:
        state.before = state.total
        state.at = time + 1
    state.total += value
    emit.row(key, (value * 3 + state.before) % 10_007)
    if value % 3 == 0:
        later.at(time + value % 4 + 1, value % 5)


@fold(state=STATE, output=OUTPUT, pending=PENDING, create=False)
def add_to_known(time, key, value, state, emit):
    if state.at != time + 1:
        state.before = state.total
        state.at = time + 1
    state.total += 100 * value
    emit.row(key, (value * 11 + state.before) % 10_007)


@fold(state=STATE, output=OUTPUT, pending=PENDING)
def come_back(time, key, value, state, emit):
    if state.at != time + 1:
        state.before = state.total
        state.at = time + 1
    state.total += value
    emit.row(key, (value * 7 + state.before) % 10_007)


@fold(state=STATE, output=OUTPUT, pending=PENDING, forget="over")
def come_back_and_go(time, key, value, state, emit):
    if state.at != time + 1:
        state.before = state.total
        state.at = time + 1
    state.total += value
    emit.row(key, value * 7 % 10_007)
    state.over = (time + key) % 3 == 0


@fold(state={"total": "i8"}, output=OUTPUT)
def run_total(key, value, state):
    state.total += value
    return key, state.total % 10_007


FOLDS = (add, add_to_known, come_back, come_back_and_go, run_total)


def folds(compiled: bool) -> tuple[Fold, ...]:
    """All of them."""
    return FOLDS if compiled else tuple(each.without_compiling() for each in FOLDS)


def in_batches(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
    """A key's total at each time at which it has records, new ones or ones that come back."""
    due = notificator.due
    keys = [*(batch["k"].tolist() if len(batch) else []), *due["key"].tolist()]
    values = [*(batch["v"].tolist() if len(batch) else []), *due["amount"].tolist()]
    if not keys:
        return None
    k, v = np.array(keys, np.int64), np.array(values, np.int64)
    back = v % 3 == 0
    if back.any():
        notificator.notify_at(time + v[back] % 4 + 1, k[back], amount=v[back] % 5 + 1)
    rows = state.rows(key_words(k))
    np.add.at(state["total"], rows, v)
    unique, first = np.unique(k, return_index=True)
    return {"k": unique, "v": state["total"][rows[first]] % 10_007}
