"""Several migratable operators: on one control stream, on streams of their own, and one behind the other (3.4)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of
from tests.megaphone.cases import Inputs, owner, random_updates

BINS, PEERS, TIMES = 8, 3, 7


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"}, compiled=False)
def count_columns(key, value, state):
    state.count += value
    return key, state.count


def count_machine(key: int, value: int, state: int | None) -> tuple[int, list[Any]]:
    total = (state or 0) + value
    return total, [(key, total)]


def as_columns(stream: Any, name: str) -> Any:
    """Rows of (key, value) as columns."""

    def step(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, dataflow.columns.Columns({"key": [k for k, _ in batch], "v": [v for _, v in batch]}))

    return stream.unary(name, lambda _: step)


def as_rows(stream: Any, name: str) -> Any:
    """Columns as rows."""

    def step(input: Any, output: Any) -> None:
        for message, batch in input:
            output.give(message, batch.rows())

    return stream.unary(name, lambda _: step)


def rows_operator(control: Any, stream: Any, applied: list[Any], name: str, bins: int = BINS) -> Any:
    def fold(time: int, batch: list[Any], state: dict[Any, int], notificator: Any) -> Any:
        for key, value in batch:
            applied.append((time, key))
            state[key] = state.get(key, 0) + value
        yield from ((key, state[key]) for key in dict(batch))

    return megaphone.unary(control, stream, key=lambda r: r[0], fold=fold, bins=bins, name=name)


def some_records(seed: int) -> Inputs:
    chance = random.Random(seed)
    return {
        (worker, time): [(chance.randrange(10), chance.randint(1, 5)) for _ in range(4)]
        for worker in range(PEERS)
        for time in range(TIMES)
    }


def sums(records: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Counts by key, one row for each key and time: what `rows_operator` puts out."""
    state: Counter[Any] = Counter()
    out = []
    for time in sorted({time for time, _ in records}):
        here = [record for at, record in records if at == time]
        for key, value in here:
            state[key] += value
        out += [(time, (key, state[key])) for key in {key for key, _ in here}]
    return out


def every_state(records: list[tuple[int, Any]]) -> Counter[Any]:
    """The final sums by key."""
    totals: Counter[Any] = Counter()
    for _, (key, value) in records:
        totals[key] += value
    return totals


def timed(records: Inputs) -> list[tuple[int, Any]]:
    return [(time, record) for (_, time), batch in records.items() for record in batch]


def check_places(results: list[list[Any]], updates: Inputs, bins: int = BINS) -> None:
    """Migration: every update at the worker that the configuration names."""
    for worker, applied in enumerate(results):
        for time, key in applied:
            assert worker == owner(updates, bins, PEERS, bin_of(key, shift_of(bins)), time)


async def feed(worker: dataflow.Worker, controls: list[tuple[Any, Inputs]], data: Any, records: Inputs, probe: Any):
    """The usual loop."""
    for time in range(TIMES):
        for control, updates in controls:
            control.send(updates.get((worker.index, time), []))
            control.advance_to(time + 1)
        data.send(records.get((worker.index, time), []))
        data.advance_to(time + 1)
        await probe.wait_passed(time - 1)
    await probe.wait_passed(TIMES - 1)


def test_a_chain_on_one_control_stream() -> None:
    """Counts of counts: both operators move at the same times."""

    async def main(worker: dataflow.Worker, records: Inputs, updates: Inputs) -> Any:
        out: list[Any] = []
        first: list[Any] = []
        second: list[Any] = []
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            counts = rows_operator(configuration, stream, first, "first")
            again = counts.map(lambda r: (r[1] % 7, r[0]))
            sums_of = rows_operator(configuration, again, second, "second")
            probe = sums_of.inspect(lambda t, r: out.append((t, r))).probe()
        await feed(worker, [(control, updates)], data, records, probe)
        assert counts.handle.configuration.tolist() == sums_of.handle.configuration.tolist()
        return out, first, second

    for seed in range(12):
        records = some_records(seed)
        updates = random_updates(random.Random(seed), TIMES, BINS, PEERS)
        results = simulate(main, records, updates, workers=PEERS, seed=seed, debug=seed == 0)
        between = [(time, (total % 7, key)) for time, (key, total) in sums(timed(records))]
        assert Counter(row for out, *_ in results for row in out) == Counter(sums(between))
        check_places([first for _, first, _ in results], updates)
        check_places([second for *_, second in results], updates)


@pytest.mark.parametrize("together", [True, False], ids=["one control stream", "a stream each"])
def test_rows_and_columns_side_by_side_and_in_a_chain(together: bool) -> None:
    """A function of rows, a state machine of rows, a fold over columns, and a join of two of them."""

    async def main(worker: dataflow.Worker, records: Inputs, several: list[Inputs]) -> Any:
        outs: list[list[Any]] = [[], [], [], []]
        applied: list[Any] = []
        with worker.dataflow() as scope:
            inputs = [scope.input(f"control {n}") for n in range(len(several))]
            pick = [inputs[n % len(inputs)][1] for n in range(4)]
            data, stream = scope.input("data")
            columns = as_columns(stream, "as columns")
            one = rows_operator(pick[0], stream, applied, "rows")
            two = megaphone.state_machine(pick[1], stream, fold=count_machine, bins=BINS, name="machine")
            three = megaphone.state_machine(
                pick[2], columns, key="key", value="v", fold=count_columns, bins=BINS, name="columns"
            )
            four = megaphone.join(
                pick[3], columns, three, key="key", value=("v",), right_value=("count",), bins=BINS, name="pairs"
            )
            streams = [one, two, as_rows(three, "rows of three"), as_rows(four, "rows of four")]
            noted = [s.inspect(lambda t, r, n=n: outs[n].append((t, r))) for n, s in enumerate(streams)]
            probe = scope.concat(noted).probe()
        controls = [(handle, updates) for (handle, _), updates in zip(inputs, several, strict=True)]
        await feed(worker, controls, data, records, probe)
        return outs, applied, [op.handle.configuration.tolist() for op in (one, two, three, four)]

    for seed in range(6):
        chance = random.Random(seed)
        records = some_records(seed)
        several = [random_updates(chance, TIMES, BINS, PEERS) for _ in range(1 if together else 4)]
        results = simulate(main, records, several, workers=PEERS, seed=seed)
        outs = [[row for parts, *_ in results for row in parts[n]] for n in range(4)]
        given = timed(records)
        assert Counter(outs[0]) == Counter(sums(given))
        for n in (1, 2):  # the order of a key's records within a time is not defined: compare what is left
            last: dict[Any, int] = {}
            for _, (key, total) in outs[n]:
                last[key] = max(total, last.get(key, 0))
            assert last == dict(every_state(given)) and len(outs[n]) == len(given)
        counts = [(time, record) for time, record in outs[2]]
        pairs = [
            (max(a, b), (key, v, count)) for a, (key, v) in given for b, (other, count) in counts if key == other
        ]
        assert Counter(outs[3]) == Counter(pairs)
        check_places([applied for _, applied, _ in results], several[0])
        for *_, configurations in results:
            for n, configuration in enumerate(configurations):
                updates = several[n % len(several)]
                assert configuration == [owner(updates, BINS, PEERS, b, TIMES) for b in range(BINS)]


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_with_different_numbers_of_bins_each_checks_for_itself_and_all_take_an_update_or_none(kind: str) -> None:
    """An update that one of the operators cannot take goes to none of them, in whichever order they were built."""

    async def main(worker: dataflow.Worker, sizes: list[int]) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            control, configuration = scope.input("control")
            data, stream = scope.input("data")
            columns = as_columns(stream, "as columns")
            operators = [
                rows_operator(configuration, stream, [], f"of {bins}", bins)
                if kind == "rows"
                else as_migratable(configuration, columns, bins)
                for bins in sizes
            ]
            probe = scope.concat(operators).inspect_batch(lambda t, b: out.append(len(b))).probe()
        before = [operator.handle.configuration.tolist() for operator in operators]
        for bad, complaint in [
            (megaphone.Move(5, 0), "no bin 5: there are 4"),
            (megaphone.Assign((0,) * 4), "a map of 4 bins, and the operator has 8"),
            (megaphone.Assign((0,) * 8), "a map of 8 bins, and the operator has 4"),
        ]:
            with pytest.raises(megaphone.ControlError, match=complaint):
                control.send([megaphone.Move(0, 1), bad])
        control.advance_to(1)
        data.send([(worker.index, 1)])
        data.advance_to(1)
        await probe.wait_passed(0)
        assert [operator.handle.configuration.tolist() for operator in operators] == before
        control.send([megaphone.Move(3, 0)])  # one that suits both
        for handle in (control, data):
            handle.advance_to(2)
        await probe.wait_passed(1)
        return [int(operator.handle.configuration[3]) for operator in operators], sum(out)

    for sizes in ([4, 8], [8, 4]):
        results = simulate(main, sizes, workers=2)
        assert [places for places, _ in results] == [[0, 0]] * 2
        assert sum(count for _, count in results) == 4  # two workers' record, through two operators


def as_migratable(configuration: Any, columns: Any, bins: int) -> Any:
    return megaphone.state_machine(
        configuration, columns, key="key", value="v", fold=count_columns, bins=bins, name=f"of {bins}"
    )
