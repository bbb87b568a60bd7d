"""Native operators on rows against plain programs: random records over several times, 1 to 3 workers, seeds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.channels.binned import Binned
from dataflow.errors import ConstructionError, ProtocolError
from dataflow.state import native
from dataflow.state.native_rows import BINS, ExchangeBins
from dataflow.state.stores.row_store import RowStore
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of

SEEDS = range(12)
KEYS = [0, 1, 2, -1, 1 << 40, "word", (3, "pair"), None, 2.5]
Pair = tuple[Any, int]
Epochs = list[list[Pair]]


def some(seed: int) -> Epochs:
    chance = Random(seed)
    return [
        [(chance.choice(KEYS), chance.randint(-3, 9)) for _ in range(chance.choice([0, 1, 4, 9]))] for _ in range(6)
    ]


def run(seed: int, build: Callable[[Any, Any], Any], epochs: Epochs) -> Counter[Any]:
    """The bag of (time, record) that comes out; records are dealt to workers at random."""
    out: list[Any] = []
    chance = Random(seed)
    peers = chance.randint(1, 3)
    dealt = [[chance.randrange(peers) for _ in records] for records in epochs]

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            control, updates = scope.input()
            handle, stream = scope.input()
            probe = build(updates, stream).inspect(lambda time, record: out.append((time, record))).probe()
        control.close()
        for time, (records, owners) in enumerate(zip(epochs, dealt, strict=True)):
            mine = [record for record, owner in zip(records, owners, strict=True) if owner == worker.index]
            handle.send(mine[::2])
            handle.send(mine[1::2])
            handle.advance_to(time + 1)
        handle.close()
        await probe.wait_done()

    simulate(main, workers=peers, seed=seed)
    return Counter(out)


def add(key: Any, value: int, state: tuple[int, int] | None) -> tuple[tuple[int, int] | None, list[Any]]:
    """Total and count, in no order within a time; a key is forgotten with its third record."""
    total, count = state or (0, 0)
    if count == 2:
        return None, [(key, "forgotten")]
    return (total + value, count + 1), [(key, count)]


def added(epochs: Epochs) -> Counter[Any]:
    states: dict[Any, Any] = {}
    out: Counter[Any] = Counter()
    for time, records in enumerate(epochs):
        for key, value in records:
            new, results = add(key, value, states.get(key))
            states[key] = new
            out.update((time, result) for result in results)
    return out


def test_a_state_machine_is_a_loop_over_records() -> None:
    found = 0
    for seed in SEEDS:
        epochs = some(seed)
        out = run(seed, lambda _, stream: native.state_machine(stream, fold=add), epochs)
        assert out == added(epochs)
        assert out == run(seed, lambda control, stream: megaphone.state_machine(control, stream, fold=add), epochs)
        found += len(out)
    assert found > 50


def put_off(time: int, records: list[Pair], state: dict[Any, int], notificator: Any) -> Iterable[Any]:
    """Totals by key; a positive value comes back, as a negative one, after as many times."""
    for key, value in records:
        state[key] = state.get(key, 0) + value
        if value > 0:
            notificator.notify_at(time + value, (key, -value))
    for key in {key for key, _ in records}:
        yield key, state[key]


def totals(epochs: Epochs) -> Counter[Any]:
    todo: dict[int, list[Pair]] = defaultdict(list)
    for time, records in enumerate(epochs):
        todo[time].extend(records)
    sums: Counter[Any] = Counter()
    out: Counter[Any] = Counter()
    while todo:
        time = min(todo)
        records = todo.pop(time)
        for key, value in records:
            sums[key] += value
            if value > 0:
                todo[time + value].append((key, -value))
        out.update((time, (key, sums[key])) for key in {key for key, _ in records})
    return out


def test_a_function_of_records_is_called_at_each_time_with_what_is_due() -> None:
    found = 0
    for seed in SEEDS:
        epochs = some(seed)
        out = run(seed, lambda _, stream: native.unary(stream, key=lambda pair: pair[0], fold=put_off), epochs)
        assert out == totals(epochs)
        found += sum(time >= len(epochs) for time, _ in out)
    assert found > 20, "much is due after the last record"


def test_state_is_what_its_function_makes() -> None:
    def remember(time: int, records: list[Pair], state: list[Any], _: Any) -> Iterable[Any]:
        state.extend(value for _, value in records)
        yield len(state)

    epochs: Epochs = [[("a", 1), ("a", 2)], [("a", 3)]]
    for seed in range(3):
        out = run(seed, lambda _, s: native.unary(s, key=lambda pair: pair[0], fold=remember, state=list), epochs)
        assert out == Counter({(0, 2): 1, (1, 3): 1})


def test_a_record_goes_with_its_bin_to_the_worker_that_has_it() -> None:
    pact = ExchangeBins(lambda record: record[0], BINS)
    records = [(key, 1) for key in KEYS]
    for peers in (1, 3):
        parts = pact.split(records, peers)
        assert [record for part in parts for _, record in part] == sorted(
            records, key=lambda record: bin_of(record[0], shift_of(BINS)) % peers
        )
        assert all(
            bin == bin_of(record[0], shift_of(BINS)) and bin % peers == worker
            for worker, part in enumerate(parts)
            for bin, record in part
        )


@pytest.mark.parametrize("peers", [1, 2, 3, 64])
def test_many_records_are_sorted_by_bins(peers: int) -> None:
    """The same as what few are, one by one; those of one bin stay in their order."""
    chance = Random(peers)
    pact = ExchangeBins(lambda record: record[0], BINS)
    for keys in (range(50), [f"word {n}" for n in range(9000)], [1.5, "x", 7]):
        records = [(chance.choice(keys), n) for n in range(64 * peers + chance.randrange(500))]
        parts = pact.split(records, peers)
        assert len(parts) == peers
        for worker, part in enumerate(parts):
            assert isinstance(part, Binned)
            expected: dict[int, list[Any]] = {}
            for record in records:
                number = bin_of(record[0], shift_of(BINS))
                if number % peers == worker:
                    expected.setdefault(number, []).append(record)
            assert list(part.groups()) == sorted(expected.items())
            assert len(part) == sum(map(len, expected.values()))


def test_a_bin_that_there_is_not_is_refused() -> None:
    store = RowStore("rows", 4, [lambda record: record[0]], lambda key: 0, dict, lambda *_: ())
    with pytest.raises(ProtocolError, match="rows was sent records of bin 4, and has 4 bins"):
        store.accept(Binned([("a", 1)], [4], [1]))


def test_many_records_of_one_time_on_any_number_of_workers() -> None:
    """Small batches and large ones of one time, from all workers: counted as a dictionary counts them."""
    chance = Random(5)
    epochs: Epochs = [[(chance.randrange(300), 1) for _ in range(chance.choice((0, 1, 70, 1000)))] for _ in range(6)]

    def count(key: int, value: int, total: int | None) -> tuple[int, list[tuple[int, int]]]:
        total = (total or 0) + value
        return total, [(key, total)]

    expected: Counter[Any] = Counter()
    totals: Counter[int] = Counter()
    for time, epoch in enumerate(epochs):
        for key, value in epoch:
            totals[key] += value
            expected[time, (key, totals[key])] += 1
    for seed in range(3):
        assert run(seed, lambda _, stream: native.state_machine(stream, fold=count), epochs) == expected


def test_an_error_names_the_operator_the_key_and_the_time() -> None:
    def fail(key: Any, value: int, state: Any) -> Any:
        raise KeyError("no such thing")

    with pytest.raises(KeyError) as caught:
        run(1, lambda _, stream: native.state_machine(stream, fold=fail, name="failing"), [[("a", 1)]])
    notes = " ".join(caught.value.__notes__)
    assert "for the key 'a'" in notes and "failing" in notes and "at 0" in notes


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda s: native.state_machine(s, fold=3), "state_machine needs a function as its fold, not 3"),
        (lambda s: native.state_machine(s, fold=add, value="v"), "value= is for columns"),
        (lambda s: native.unary(s, key=3, fold=put_off), "unary needs a function as its key"),
        (lambda s: native.unary(s, key=len, fold=put_off, state={"a": "i8"}), "state is a function that makes one"),
        (lambda s: native.unary(s, key=len, fold=put_off, pending={"a": "i8"}), "pending= is for columns"),
        (lambda s: native.unary(s, key="k", fold=put_off), "say what its state is"),
        (lambda s: native.state_machine(s, key="k", fold=add), "columns need a fold made with megaphone.fold"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_built(build: Any, says: str) -> None:
    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            _, stream = scope.input()
            with pytest.raises(ConstructionError, match=says):
                build(stream)

    simulate(main, workers=1)


def test_rows_need_no_compiler() -> None:
    program = "import dataflow.state.native, sys; assert 'numba' not in sys.modules, 'numba was imported'"
    subprocess.run([sys.executable, "-c", program], check=True)
