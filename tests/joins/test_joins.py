"""Joins over event time on random input, on several workers, native and with migrations: as plain programs say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import megaphone
from dataflow import Worker, joins
from dataflow.errors import ConstructionError
from dataflow.joins import folds
from dataflow.testing import simulate

Event = tuple[int, str, int]  # time, key, value: no two alike


def events(chance: Random, count: int, first: int) -> list[Event]:
    return [(chance.randint(0, 25), chance.choice("abc"), first + number) for number in range(count)]


def interval(lefts: list[Event], rights: list[Event], before: int, after: int, how: str) -> list[Any]:
    near = [(a, b) for a in lefts for b in rights if a[1] == b[1] and -before <= b[0] - a[0] <= after]
    out = [(max(a[0], b[0]), (a[1], a, b)) for a, b in near]
    if how in ("left", "outer"):
        out += [(a[0] + after, (a[1], a, None)) for a in lefts if a not in [x for x, _ in near]]
    if how in ("right", "outer"):
        out += [(b[0] + before, (b[1], None, b)) for b in rights if b not in [x for _, x in near]]
    return out


def as_of(lefts: list[Event], rights: list[Event], tolerance: int | None, how: str) -> list[Any]:
    out: list[Any] = []
    met = []
    for a in lefts:
        seen = [b for b in rights if b[1] == a[1] and b[0] <= a[0]]
        last = max(seen, key=lambda b: (b[0], repr(b)), default=None)
        if last is not None and tolerance is not None and last[0] < a[0] - tolerance:
            last = None
        met.append(last)
        if last is not None or how in ("left", "outer"):
            out.append((a[0], (a[1], a, last)))
    if how in ("right", "outer"):
        out += [(b[0] + (tolerance or 0), (b[1], None, b)) for b in rights if b not in met]
    return out


def first_ones(lefts: list[Event], within: int) -> list[Any]:
    out: list[Any] = []
    since: dict[str, int] = {}
    for event in sorted(lefts, key=lambda e: (e[0], repr(e))):
        if event[1] not in since or event[0] >= since[event[1]] + within:
            since[event[1]] = event[0]
            out.append((event[0], event))
    return out


Build = Callable[[Any, Any, Any], Any]


def run(seed: int, native: Build, migratable: Build, moves: bool) -> tuple[list[Event], list[Event], list[Any]]:
    chance = Random(seed)
    peers = chance.randint(1, 3)
    lefts, rights = events(chance, chance.randint(0, 25), 0), events(chance, chance.randint(0, 25), 100)
    owner = {event: chance.randrange(peers) for event in lefts + rights}
    updates = sorted((chance.randint(0, 25), chance.randrange(8), chance.randrange(peers)) for _ in range(6))
    out: list[Any] = []

    async def main(worker: Worker) -> None:
        with worker.dataflow() as scope:
            (left, a), (right, b), (control, configuration) = scope.input(), scope.input(), scope.input()
            times = [stream.event_time(lambda event: event[0], 30) for stream in (a, b)]
            result = migratable(configuration, *times) if moves else native(None, *times)
            result.inspect(lambda time, record: out.append((time, record)))
        if worker.index == 0:
            for time, bin, to in updates:
                control.send([megaphone.Move(bin, to)], at=time)
        control.close()
        for handle, some in ((left, lefts), (right, rights)):
            for event in some:
                if owner[event] == worker.index:
                    handle.send([event])
                    handle.advance_to(handle.time + 1)

    simulate(main, workers=peers, seed=seed)
    return lefts, rights, out


def same(found: list[Any], expected: list[Any]) -> bool:
    return sorted(found, key=repr) == sorted(expected, key=repr)


KEY = {"key": lambda event: event[1]}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_interval_join(how: Any, moves: bool, seed: int) -> None:
    before, after = Random(seed).choice([(0, 0), (2, 0), (0, 3), (4, 5)])
    options: Any = {**KEY, "before": before, "after": after, "how": how}
    lefts, rights, found = run(
        seed,
        lambda _, a, b: joins.interval_join(a, b, **options),
        lambda control, a, b: megaphone.interval_join(control, a, b, bins=8, **options),
        moves,
    )
    assert same(found, interval(lefts, rights, before, after, how))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("tolerance", [None, 0, 4])
def test_as_of_join(tolerance: int | None, moves: bool, seed: int) -> None:
    how: Any = Random(seed).choice(["inner", "left"] if tolerance is None else ["inner", "left", "right", "outer"])
    options: Any = {**KEY, "tolerance": tolerance, "how": how}
    lefts, rights, found = run(
        seed,
        lambda _, a, b: joins.as_of_join(a, b, **options),
        lambda control, a, b: megaphone.as_of_join(control, a, b, bins=8, **options),
        moves,
    )
    assert same(found, as_of(lefts, rights, tolerance, how))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("moves", [False, True])
def test_table_join(moves: bool, seed: int) -> None:
    """Rows whose value is a multiple of three are taken out."""

    def table(stream: Any) -> Any:
        return stream.map(lambda event: (event[1], event if event[2] % 3 else None))

    lefts, rights, found = run(
        seed,
        lambda _, a, b: joins.table_join(a, table(b), how="left", **KEY),
        lambda control, a, b: megaphone.table_join(control, a, table(b), how="left", bins=8, **KEY),
        moves,
    )
    expected = []
    for a in lefts:
        rows: dict[int, list[Event]] = {}
        for b in rights:
            if b[1] == a[1] and b[0] <= a[0]:
                rows.setdefault(b[0], []).append(b)
        last = max((b for b in rows[max(rows)] if b[2] % 3), key=repr, default=None) if rows else None
        expected.append((a[0], (a[1], a, last)))
    assert same(found, expected)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("moves", [False, True])
def test_deduplicate(moves: bool, seed: int) -> None:
    within = Random(seed).choice([1, 5, 40])
    lefts, _, found = run(
        seed,
        lambda _, a, b: joins.deduplicate(a, within=within, **KEY),
        lambda control, a, b: megaphone.deduplicate(control, a, within=within, bins=8, **KEY),
        moves,
    )
    assert same(found, first_ones(lefts, within))


MUTANTS: list[tuple[type[object], str, Any, Any]] = [
    (folds.IntervalFold, "_pairs", lambda self, key, new, others, side: iter(()), lambda: test_interval_join),
    (folds.AsOfFold, "is_nothing", lambda self, entry: True, lambda: test_as_of_join),
    (folds.DuplicateFold, "is_nothing", lambda self, entry: True, lambda: test_deduplicate),
]


@pytest.mark.parametrize(("owner", "method", "mutant", "test"), MUTANTS)
def test_a_mutant_is_caught(
    owner: type[object], method: str, mutant: Any, test: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, mutant)
    first = {"test_interval_join": ("inner",), "test_as_of_join": (None,), "test_deduplicate": ()}
    compare = test()

    def all_seeds() -> None:
        for seed in range(10):
            compare(*first[compare.__name__], False, seed)

    with pytest.raises(AssertionError):
        all_seeds()


def test_nothing_is_left_when_nothing_can_meet() -> None:
    class Wakes:
        def __init__(self) -> None:
            self.due: dict[int, list[Any]] = {}

        def notify_at(self, time: int, record: Any) -> None:
            self.due.setdefault(time, []).append(record)

    for fold in (folds.IntervalFold(3, 5, (True, True)), folds.AsOfFold(4, (True, True)), folds.DuplicateFold(6)):
        wakes, state = Wakes(), {}
        for time in range(300):
            new = [("k", time % 2, time)] if time < 250 else []
            list(fold(time, [*new, *wakes.due.pop(time, [])], state, wakes))  # type: ignore[arg-type]
            assert all(len(str(entry)) < 400 for entry in state.values())
        assert not state and not wakes.due


def test_what_is_refused() -> None:
    async def main(worker: Worker, build: Any, batch: Any) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.input()
            build(stream)
        handle.send(batch)

    for build, message in [
        (lambda s: joins.interval_join(s, s, key=len, how="full"), "how is 'inner', 'left', 'right' or 'outer'"),
        (lambda s: joins.interval_join(s, s, key=len, before=-1), "before is at least 0, not -1"),
        (lambda s: joins.as_of_join(s, s, key=len, how="right"), "without tolerance= the last of them may be got"),
        (lambda s: joins.table_join(s, s, key=len, how="outer"), "how is 'inner' or 'left', not 'outer': a row of a"),
        (lambda s: joins.deduplicate(s, key=len, within=0), "within is at least 1, not 0"),
        (lambda s: joins.deduplicate(s, key=7, within=1), "needs a function as its key, not 7"),
    ]:
        with pytest.raises(ConstructionError, match=message):
            simulate(main, build, [], workers=1)
    with pytest.raises(TypeError, match="joins rows, and columns came"):
        simulate(main, lambda s: joins.deduplicate(s, key=len, within=1), {"n": [1]}, workers=1)
    with pytest.raises(TypeError, match=r"a table is a stream of .key, row. pairs, and 7 came"):
        simulate(main, lambda s: joins.table_join(s, s, key=lambda n: n), [7], workers=1)
