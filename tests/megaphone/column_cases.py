"""Random migrations of random streams of columns, against the same three properties as for rows (section 3.2).

Three operators share the cases: compiled folds over one input, compiled folds over two, and a function of batches.
Under the seeded scheduler folds run uncompiled, which lets them note where they run; `compiled=True` runs the same
folds compiled.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.columns.pact import key_words
from dataflow.state.folds.fold import Fold
from dataflow.testing import simulate
from tests.megaphone.cases import Agreed, Inputs, check_places, place, random_updates

STATE = {"total": "i8", "seen": "i4", "over": "b1"}
OUTPUT = {"key": "i8", "total": "i8"}
PENDING = {"amount": "i8"}
Noted = list[tuple[int, int]]


@dataclass
class Case:
    """What happens in one run."""

    kind: str
    peers: int
    bins: int
    times: int
    dense: bool
    ahead: int
    left: Inputs = field(default_factory=dict)  # (worker, time): [(key, value)]
    right: Inputs = field(default_factory=dict)
    updates: Inputs = field(default_factory=dict)
    compiled: bool = False


def folds(noted: Noted | None) -> tuple[Fold, Fold, Fold]:
    """A fold that adds and post-dates, one that adds to keys that exist, and one for what is due."""

    @megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING)
    def add(time, key, value, state, emit, later):
        if noted is not None:
            noted.append((int(time), int(key)))
        state.total += value
        state.seen += 1
        if value % 3 == 0 and value > 0:
            later.at(time + value % 4 + 1, -1)

    @megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING, create=False)
    def add_to_known(time, key, value, state, emit):
        if noted is not None:
            noted.append((int(time), int(key)))
        state.total += 100 * value

    @megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING, forget="over")
    def come_back(time, key, value, state, emit):
        if noted is not None:
            noted.append((int(time), int(key)))
        state.total += value
        emit.row(key, state.total)
        state.over = state.seen > 4

    return add, add_to_known, come_back


@megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING)
def add(time, key, value, state, emit, later):
    state.total += value
    state.seen += 1
    if value % 3 == 0 and value > 0:
        later.at(time + value % 4 + 1, -1)


@megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING, create=False)
def add_to_known(time, key, value, state, emit):
    state.total += 100 * value


@megaphone.fold(state=STATE, output=OUTPUT, pending=PENDING, forget="over")
def come_back(time, key, value, state, emit):
    state.total += value
    emit.row(key, state.total)
    state.over = state.seen > 4


def in_batches(noted: Noted) -> Any:
    """The same as `add` and `come_back` without forgetting, as a function of batches."""

    def fold(time: int, batch: Columns, state: Any, notificator: Any) -> Any:
        if len(batch):
            noted.extend((time, key) for key in batch["key"].tolist())
            rows = state.rows(key_words(batch["key"]))
            np.add.at(state["total"], rows, batch["value"])
            values = batch["value"]
            back = (values % 3 == 0) & (values > 0)
            if back.any():
                notificator.notify_at(time + values[back] % 4 + 1, batch["key"][back], amount=-1)
        due = notificator.due
        noted.extend((time, key) for key in due["key"].tolist())
        totals = []
        for key, amount in zip(due["key"].tolist(), due["amount"].tolist(), strict=True):
            (row,) = state.rows(np.array([key], np.int64).view(np.uint64))
            state["total"][row] += amount
            totals.append((key, int(state["total"][row])))
        return {"key": [k for k, _ in totals], "total": [t for _, t in totals]} if totals else None

    return fold


def build(case: Case, configuration: Any, left: Any, right: Any, noted: Noted) -> Any:
    """The operator that the case is about."""
    dense = megaphone.dense(64) if case.dense else None
    if case.kind == "batches":
        return megaphone.unary(
            configuration,
            left,
            key="key",
            fold=in_batches(noted),
            state=STATE,
            pending=PENDING,
            bins=case.bins,
            keys=dense,
        )
    first, second, back = (add, add_to_known, come_back) if case.compiled else folds(noted)
    if not case.compiled:
        first, second, back = (fold.without_compiling() for fold in (first, second, back))
    if case.kind == "one":
        return megaphone.state_machine(
            configuration, left, key="key", value="value", fold=first, due=back, bins=case.bins, keys=dense
        )
    return megaphone.binary(
        configuration, left, right, key="key", value="value", right_value="value",
        fold=first, right_fold=second, due=back, bins=case.bins,
    )  # fmt: skip


async def main(worker: dataflow.Worker, case: Case) -> Any:
    """What came out here, what was applied here, and what is left here: in bins, and apart."""
    out: list[Any] = []
    noted: Noted = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        left, left_stream = scope.input("left")
        right, right_stream = scope.input("right")
        results = build(case, configuration, left_stream, right_stream, noted)
        probe = results.inspect_batch(lambda t, batch: out.extend((t, *row) for row in batch.rows())).probe()
    updates = dict(case.updates)
    for time in range(case.times):
        for (index, at), batch in case.updates.items():
            if index == worker.index and at >= time and (at == time or (at + index) % 3 == 0) and updates[index, at]:
                control.send(batch, at=at)  # some are given ahead
                updates[index, at] = []
        for handle, records in ((left, case.left), (right, case.right)):
            for part in np.array_split(np.array(records.get((worker.index, time), []), np.int64).reshape(-1, 2), 2):
                handle.send({"key": part[:, 0], "value": part[:, 1]})
            handle.advance_to(time + 1)
        control.advance_to(time + 1)
        await probe.wait_passed(time - case.ahead)
    await probe.wait_passed(case.times - 1)  # Completion
    for handle in (left, right, control):
        handle.close()
    await probe.wait_done()
    home, apart = results.handle.store.home, results.handle.store.apart if results.handle.pinned else None
    return out, noted, left_in(home, case.dense), left_in(apart, case.dense), Agreed.of(results.handle)


def left_in(store: Any, dense: bool) -> list[Any]:
    """The keys and totals of a store; a dense one has rows for keys that never came."""
    if store is None:
        return []
    table = store.table.read()
    return [row for row in zip(table["key"].tolist(), table["total"].tolist(), strict=True) if row[1] or not dense]


def oracle(case: Case) -> tuple[list[Any], list[Any]]:
    """The same on one worker, in the order of time: what comes out, and the state that is left."""
    todo: dict[int, tuple[list[Any], list[Any], list[Any]]] = defaultdict(lambda: ([], [], []))
    for side, inputs in enumerate((case.left, case.right)):
        for (_, time), batch in inputs.items():
            todo[time][side].extend(batch)
    totals: dict[int, int] = {}
    seen: Counter[int] = Counter()
    out = []
    while todo:
        time = min(todo)
        lefts, rights, backs = todo.pop(time)
        for key, value in lefts:
            totals[key] = totals.get(key, 0) + value
            seen[key] += 1
            if value % 3 == 0 and value > 0:
                todo[time + value % 4 + 1][2].append((key, -1))
        for key, value in rights if case.kind == "two" else []:
            if key in totals:
                totals[key] += 100 * value
        for key, amount in backs:
            totals[key] = totals.get(key, 0) + amount
            out.append((time, key, totals[key]))
            if case.kind != "batches" and seen[key] > 4:
                del totals[key], seen[key]
    return out, [(key, total) for key, total in totals.items() if total or not case.dense]


def random_case(seed: int) -> Case:
    """One case of everything."""
    chance = random.Random(seed)
    kind = chance.choice(["one", "two", "batches"])
    dense = chance.random() < 0.3 and kind != "two"
    case = Case(
        kind, chance.randint(1, 4), 1 << chance.randint(1, 5), chance.randint(1, 8), dense, chance.randint(0, 3)
    )
    keys = (
        range(chance.randint(1, 12))
        if dense
        else [chance.choice([n, -n, n << 40]) for n in range(chance.randint(1, 12))]
    )

    def some(share: float) -> Inputs:
        return {
            (worker, time): [(chance.choice(keys), chance.randint(-3, 9)) for _ in range(chance.randint(1, 6))]
            for worker in range(case.peers)
            for time in range(case.times)
            if chance.random() < share
        }

    case.left, case.right = some(0.7), some(0.4) if kind == "two" else {}
    case.updates = random_updates(chance, case.times, case.bins, case.peers)
    return case


def check(case: Case, results: list[Any]) -> None:
    """All three properties (that the run ended at all is Completion)."""
    expected, left = oracle(case)
    check_places(
        results, expected, left, lambda key, time: place(case.updates, case.bins, case.peers, key, time, case.dense)
    )


def run_case(seed: int) -> None:
    """One random case under a random schedule."""
    case = random_case(seed)
    check(case, simulate(main, case, workers=case.peers, seed=seed, debug=seed % 5 == 0))
