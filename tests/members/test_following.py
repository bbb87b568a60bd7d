"""Sources that never end, and what is refused with what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import trio

import dataflow
import megaphone
from dataflow import sources
from dataflow.operators.partitions import Partitions
from dataflow.testing import simulate

PARTITIONS = 5


class Endless(Partitions[Any]):
    """Partitions with more and more records."""

    follow = True

    async def partitions(self) -> list[str]:
        """Their names."""
        return [str(number) for number in range(PARTITIONS)]

    async def read(self, partition: str, position: Any) -> AsyncIterator[tuple[int, None, list[Any]]]:
        """The rest of one."""
        for number in count(position or 0):
            await trio.sleep(0.07)
            yield number + 1, None, [{"key": (partition, number), "t": number * 100}]


def _fold(time: int, batch: list[Any], state: dict[Any, int], later: Any) -> Any:
    for record in batch:
        state[record["key"]] = state.get(record["key"], 0) + 1
        yield record["key"], state[record["key"]]


class Following:
    """Counts what such a source gives, while workers come and go."""

    def __init__(self, event_timed: bool) -> None:
        self.event_timed = event_timed
        self.out: Counter[Any] = Counter()
        self.states: list[str] = []

    async def main(self, worker: dataflow.Worker) -> None:
        """What each worker does."""
        source: Any = Endless()
        if self.event_timed:
            source = sources.event_timed(source, "t", 0, unit="ms")
        with worker.dataflow() as scope:
            records = scope.source(source)
            counts = megaphone.unary(
                scope.control(), records, key=lambda r: r["key"], fold=_fold, bins=8, name="counts"
            )
            counts.inspect(lambda _, record: self.out.update([record]))
        if worker.index == 0:
            for workers in (3, 1, 2):
                change = worker.scale(workers)
                await change.over()
                self.states.append(change.state)
            worker.drop_dataflow(scope)


@pytest.mark.parametrize("event_timed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_partitions_of_a_source_that_never_ends_follow(event_timed: bool, seed: int) -> None:
    case = Following(event_timed)
    simulate(case.main, workers=2, seed=seed, turns=200_000)
    assert case.states == ["done"] * 3
    assert set(case.out.values()) == {1} and all(number == 1 for _, number in case.out), "each record once"
    for partition in map(str, range(PARTITIONS)):
        numbers = sorted(number for (name, number), _ in case.out if name == partition)
        assert numbers == list(range(len(numbers))), "none is left out"
    assert len(case.out) > 4 * PARTITIONS


def _windows(scope: Any) -> None:
    _, stream = scope.input()
    stream.columns.tumbling("t", 10, "k", total=("sum", "v"))


def _native(scope: Any) -> None:
    from dataflow.state import native

    _, stream = scope.input()
    native.state_machine(stream, fold=lambda key, value, state: (state, []))


REFUSED = {
    "megaphone.window": _windows,
    "megaphone's operator of the same name": _native,
    "a source with partitions": lambda scope: scope.source(range(3)),
    "sources.event_timed": lambda scope: scope.input()[1].event_time(lambda record: record, 1),
}


@pytest.mark.parametrize("instead", REFUSED)
def test_what_cannot_follow_says_what_could(instead: str) -> None:
    async def main(worker: dataflow.Worker) -> str | None:
        with worker.dataflow() as scope:
            REFUSED[instead](scope)
        change = worker.scale(2)
        await change.over()
        return change.error

    (error,) = simulate(main, workers=1)
    assert error is not None and "cannot follow" in error and instead in error
