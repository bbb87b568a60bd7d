"""Operators that look at one record at a time, or at none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import dataflow
from tests.engine.harness import TOGETHER, Run, bag, notes, outcome, timed

NUMBERS = [[1, 2, 3, 4], [], [5, 6], [7]]


def test_map(run: Run) -> None:
    assert outcome(run, lambda s: s.map(lambda n: n * n), NUMBERS) == timed([1, 4, 9, 16], [], [25, 36], [49])


def test_flat_map(run: Run) -> None:
    out = outcome(run, lambda s: s.flat_map(lambda n: range(n % 3)), NUMBERS)
    assert out == timed(*([i for n in epoch for i in range(n % 3)] for epoch in NUMBERS))


def test_flat_map_of_generators() -> None:
    assert outcome(Run(), lambda s: s.flat_map(lambda n: (n for _ in range(2))), [[1, 2]]) == timed([1, 1, 2, 2])


def test_filter(run: Run) -> None:
    assert outcome(run, lambda s: s.filter(lambda n: n % 2), NUMBERS) == timed([1, 3], [], [5], [7])


def test_filter_that_lets_nothing_through_still_moves_the_frontier(run: Run) -> None:
    assert outcome(run, lambda s: s.filter(lambda _: False), NUMBERS) == []


def test_inspect_sees_and_passes_on(run: Run) -> None:
    seen: list[Any] = []
    out = outcome(run, lambda s: s.inspect(lambda t, n: seen.append((t, n))), NUMBERS)
    assert out == bag(seen) == timed(*NUMBERS)


def test_inspect_batch_sees_lists(run: Run) -> None:
    seen: list[Any] = []
    out = outcome(run, lambda s: s.inspect_batch(lambda t, b: seen.append((t, b))), NUMBERS)
    assert out == bag((t, n) for t, batch in seen for n in batch) == timed(*NUMBERS)
    assert all(batch and isinstance(batch, list) for _, batch in seen)


def test_concat_of_three(run: Run) -> None:
    out = outcome(run, lambda a, b, c: a.concat(b, c), NUMBERS, [["x"]], [[], [], [], [], ["y"]])
    assert out == bag([*timed(*NUMBERS), (0, "x"), (4, "y")])


def test_concat_of_a_stream_with_itself_doubles_it(run: Run) -> None:
    assert outcome(run, lambda s: s.concat(s), NUMBERS) == timed(*(epoch * 2 for epoch in NUMBERS))


def test_concat_from_the_scope(run: Run) -> None:
    assert outcome(run, lambda a, b: a.scope.concat([a, b]), [[1]], [[2]]) == timed([1, 2])


def test_partition(run: Run) -> None:
    def build(stream: Any) -> Any:
        parts = stream.partition(3, lambda n: n % 3)
        labelled = [part.map(lambda n, i=i: (i, n)) for i, part in enumerate(parts)]
        return labelled[0].concat(*labelled[1:])

    assert outcome(run, build, NUMBERS) == timed(*([(n % 3, n) for n in epoch] for epoch in NUMBERS))


@pytest.mark.parametrize("route", [3, -1, 99])
def test_a_route_out_of_range_names_the_record(route: int) -> None:
    with pytest.raises(ValueError, match=rf"split.*{route}.*'rec'") as failure:
        outcome(Run(), lambda s: s.partition(3, lambda _: route, name="split")[0], [["rec"]])
    assert "split (#1)" in notes(failure.value)


def test_branch(run: Run) -> None:
    def build(stream: Any) -> Any:
        odd, even = stream.branch(lambda n: n % 2)
        return odd.map(lambda n: ("odd", n)).concat(even.map(lambda n: ("even", n)))

    assert outcome(run, build, NUMBERS) == timed(*([(("even", "odd")[n % 2], n) for n in e] for e in NUMBERS))


@pytest.mark.parametrize("run", TOGETHER, ids=str)
def test_exchange_brings_equal_keys_together(run: Run) -> None:
    homes: dict[Any, set[int]] = {}

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            words, stream = scope.input()
            stream.exchange(str.lower).inspect(lambda _, w: homes.setdefault(w.lower(), set()).add(worker.index))
        words.send(["The", "quick", "brown", "Fox", "jumps", "over", "THE", "lazy", "fox", "and", "THe", "dog"])

    run(main)
    assert all(len(workers) == 1 for workers in homes.values())
    assert len(set().union(*homes.values())) == run.workers, "the words should be spread over all workers"


def test_exchange_by_integer_is_modulo_the_workers(together: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.exchange(lambda n: n).inspect(lambda _, n: seen.append((n, worker.index)))
        if worker.index == 0:
            numbers.send(range(10))

    together(main)
    assert sorted(seen) == [(n, n % together.workers) for n in range(10)]


def test_broadcast_gives_every_worker_every_record(run: Run) -> None:
    out = outcome(run, lambda s: s.broadcast(), NUMBERS)
    assert out == timed(*(epoch * run.workers for epoch in NUMBERS))


def test_records_of_one_worker_and_channel_keep_their_order() -> None:
    for workers in (1, 2, 3):
        seen: list[Any] = []

        async def main(worker: dataflow.Worker, seen: list[Any] = seen) -> None:
            with worker.dataflow() as scope:
                numbers, stream = scope.input()
                stream.map(lambda n: n).filter(lambda _: True).inspect(lambda _, n: seen.append((worker.index, n)))
            for n in range(20):
                numbers.send([n])

        Run(workers)(main)
        assert all([n for w, n in seen if w == worker] == list(range(20)) for worker in range(workers))


def test_fan_out_gives_each_consumer_all_records(run: Run) -> None:
    def build(stream: Any) -> Any:
        doubled = stream.map(lambda n: 2 * n)
        return doubled.filter(lambda n: n > 4).concat(doubled.exchange(lambda n: n), doubled.broadcast())

    expected = [Counter(2 * n for n in e if n > 2) + Counter([2 * n for n in e] * (1 + run.workers)) for e in NUMBERS]
    assert outcome(run, build, NUMBERS) == timed(*(c.elements() for c in expected))


def test_what_was_sent_may_be_changed_afterwards() -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            stream.inspect(lambda _, n: seen.append(n))
        mine = [1, 2]
        numbers.send(mine)
        mine.append(3)

    Run()(main)
    assert seen == [1, 2]
