"""Records at which a function raises: they come on a stream of their own, are counted, and the others go on."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.columns import Columns
from dataflow.errors import ConstructionError
from dataflow.run.readings import OperatorReading, read_worker
from dataflow.state import native
from dataflow.testing import simulate


def root(number: int) -> int:
    """Exact roots only."""
    if number < 0:
        raise ValueError(f"{number} has no root")
    found = round(number**0.5)
    return found if found * found == number else 1 // 0


def why(number: int) -> str | None:
    """What `root` raises: the oracle's own view of it."""
    if number < 0:
        return f"ValueError: {number} has no root"
    if round(number**0.5) ** 2 != number:
        return "ZeroDivisionError: integer division or modulo by zero"
    return None


def operators(worker: dataflow.Worker) -> list[OperatorReading]:
    """What a worker's operators have counted."""
    return [each for part in read_worker(worker._pump).dataflows for each in part.operators]


BUILDS: dict[str, Any] = {
    "map": (lambda stream: stream.map(root, errors="stream"), lambda n: [round(n**0.5)]),
    "flat_map": (
        lambda stream: stream.flat_map(lambda n: [root(n)] * 2, errors="stream"),
        lambda n: [round(n**0.5)] * 2,
    ),
    "lazy": (
        lambda stream: stream.flat_map(lambda n: (x for x in (1, root(n))), errors="stream"),
        lambda n: [1, round(n**0.5)],
    ),
    "filter": (lambda stream: stream.filter(lambda n: root(n) > 3, errors="stream"), lambda n: [n] if n > 9 else []),
}


@pytest.mark.parametrize("kind", BUILDS)
@pytest.mark.parametrize("seed", range(4))
def test_what_fails_comes_apart(kind: str, seed: int) -> None:
    chance = Random(seed)
    workers = chance.randint(1, 3)
    epochs = [[chance.randrange(-5, 30) for _ in range(chance.randrange(10))] for _ in range(6)]
    build, right = BUILDS[kind]
    good: list[Any] = []
    bad: list[Any] = []
    counted: list[tuple[int, int]] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            checked = build(stream)
            checked.inspect(lambda time, record: good.append((time, record)))
            probe = checked.errors.inspect(lambda time, record: bad.append((time, record))).probe()
        for time, epoch in enumerate(epochs):
            numbers.send(epoch[worker.index :: workers])
            numbers.advance_to(time + 1)
        await probe.wait_passed(len(epochs) - 1)
        (mine,) = [each for each in operators(worker) if each.failed or each.name in ("map", "flat_map", "filter")]
        counted.append((mine.records_out, mine.failed))

    simulate(main, workers=workers, seed=seed)
    each = [(time, number) for time, epoch in enumerate(epochs) for number in epoch]
    assert Counter(good) == Counter((time, out) for time, n in each if not why(n) for out in right(n))
    assert Counter(bad) == Counter((time, (n, why(n))) for time, n in each if why(n))
    assert (sum(out for out, _ in counted), sum(failed for _, failed in counted)) == (len(good), len(bad))


def total(key: str, number: int, so_far: int | None) -> tuple[int | None, list[Any]]:
    new = (so_far or 0) + root(number)
    return (None if new > 20 else new), [(key, new)]


def plain(pairs: list[tuple[int, str, int]]) -> tuple[list[Any], list[Any]]:
    states: dict[str, int] = {}
    good, bad = [], []
    for time, key, number in pairs:
        if text := why(number):
            bad.append((time, ((key, number), text)))
            continue
        states[key] = states.get(key, 0) + round(number**0.5)
        good.append((time, (key, states[key])))
        if states[key] > 20:
            del states[key]
    return good, bad


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_folds_pass_over_what_fails(moves: bool, seed: int) -> None:
    """State stays as it was, on workers between which it moves."""
    chance = Random(seed)
    workers = chance.randint(1, 3)
    pairs = [(time, chance.choice("abcd"), chance.choice([-1, 0, 1, 4, 5, 9, 16])) for time in range(60)]
    good: list[Any] = []
    bad: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            (control, updates), (handle, stream) = scope.input(), scope.input()
            if moves:
                checked: Any = megaphone.state_machine(updates, stream, fold=total, errors="stream", bins=4)
                assert checked.handle is not None
            else:
                checked = native.state_machine(stream, fold=total, errors="stream")
            checked.inspect(lambda time, record: good.append((time, record)))
            checked.errors.inspect(lambda time, record: bad.append((time, record)))
        if worker.index == 0:
            for time in range(0, 60, 7):
                control.send([megaphone.Move(time % 4, time % workers)], at=time)
            for time, key, number in pairs:
                handle.send([(key, number)], at=time)
        control.close()

    simulate(main, workers=workers, seed=seed)
    assert (Counter(good), Counter(bad)) == tuple(map(Counter, plain(pairs)))


def test_columns_stay_columns() -> None:
    seen: list[Any] = []
    bad: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            checked = stream.filter(lambda row: root(row[0]) < 3, errors="stream")
            checked.inspect_batch(lambda _, batch: seen.append(batch))
            checked.errors.inspect(lambda _, record: bad.append(record))
        numbers.send(Columns({"n": [1, 2, 4, 16], "m": [5, 6, 7, 8]}))

    simulate(main, workers=1)
    assert isinstance(seen[0], Columns) and seen[0].rows() == [(1, 5), (4, 7)]
    assert bad == [((2, 6), why(2))]


def test_what_is_not_offered_is_said() -> None:
    @megaphone.fold(state={"n": "i8"}, output={"k": "i8"}, compiled=False)
    def fold(key: int, value: int, state: Any) -> int:
        return key

    async def main(worker: dataflow.Worker, build: Any) -> None:
        with worker.dataflow() as scope:
            build(scope.input()[1])

    columns: Any = {"key": "k", "value": "v", "fold": fold, "errors": "stream"}
    for build, message in (
        (lambda stream: stream.map(root, errors="skip"), "errors is 'raise' or 'stream', not 'skip'"),
        (lambda stream: native.state_machine(stream, **columns), "errors= is for rows; a compiled fold cannot"),
        (lambda stream: megaphone.state_machine(stream, stream, **columns), "errors= is for rows"),
    ):
        with pytest.raises(ConstructionError, match=message):
            simulate(main, build, workers=1)


def test_the_end_of_the_program_is_no_error() -> None:
    """Only what a record is to blame for goes to the stream."""

    def stop(_: int) -> int:
        raise KeyboardInterrupt

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source([1]).map(stop, errors="stream")

    with pytest.raises(KeyboardInterrupt):
        simulate(main, workers=1)
