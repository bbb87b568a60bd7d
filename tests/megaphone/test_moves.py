"""Migrations at awkward times: bins with pending records, one bin at neighbouring times, to where it already is, and at
every single epoch. For rows and for the three kinds of columns, against the three properties of section 3.2."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dataflow.testing import simulate
from megaphone import Assign, Move
from megaphone.keys.hashing import bin_of, shift_of
from megaphone.router.routing import Router
from tests.megaphone import cases, column_cases
from tests.megaphone.cases import Inputs, owner

BINS, PEERS = 8, 3
KEYS = [1, 2, 3, 5, 8, 13, 21]
SEEDS = range(3)
Runs = Callable[[Inputs, Inputs, int, int], list[set[tuple[int, Any]]]]


def run_rows(records: Inputs, updates: Inputs, times: int, seed: int) -> list[set[tuple[int, Any]]]:
    """Runs and checks; what was applied at each worker."""
    results = simulate(cases.main, records, updates, times, BINS, seed % 3, workers=PEERS, seed=seed)
    cases.check(results, records, updates, BINS, PEERS)
    return [set(applied) for _, applied, *_ in results]


def run_columns(kind: str, dense: bool) -> Runs:
    def run(records: Inputs, updates: Inputs, times: int, seed: int) -> list[set[tuple[int, Any]]]:
        case = column_cases.Case(kind, PEERS, BINS, times, dense, seed % 3, records, {}, updates)
        if kind == "two":
            case.right = {(worker, time): batch[:1] for (worker, time), batch in records.items() if time % 2}
        results = simulate(column_cases.main, case, workers=PEERS, seed=seed)
        column_cases.check(case, results)
        return [set(noted) for _, noted, *_ in results]

    return run


RUNS = {
    "rows": run_rows,
    "one": run_columns("one", dense=False),
    "dense": run_columns("one", dense=True),
    "two": run_columns("two", dense=False),
    "batches": run_columns("batches", dense=False),
}
every_kind = pytest.mark.parametrize("kind", RUNS)


def some_records(times: int, seed: int, values: tuple[int, ...]) -> Inputs:
    chance = random.Random(seed)
    return {
        (worker, time): [(chance.choice(KEYS), chance.choice(values)) for _ in range(4)]
        for worker in range(PEERS)
        for time in range(times)
    }


def number_of(key: int, kind: str) -> int:
    return key & (BINS - 1) if kind == "dense" else bin_of(key, shift_of(BINS))


@every_kind
def test_pending_records_move_with_their_bin(kind: str) -> None:
    """Every record at time 0 comes back at 4 (value 3: 3 % 4 + 1). Its bin moves at 2, and again at 3."""
    records: Inputs = {(worker, 0): [(key, 3) for key in KEYS] for worker in range(PEERS)}
    updates: Inputs = {
        (0, 2): [Assign(tuple((number + 1) % PEERS for number in range(BINS)))],
        (1, 3): [Assign(tuple((number + 2) % PEERS for number in range(BINS)))],
    }
    for seed in SEEDS:
        applied = RUNS[kind](records, updates, 6, seed)
        for key in KEYS:
            number = number_of(key, kind)
            assert (0, key) in applied[number % PEERS]
            assert (4, key) in applied[(number + 2) % PEERS], "it came back two workers further on"


@every_kind
def test_a_bin_that_moves_when_its_pending_records_are_due(kind: str) -> None:
    """Moves at the very time at which pending records come back (4), just before and just after it."""
    records: Inputs = {(0, 0): [(key, 3) for key in KEYS]}
    for at in (3, 4, 5):
        updates: Inputs = {(2, at): [Move(number, (number + 1) % PEERS) for number in range(BINS)]}
        for seed in SEEDS:
            applied = RUNS[kind](records, updates, 7, seed)
            for key in KEYS:
                place = (number_of(key, kind) + (at <= 4)) % PEERS
                assert (4, key) in applied[place]


@every_kind
def test_one_bin_at_neighbouring_times(kind: str) -> None:
    """There at 3, on at 4, back at 5; each said by another worker, so that updates have no order among them."""
    updates: Inputs = {
        (worker, 3 + step): [Move(number, (number + shift) % PEERS) for number in range(BINS)]
        for step, (worker, shift) in enumerate([(2, 1), (1, 2), (0, 0)])
    }
    for seed in SEEDS:
        RUNS[kind](some_records(8, seed, (1, 3, 6)), updates, 8, seed)


@every_kind
def test_a_migration_at_every_single_epoch(kind: str) -> None:
    times = 12
    chance = random.Random(7)
    updates: Inputs = {
        (time % PEERS, time): [Assign(tuple(chance.randrange(PEERS) for _ in range(BINS)))] for time in range(times)
    }
    for seed in SEEDS:
        applied = RUNS[kind](some_records(times, seed, (1, 3, 6)), updates, times, seed)
        assert all(applied), "every worker had its share"


@every_kind
def test_a_move_to_where_the_bin_is_already_moves_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    send = Router._send_pieces

    def note(self: Any, capability: Any) -> bool:
        give = self._state.give
        with monkeypatch.context() as patch:
            patch.setattr(self._state, "give", lambda *a: (sent.append(a), give(*a)))
            return send(self, capability)

    monkeypatch.setattr(Router, "_send_pieces", note)
    home = [Move(number, number % PEERS) for number in range(BINS)]
    updates: Inputs = {(time % PEERS, time): home for time in range(6)}
    RUNS[kind](some_records(6, 1, (1, 3)), updates, 6, 1)
    assert not sent
    away: Inputs = {**updates, (0, 3): [Move(number, 0) for number in range(BINS)]}
    RUNS[kind](some_records(6, 1, (1, 3)), away, 6, 1)
    assert sent, "the instrument works"


def test_several_updates_for_one_bin_at_one_time_have_one_outcome_everywhere() -> None:
    """Messages of different workers have no order: the greatest worker wins, whoever spoke."""
    updates: Inputs = {(worker, 2): [Move(number, worker) for number in range(BINS)] for worker in range(PEERS)}
    assert owner(updates, BINS, PEERS, 3, 2) == PEERS - 1
    for seed in range(20):
        applied = run_rows(some_records(4, 1, (1,)), updates, 4, seed)
        assert {worker for worker in range(PEERS) for time, _ in applied[worker] if time >= 2} == {PEERS - 1}
