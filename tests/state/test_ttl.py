"""State that expires, against a plain program: random records, workers, seeds, migrations."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import megaphone
from dataflow import Worker
from dataflow.errors import ConstructionError
from dataflow.state import native
from dataflow.testing import simulate


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


def test_columns_say_how_they_do_it() -> None:
    @megaphone.fold(state={"n": "i8"}, output={"k": "i8"}, compiled=False)
    def fold(key: int, value: int, state: Any) -> int:
        return key

    async def main(worker: Worker, migratable: bool) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            options: Any = {"key": "k", "value": "v", "fold": fold, "ttl": 5}
            if migratable:
                megaphone.state_machine(stream, stream, **options)
            else:
                native.state_machine(stream, **options)

    for migratable in (False, True):
        with pytest.raises(ConstructionError, match="ttl= is for rows; on columns post-date"):
            simulate(main, migratable, workers=1)
