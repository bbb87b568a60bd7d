"""Random pins of single keys among random moves of their bins: the properties of section 3.2, for keys."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.hashing import bin_of, shift_of
from tests.megaphone import column_cases, test_joins
from tests.megaphone.cases import Inputs, owner
from tests.megaphone.column_cases import Case, Noted, build, oracle


def pinned(updates: Inputs, key: int, time: int) -> int | None:
    """Where a key is pinned at a time: what was last said about it; the greatest worker, and any before none."""
    place = None
    for at in sorted({at for _, at in updates if at <= time}):
        said = [update for (_, t), batch in updates.items() if t == at for update in batch]
        here = [update for update in said if isinstance(update, megaphone.Pin | megaphone.Unpin) and update.key == key]
        workers = [update.worker for update in here if isinstance(update, megaphone.Pin)]
        if here:
            place = max(workers, default=None)
    return place


def with_pins(updates: Inputs, keys: list[int], times: int, peers: int, chance: random.Random) -> Inputs:
    """The same updates with pins among them, many of them at the times of moves."""
    result = {at: list(batch) for at, batch in updates.items()}
    for time in range(times):
        for worker in range(peers):
            if chance.random() < 0.35:
                for key in chance.choices(keys, k=chance.randint(1, 3)):
                    pin = chance.random() < 0.65
                    update = megaphone.Pin(key, chance.randrange(peers)) if pin else megaphone.Unpin(key)
                    result.setdefault((worker, time), []).append(update)
    return result


def random_case(seed: int) -> Case:
    case = column_cases.random_case(seed)
    chance = random.Random(-seed - 1)
    keys = sorted({key for batch in (*case.left.values(), *case.right.values()) for key, _ in batch} | {0})
    return replace(case, updates=with_pins(case.updates, keys, case.times, case.peers, chance))


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
    tables = [results.handle.state.table.read(), results.handle.apart().table.read()]
    home, apart = ([*zip(table["key"].tolist(), table["total"].tolist(), strict=True)] for table in tables)
    if case.dense:
        home, apart = ([row for row in rows if row[1]] for rows in (home, apart))
    return out, noted, home, apart, results.handle.pinned


def check(case: Case, results: list[Any]) -> None:
    """Correctness and Migration, and that what is left lies where it should (that the run ended is Completion)."""
    expected, left = oracle(case)
    assert Counter(entry for out, *_ in results for entry in out) == Counter(expected), "Correctness: what came out"
    rows = Counter(row for *_, home, apart, _ in results for row in (*home, *apart))
    assert rows == Counter(left), "Correctness: the state that is left"

    def place(key: int, time: int) -> tuple[int, bool]:
        pin = pinned(case.updates, key, time)
        number = key & (case.bins - 1) if case.dense else bin_of(key, shift_of(case.bins))
        return (owner(case.updates, case.bins, case.peers, number, time), False) if pin is None else (pin, True)

    for worker, (_, noted, home, apart, pins) in enumerate(results):
        for time, key in noted:
            assert place(key, time)[0] == worker, f"Migration: {key} at {time} was applied at {worker}"
        for rows_here, is_apart in ((home, False), (apart, True)):
            for key, _ in rows_here:
                assert place(key, case.times) == (worker, is_apart), f"Migration: {key} was left at {worker}"
        assert pins == results[0][-1], "all agree on what is pinned"


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
