"""Sources: iterables and asynchronous iterables, their times and their pace."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

import dataflow
from dataflow.errors import ConstructionError
from tests.engine.harness import Run, bag, notes, timed


def emitted(run: Run, records: Any, **options: Any) -> list[Any]:
    """The bag of (time, record) that a source on worker 0 gives (the others' are empty)."""
    seen: list[Any] = []
    time = options.pop("time", int)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow(time=time) as scope:
            stream = scope.source(records if worker.index == 0 else [], **options)
            stream.exchange(lambda _: 0).inspect(lambda t, r: seen.append((t, r)))

    run(main)
    return bag(seen)


async def letters(text: str) -> AsyncIterator[str]:
    for letter in text:
        await trio.sleep(1)
        yield letter


def test_batches_of_an_iterable(run: Run) -> None:
    assert emitted(run, "abcde", batch=2) == timed("ab", "cd", "e")


def test_an_iterable_is_batched_by_1024_unless_told() -> None:
    times = [time for time, _ in emitted(Run(), range(2050))]
    assert [times.count(time) for time in (0, 1, 2)] == [1024, 1024, 2]


def test_a_function_makes_the_iterable(run: Run) -> None:
    assert emitted(run, lambda: iter("ab"), batch=1) == timed("a", "b")


@pytest.mark.parametrize("run", [Run(workers, seed=seed) for workers in (1, 2, 3) for seed in (0, 1)], ids=str)
def test_an_asynchronous_iterable_has_a_time_for_each_item(run: Run) -> None:
    assert emitted(run, letters("abc") if run.workers == 1 else lambda: letters("abc")) == timed("a", "b", "c")
    assert emitted(run, lambda: letters("abc"), batch=2) == timed("ab", "c")


def test_empty_sources(run: Run) -> None:
    assert emitted(run, []) == emitted(run, [], timed=True) == []


def test_timed_items_name_their_times(run: Run) -> None:
    items = [(0, "a"), (0, "b"), (5, "c"), (5, ""), (7, "de")]
    out = emitted(run, [(time, list(records)) for time, records in items], timed=True)
    assert out == bag((time, r) for time, records in items for r in records)


def test_timed_items_of_other_types_of_time() -> None:
    out = emitted(Run(1, seed=0), [((0, 0), [1]), ((1, 3), [2])], timed=True, time=dataflow.Product(int, int))
    assert out == [((0, 0), 1), ((1, 3), 2)]


def test_timed_items_going_back_are_refused() -> None:
    with pytest.raises(dataflow.TimeError, match="clicks is at 3 and cannot go back to 2") as failure:
        emitted(Run(), [(3, ["a"]), (2, ["b"])], timed=True, name="clicks")
    assert "clicks" in notes(failure.value)


@pytest.mark.parametrize("item", [5, (1, 2, 3), None])
def test_timed_items_that_are_not_pairs_are_refused(item: Any) -> None:
    with pytest.raises(TypeError, match=r"needs \(time, records\) pairs, and got"):
        emitted(Run(), [item], timed=True)


def test_timed_records_must_be_a_list_of_records() -> None:
    with pytest.raises(TypeError, match="list of records"):
        emitted(Run(), [(0, "word")], timed=True)


def test_every_paces_by_the_clock() -> None:
    arrivals: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        start = trio.current_time()
        with worker.dataflow() as scope:
            stream = scope.source("abcd", batch=1, every=5)
            stream.inspect(lambda t, r: arrivals.append((round(trio.current_time() - start, 3), r)))

    Run(1, seed=0)(main)
    assert arrivals == [(0, "a"), (5, "b"), (10, "c"), (15, "d")]


def test_a_source_that_is_late_catches_up() -> None:
    arrivals: list[Any] = []

    async def slow_start() -> AsyncIterator[str]:
        await trio.sleep(22)
        for letter in "abcdefg":
            yield letter

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(slow_start, every=10).inspect(lambda t, r: arrivals.append((round(trio.current_time()), r)))

    Run(1, seed=0)(main)
    assert arrivals == [(22, "a"), (22, "b"), (22, "c"), (30, "d"), (40, "e"), (50, "f"), (60, "g")]


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_a_source_is_no_further_ahead_than_it_may_be(ahead: int) -> None:
    taken: list[int] = []
    written: list[int] = []
    most = 0

    def numbers() -> Iterator[int]:
        for n in range(20):
            taken.append(n)
            yield n

    async def write(time: int, batch: list[int]) -> None:
        nonlocal most
        await trio.sleep(1)
        most = max(most, len(taken) - len(written))
        written.extend(batch)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(numbers, batch=1, ahead=ahead).map(lambda n: n).sink(write)

    Run(1, seed=0)(main)
    assert written == list(range(20))
    assert most <= ahead + 1, "one more may have been taken from the iterator, but not sent"


def test_two_sources_pace_each_other_without_deadlock(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            left, right = scope.source(range(10), batch=1, ahead=1), scope.source(range(10), batch=1, ahead=3)
            left.join(right, lambda n: n).inspect(lambda t, r: seen.append((t, r)))

    run(main)
    assert bag(seen) == timed(*([(n, n, n)] * run.workers**2 for n in range(10)))


def test_a_source_in_front_of_a_loop_is_paced(run: Run) -> None:
    seen: list[Any] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            counted = scope.source(range(6), batch=1, ahead=2).iterate(
                lambda s: (s.filter(lambda n: n > 0).map(lambda n: n - 1), s.filter(lambda n: n == 0))
            )
            counted.inspect(lambda t, r: seen.append((t, r)))

    run(main)
    assert bag(seen) == timed(*([0] * run.workers for _ in range(6)))


def test_a_source_that_raises_in_the_middle_ends_everything(together: Run) -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise LookupError("no more")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            scope.source(numbers if worker.index == 0 else [], batch=1, name="clicks")
            _, stream = scope.input()
            probe = stream.probe()
        await probe.wait_passed(10)
        raise AssertionError("nobody gets here")

    with pytest.raises(LookupError, match="no more") as failure:
        together(main)
    assert "clicks" in notes(failure.value)


def test_a_source_s_exception_names_operator_worker_and_dataflow() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise LookupError("no more")

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow("shop") as scope:
            scope.source(numbers if worker.index else [], name="clicks")

    with pytest.raises(LookupError) as failure:
        Run(2)(main)
    assert all(words in notes(failure.value) for words in ("clicks (#0)", "worker 1 of 2", "'shop'"))


@pytest.mark.parametrize(
    ("records", "options", "complaint"),
    [
        (5, {}, "needs an iterable"),
        (lambda: 5, {}, "needs an iterable"),
        ([], {"batch": 0}, "at least 1"),
        ([], {"ahead": 0}, "at least 1"),
        ([], {"every": -1}, "not negative"),
    ],
)
def test_misuse_is_refused_at_construction(records: Any, options: Any, complaint: str) -> None:
    with pytest.raises(ConstructionError, match=complaint):
        emitted(Run(), records, **options)


def test_counted_sources_need_integer_times_and_the_root() -> None:
    with pytest.raises(ConstructionError, match="timed=True"):
        emitted(Run(), [1], time=dataflow.Product(int, int))

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope, scope.nested() as inner:
            inner.source([1])

    with pytest.raises(ConstructionError, match="root"):
        Run()(main)


@pytest.mark.parametrize("way_out", ["exception", "drop"])
def test_an_asynchronous_generator_is_closed_when_the_computation_ends_early(way_out: str) -> None:
    closed: list[bool] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                await trio.sleep(1)
                yield 1
        finally:
            closed.append(True)

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.source(endless).probe()
        await probe.wait_passed(3)
        if way_out == "exception":
            raise InterruptedError
        worker.drop_dataflow(scope)

    if way_out == "exception":
        with pytest.raises(InterruptedError):
            Run(1, seed=0)(main)
    else:
        Run(1, seed=0)(main)
    assert closed == [True]


def test_a_source_that_fails_closes_its_generators() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(TypeError):
            emitted(Run(), [5], timed=True)
        gc.collect()
    assert [str(w.message) for w in caught] == []


def test_a_time_is_complete_as_soon_as_its_batch_has_been_sent() -> None:
    async def main(worker: dataflow.Worker) -> int:
        start = trio.current_time()
        with worker.dataflow() as scope:
            probe = scope.source(lambda: letters("ab")).probe()  # one a second
        await probe.wait_passed(0)
        return round(trio.current_time() - start)

    assert Run(1, seed=0)(main) == [1]


def test_a_source_of_a_dataflow_that_failed_to_be_built_does_not_spin() -> None:
    async def main(worker: dataflow.Worker) -> bool:
        with suppress(KeyError), worker.dataflow() as scope:
            scope.source([1, 2, 3])
            raise KeyError
        with trio.move_on_after(0.2):
            await trio.testing.wait_all_tasks_blocked()
            return True
        return False

    assert Run()(main) == [True]
