"""Joins that remember, migratable and native, against nested loops: random streams, migrations and schedules."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import dataflow
import megaphone
from dataflow.state import native as stateful
from dataflow.state.stores.join_store import JoinStore
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of
from tests.megaphone.cases import Inputs, owner, random_updates

Side = dict[tuple[int, int], list[tuple[int, int, float]]]  # (worker, time): (key, number, weight)


@dataclass
class Case:
    """What happens in one run."""

    peers: int
    bins: int
    times: int
    unique: str | None
    left: Side
    right: Side
    updates: Inputs = field(default_factory=dict)


def random_case(seed: int) -> Case:
    chance = random.Random(seed)
    peers, times = chance.randint(1, 4), chance.randint(2, 7)
    unique = chance.choice([None, "left", "right"])
    keys = [chance.choice([n, -n, n << 45]) for n in range(1, 9)]
    case = Case(peers, 1 << chance.randint(1, 4), times, unique, defaultdict(list), defaultdict(list))
    for name, side in (("left", case.left), ("right", case.right)):
        once = chance.sample(keys, len(keys))
        for number in range(len(keys) if unique == name else chance.randint(0, 25)):
            key = once[number] if unique == name else chance.choice(keys)
            side[chance.randrange(peers), chance.randrange(times)].append((key, number, number / 4))
    case.updates = random_updates(chance, times, case.bins, peers)
    return case


def batch(records: list[tuple[int, int, float]], names: tuple[str, str]) -> dict[str, Any]:
    """Columns of several types: they must come back as they went in."""
    return {
        "key": np.array([key for key, *_ in records], np.int64),
        names[0]: np.array([number for _, number, _ in records], np.uint16),
        names[1]: np.array([weight for *_, weight in records], np.float32),
    }


async def main(worker: dataflow.Worker, case: Case, native: bool) -> Any:
    """What came out here, the types of its columns, and the store."""
    out: list[Any] = []
    kinds: set[Any] = set()

    def note(time: int, columns: Any) -> None:
        out.extend((time, *row) for row in columns.rows())
        kinds.update((name, str(columns[name].dtype)) for name in columns.names)

    with worker.dataflow() as scope:
        control, configuration = scope.input("control")
        left, left_stream = scope.input("left")
        right, right_stream = scope.input("right")
        columns: Any = {"key": "key", "value": ("a", "b"), "right_value": ("c", "d"), "unique": case.unique}
        if native:
            pairs = stateful.join(left_stream, right_stream, **columns)
        else:
            pairs = megaphone.join(configuration, left_stream, right_stream, bins=case.bins, **columns)
        probe = pairs.inspect_batch(note).probe()
    for time in range(case.times):
        control.send(case.updates.get((worker.index, time), []))
        left.send(batch(case.left.get((worker.index, time), []), ("a", "b")))
        right.send(batch(case.right.get((worker.index, time), []), ("c", "d")))
        for handle in (control, left, right):
            handle.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(case.times - 1)
    return out, kinds, None if native else pairs.handle.store.home


def oracle(case: Case) -> Counter[Any]:
    """Every pair, at the later of its times."""
    return Counter(
        (max(at, then), key, a, b, c, d)
        for (_, at), lefts in case.left.items()
        for key, a, b in lefts
        for (_, then), rights in case.right.items()
        for other, c, d in rights
        if key == other
    )


def check(case: Case, results: list[Any]) -> None:
    assert Counter(row for out, _, _ in results for row in out) == oracle(case)
    for _, kinds, _ in results:
        assert kinds <= {("key", "int64"), ("a", "uint16"), ("b", "float32"), ("c", "uint16"), ("d", "float32")}


@pytest.mark.parametrize("share", range(4))
def test_migratable_joins_against_nested_loops(share: int) -> None:
    for seed in range(share, 120, 4):
        case = random_case(seed)
        check(case, simulate(main, case, False, workers=case.peers, seed=seed, debug=seed % 7 == 0))


def test_joins_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("megaphone.router.routing.PIECE", 3)
    for seed in range(30):
        case = random_case(seed)
        check(case, simulate(main, case, False, workers=case.peers, seed=seed))


async def on_a_process(worker: dataflow.Worker, case: Case) -> Any:
    """As `main`; the store stays where it is."""
    out, kinds, _ = await main(worker, case, False)
    return out, kinds, None


def test_joins_on_processes() -> None:
    for seed in [seed for seed in range(100) if random_case(seed).peers == 2][:4]:
        check(random_case(seed), dataflow.execute(on_a_process, random_case(seed), workers=2))


def test_native_joins_against_nested_loops() -> None:
    for seed in range(30):
        case = random_case(seed)
        check(case, simulate(main, case, True, workers=case.peers, seed=seed))


def test_a_worker_that_has_seen_nothing_of_one_side_inherits_it() -> None:
    """All left records come while worker 0 has their bins; then all moves to worker 1, and right records come."""
    for unique in (None, "left", "right"):
        case = Case(2, 4, 3, unique, {(0, 0): [(1, 10, 0.5), (2, 20, 0.25)]}, {(0, 2): [(1, 7, 1.5), (2, 8, 2.0)]})
        case.updates = {(0, 0): [megaphone.Assign((0,) * 4)], (1, 1): [megaphone.Assign((1,) * 4)]}
        check(case, simulate(main, case, False, workers=2, seed=1))


@pytest.mark.parametrize("unique", ["left", "right"])
def test_where_a_key_is_unique_state_does_not_grow_with_records_that_have_met(unique: str) -> None:
    """Each round the many meet the one and are forgotten, wherever the bin is; only what waits is kept."""
    rounds, each = 12, 50
    one: Side = {(0, 0): [(key, key, 0.0) for key in range(8)]}
    many: Side = {(1, time): [(n % 8, n, 0.5) for n in range(each)] for time in range(rounds)}
    left, right = (one, many) if unique == "left" else (many, one)
    case = Case(2, 4, rounds, unique, left, right, {})
    case.updates = {(0, time): [megaphone.Move(time % 4, time % 2)] for time in range(rounds)}
    results = simulate(main, case, False, workers=2, seed=3)
    check(case, results)
    assert sum(sum(rows_kept(store)) for *_, store in results) == 8, "the unique ones, and nobody else"


def test_without_unique_everything_is_kept() -> None:
    """The other side of the test above: the instrument counts."""
    case = Case(2, 4, 2, None, {(0, 0): [(n % 8, n, 0.0) for n in range(40)]}, {(0, 1): [(1, 1, 1.0)]})
    results = simulate(main, case, False, workers=2, seed=3)
    assert sum(sum(rows_kept(store)) for *_, store in results) == 41


def rows_kept(store: JoinStore) -> list[int]:
    """How many rows each side's chains have on this worker."""
    table = store.table
    _, places = table.scan()
    counts = []
    for side, pool in zip(("left", "right"), store._pools, strict=True):
        words, stride = pool.segments.words, pool.segments.stride
        total = 0
        keys, _ = table.scan()
        firsts = pool.segments.meta[table.bins_of(keys), 0]
        for head, first in zip(table[side][places].tolist(), firsts.tolist(), strict=True):
            while head:
                total += 1
                head = int(words[(first + head - 1) * stride])
        counts.append(total)
    return counts


def test_segments_are_used_again() -> None:
    """Records that wait and are then met leave room for the next ones: the segments do not grow round by round."""
    store = JoinStore("join", ("key", "key"), (("a", "b"), ("c", "d")), "right", 4)
    sizes = []
    for start in range(0, 4000, 100):
        waiting = [(start + n, n, 0.5) for n in range(100)]
        store.run(start, [[_columns(waiting, ("a", "b"))], []])
        store.run(start + 1, [[], [_columns(waiting, ("c", "d"))]])
        sizes.append(int(store._pools[0].segments.sizes.sum()))
    assert sizes[-1] <= 2 * sizes[0]
    assert rows_kept(store) == [0, 4000]


def _columns(records: list[tuple[int, int, float]], names: tuple[str, str]) -> Any:
    from dataflow.columns import Columns

    return Columns(batch(records, names))


def test_the_cases_have_something_in_them() -> None:
    made = [random_case(seed) for seed in range(120)]
    assert {case.unique for case in made} == {None, "left", "right"}
    assert sum(len(oracle(case)) > 5 for case in made) > 60

    def travelled(case: Case) -> bool:
        """Whether some pair's records found their bin at different workers."""
        numbers = {key: bin_of(key, shift_of(case.bins)) for _, key, *_ in oracle(case)}
        return any(
            len({owner(case.updates, case.bins, case.peers, n, time) for time in range(case.times)}) > 1
            for n in numbers.values()
        )

    assert sum(map(travelled, made)) > 30


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"unique": "both"}, "unique is 'left' or 'right'"),
        ({"value": ("x",), "right_value": ("x",)}, "both sides have a column 'x'"),
    ],
)
def test_what_makes_no_sense_is_refused_when_the_join_is_built(options: dict[str, Any], complaint: str) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, configuration = scope.input()
            _, left = scope.input()
            _, right = scope.input()
            megaphone.join(configuration, left, right, key="key", **options)

    with pytest.raises(dataflow.DataflowError, match=complaint):
        simulate(main, workers=1)
