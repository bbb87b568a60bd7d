"""State that expires, against a plain program: random records, workers, seeds, migrations."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
import trio

import megaphone
from dataflow import Recovery, Worker, sources
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.recovery.memory import MemoryStorage
from dataflow.state import native
from dataflow.testing import Crashed, KeptRows, simulate


def add(key: str, value: int, state: int | None) -> tuple[int | None, list[Any]]:
    total = (state or 0) + value
    return (None if total % 7 == 0 else total), [(key, total)]


def plain(records: list[tuple[int, str, int]], ttl: int) -> list[Any]:
    states: dict[str, tuple[int, int]] = {}
    out = []
    for time, key, value in records:
        since, state = states.get(key, (time, 0))
        state = (0 if since + ttl < time else state) + value
        out.append((time, (key, state)))
        states[key] = (time, state)
        if state % 7 == 0:
            del states[key]
    return out


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("moves", [False, True])
def test_keys_are_forgotten(moves: bool, seed: int) -> None:
    chance = Random(seed)
    peers, ttl = chance.randint(1, 3), chance.choice([1, 3, 8])
    records = [(time, chance.choice("abcd"), chance.randint(1, 9)) for time in range(40) if chance.random() < 0.6]
    out: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            (control, updates), (handle, stream) = scope.input(), scope.input()
            if moves:
                result = megaphone.state_machine(updates, stream, fold=add, ttl=ttl, bins=4)
            else:
                result = native.state_machine(stream, fold=add, ttl=ttl)
            result.inspect(lambda time, record: out.append((time, record)))
        if worker.index == 0:
            for time in range(0, 40, 5):
                control.send([megaphone.Move(time % 4, time % peers)], at=time)
            for time, key, value in records:
                handle.send([(key, value)], at=time)
        control.close()

    simulate(main, workers=peers, seed=seed)
    assert Counter(out) == Counter(plain(records, ttl))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_keys_of_columns_are_forgotten(moves: bool, dense: bool, seed: int) -> None:
    """Compiled folds, uncompiled here: the same program against the same oracle."""
    chance = Random(seed)
    peers, ttl = chance.randint(1, 3), chance.choice([1, 3, 8])
    records = [(time, chance.randrange(5), chance.randint(1, 9)) for time in range(40) if chance.random() < 0.6]
    forget = chance.random() < 0.5
    run_columns(records, ttl, peers, seed, moves, dense, forget, compiled=False)


@pytest.mark.parametrize("dense", [False, True])
def test_compiled_folds_forget(dense: bool) -> None:
    chance = Random(17)
    records = [(time, chance.randrange(50), chance.randint(1, 9)) for time in range(200) for _ in range(5)]
    run_columns(records, 7, 2, 1, True, dense, False, compiled=True)


def run_columns(
    records: list[Any], ttl: int, peers: int, seed: int, moves: bool, dense: bool, forget: bool, compiled: bool
) -> None:
    """Totals by key, in columns."""
    out: list[Any] = []

    @megaphone.fold(
        state={"total": "i8", "gone": "i8", "few": ("i4", 3)},
        output={"key": "i8", "total": "i8"},
        forget="gone" if forget else None,
        compiled=compiled,
    )
    def add_up(key: int, value: int, state: Any) -> tuple[int, int]:
        state.total += value
        state.few[key % 3] += value
        state.gone = 1 if state.total % 7 == 0 else 0
        return key, state.total if state.few[key % 3] == state.total else -1

    async def main(worker: Worker) -> None:
        keys: Any = megaphone.dense(64) if dense else None
        with worker.dataflow() as scope:
            (control, updates), (handle, stream) = scope.input(), scope.input()
            options: Any = {"key": "k", "value": "v", "fold": add_up, "ttl": ttl, "keys": keys, "order": ("v",)}
            if moves:
                result: Any = megaphone.state_machine(updates, stream, bins=4, **options)
            else:
                result = native.state_machine(stream, **options)
            result.inspect_batch(lambda time, batch: out.extend((time, row) for row in batch.rows()))
        if worker.index == 0:
            for time in range(0, 40, 5):
                control.send([megaphone.Move(time % 4, time % peers)], at=time)
            by_time: dict[int, list[Any]] = {}
            for time, key, value in records:
                by_time.setdefault(time, []).append((key, value))
            for time, pairs in by_time.items():
                columns = {"k": np.array([k for k, _ in pairs]), "v": np.array([v for _, v in pairs])}
                handle.send(columns, at=time)
        control.close()

    simulate(main, workers=peers, seed=seed)
    in_order = sorted(records, key=lambda record: (record[0], record[2]))
    assert Counter(out) == Counter(plain_columns(in_order, ttl, forget))


def plain_columns(records: list[Any], ttl: int, forget: bool) -> list[Any]:
    states: dict[int, tuple[int, int]] = {}
    out = []
    for time, key, value in records:
        since, total = states.get(key, (time, 0))
        total = (0 if since + ttl < time else total) + value
        out.append((time, (key, total)))
        states[key] = (time, total)
        if forget and total % 7 == 0:
            del states[key]
    return out


@pytest.mark.parametrize("migratable", [False, True])
def test_memory_is_given_back(migratable: bool) -> None:
    """Each key comes once: without expiry there would be a thousand in the end; there are about those of two ttls."""
    counts: list[int] = []

    @megaphone.fold(state={"n": "i8"}, output={"k": "i8"}, compiled=False)
    def seen(key: int, value: int, state: Any) -> int:
        state.n += value
        return key

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            (control, updates), (handle, stream) = scope.input(), scope.input()
            options: Any = {"key": "k", "value": "v", "fold": seen, "ttl": 10, "name": "seen"}
            if migratable:
                probe = megaphone.state_machine(updates, stream, bins=8, **options).probe()
            else:
                probe = native.state_machine(stream, **options).probe()
        for time in range(200):
            if worker.index == 0:
                handle.send({"k": np.arange(5) + 5 * time, "v": np.ones(5, "i8")})
            handle.advance_to(time + 1)
            control.advance_to(time + 1)
            await probe.wait_passed(time - 2)
        await probe.wait_passed(199)
        (stateful,) = scope.dataflow.hooks
        counts.append(int(np.count_nonzero(stateful.durable.sizes())) and stateful.durable._store.key_count)

    simulate(main, workers=2, seed=3)
    assert 50 <= sum(counts) <= 130, counts


class Timed(sources.Partitions[Columns]):
    """Records at their own times, slowly: a position is how many were given."""

    timed = True

    def __init__(self, records: list[Any], seed: int) -> None:
        self.records, self.seed = records, seed

    async def partitions(self) -> list[str]:
        return ["all"]

    async def read(self, partition: str, position: Any) -> Any:
        chance = Random(f"{self.seed} {position}")
        for place in range(position or 0, len(self.records)):
            time, key, value = self.records[place]
            if chance.random() < 0.3:
                await trio.sleep(chance.random())
            yield place + 1, time, Columns({"k": [key], "v": [value]})


@pytest.mark.parametrize("migratable", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_keys_of_columns_are_forgotten_through_crashes(migratable: bool, seed: int) -> None:
    """State with what it knows of time is saved, restored on other workers, and swept while it is being saved."""
    chance = Random(seed)
    records = [(time, chance.randrange(6), chance.randint(1, 9)) for time in range(80) if chance.random() < 0.7]
    ttl = chance.choice([1, 4, 9])

    @megaphone.fold(state={"total": "i8"}, output={"k": "i8", "total": "i8"}, compiled=False)
    def add_up(key: int, value: int, state: Any) -> tuple[int, int]:
        state.total += value
        return key, state.total

    storage, source, out = MemoryStorage(), Timed(records, seed), KeptRows[Any]()

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.source(source)
            options: Any = {"key": "k", "value": "v", "fold": add_up, "ttl": ttl, "name": "totals"}
            if migratable:
                totals: Any = megaphone.state_machine(scope.control(), stream, bins=8, **options)
            else:
                totals = native.state_machine(stream, **options)
            totals.sink(out)

    for turns in [chance.randrange(60, 900) for _ in range(3)]:
        try:
            simulate(
                main,
                workers=chance.randint(1, 3),
                seed=chance.randrange(1 << 30),
                recovery=Recovery(storage, every=0.3),
                crash_after=turns,
            )
        except Crashed:
            continue
    simulate(main, workers=2, seed=seed, recovery=Recovery(storage, every=0.3))
    assert Counter(out.rows) == Counter(row for _, row in plain_columns(records, ttl, False))


def test_what_does_not_go_together_is_said() -> None:
    @megaphone.fold(state={"n": "i8"}, output={"k": "i8"}, pending={"x": "i8"}, compiled=False)
    def fold(key: int, value: int, state: Any, later: Any) -> int:
        later.at(7, 1)
        return key

    @megaphone.fold(state={"last_seen": "i8"}, output={"k": "i8"}, compiled=False)
    def taken(key: int, value: int, state: Any) -> int:
        return key

    async def main(worker: Worker, options: Any, migratable: bool) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            if migratable:
                megaphone.state_machine(stream, stream, **options)
            else:
                native.state_machine(stream, **options)

    for migratable in (False, True):
        options: Any = {"key": "k", "value": "v", "fold": fold, "due": fold, "ttl": 5}
        with pytest.raises(ConstructionError, match="ttl= and due= do not go together: forget the key in `due`"):
            simulate(main, options, migratable, workers=1)
        options = {"key": "k", "value": "v", "fold": taken, "ttl": 5}
        with pytest.raises(ConstructionError, match="taken has 'last_seen' in its state, which ttl= wants for itself"):
            simulate(main, options, migratable, workers=1)
