"""Random pins of single keys among random moves of their bins: the properties of section 3.2, for keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import dataflow
import megaphone
from dataflow.testing import simulate
from tests.megaphone import cases, column_cases, test_joins
from tests.megaphone.cases import Agreed, Inputs, check_places, pinned, place, random_inputs, with_pins
from tests.megaphone.column_cases import Case, check, main


def pin_changes(updates: Inputs, key: Any, times: int) -> Iterator[tuple[int, str]]:
    """When a key's pin begins, moves and ends."""
    places = [pinned(updates, key, time) for time in range(-1, times)]
    for time, (old, new) in enumerate(pairwise(places)):
        if old != new:
            yield time, "begins" if old is None else "ends" if new is None else "moves"


def random_case(seed: int) -> Case:
    case = column_cases.random_case(seed)
    chance = random.Random(-seed - 1)
    keys = sorted({key for batch in (*case.left.values(), *case.right.values()) for key, _ in batch} | {0})
    return replace(case, updates=with_pins(case.updates, keys, case.times, case.peers, chance))


def run_case(seed: int) -> None:
    case = random_case(seed)
    check(case, simulate(main, case, workers=case.peers, seed=seed, debug=seed % 5 == 0))


def random_join(seed: int) -> test_joins.Case:
    case = test_joins.random_case(seed)
    keys = sorted({key for side in (case.left, case.right) for batch in side.values() for key, *_ in batch} | {0})
    return replace(case, updates=with_pins(case.updates, keys, case.times, case.peers, random.Random(-seed - 1)))


def run_join(seed: int) -> None:
    case = random_join(seed)
    test_joins.check(case, simulate(test_joins.main, case, False, workers=case.peers, seed=seed))


def random_rows(seed: int, peers: int) -> tuple[Inputs, Inputs, int, int]:
    """Records whose keys are integers and strings, updates with pins, how many times and how many bins."""
    chance = random.Random(seed)
    records, updates, times, bins = random_inputs(chance, peers)
    keys = list(dict.fromkeys(key for batch in records.values() for key, _ in batch)) or [0]
    return records, with_pins(updates, keys, times, peers, chance), times, bins


def run_rows(seed: int) -> None:
    """`unary` with records that come back later, and `by_key=True`."""
    peers = 1 + seed % 4
    records, updates, times, bins = random_rows(seed, peers)
    given = (records, updates, times, bins, seed % 3, True)
    results = simulate(cases.main, *given, workers=peers, seed=seed, debug=seed % 5 == 0)
    cases.check(results, records, updates, bins, peers)


async def two_inputs(worker: dataflow.Worker, case: Any, machine: bool) -> Any:
    """`state_machine` or `binary` on rows, over the same records: the sum by key."""
    records, updates, times, bins = case
    applied: list[Any] = []

    def step(key: Any, value: Any, total: int | None) -> tuple[int, list[Any]]:
        time, amount = value
        applied.append((time, key))
        return (total or 0) + amount, [key]

    def fold(time: int, left: Any, right: Any, state: Any, first: Any, second: Any) -> Any:
        for key, (_, amount) in (*left, *right):
            applied.append((time, key))
            state[key] = state.get(key, 0) + amount
            yield key

    out: list[Any] = []
    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        inputs = [scope.input(name) for name in ("even", "odd")]
        if machine:
            merged = inputs[0][1].concat(inputs[1][1])
            sums = megaphone.state_machine(configuration, merged, fold=step, bins=bins)
        else:
            left, right = (stream for _, stream in inputs)
            sums = megaphone.binary(
                configuration, left, right, key=lambda r: r[0], fold=fold, bins=bins, by_key=True
            )  # fmt: skip
        probe = sums.inspect(lambda t, r: out.append((t, r))).probe()
    for time in range(times):
        control.send(updates.get((worker.index, time), []))
        mine = [(key, (time, value)) for key, value in records.get((worker.index, time), [])]
        for parity, (handle, _) in enumerate(inputs):
            handle.send([record for record in mine if record[1][1] % 2 == parity])
            handle.advance_to(time + 1)
        control.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(times - 1)  # Completion
    store = sums.handle.store.held
    home = [entry for number in store.numbers for entry in store.state(number).items()]
    return out, applied, home, [*store.apart.items()], Agreed.of(sums.handle)


def run_two_inputs(seed: int) -> None:
    peers = 1 + seed % 4
    records, updates, _, bins = case = random_rows(seed, peers)
    results = simulate(two_inputs, case, seed % 2 == 0, workers=peers, seed=seed)
    came = [(time, key, value) for (_, time), batch in records.items() for key, value in batch]
    totals: dict[Any, int] = {}
    for _, key, value in came:
        totals[key] = totals.get(key, 0) + value
    expected = [(time, key) for time, key, _ in came]
    check_places(results, expected, [*totals.items()], lambda key, at: place(updates, bins, peers, key, at))
