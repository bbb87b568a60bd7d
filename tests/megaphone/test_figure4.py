"""Section 3.5: the three snapshots of Figure 4, step by step, for state in rows and for state in columns.

A word count on two workers. a and b start at worker 0, c at worker 1; b moves to worker 1 at time 45. After each step
everything is left to come to rest, under several schedules, and the figure's claims are read off F and S themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dataflow
import megaphone
from dataflow.testing import simulate
from megaphone.keys.hashing import bin_of, shift_of
from tests.megaphone.looking import frontier, quiet, router_of

BINS = 64
A, B, C = 97, 98, 99  # integers, so that rows and columns have the same keys
SEEDS = range(12)


@megaphone.fold(state={"count": "i8"}, output={"key": "i8", "count": "i8"}, compiled=False)
def count_columns(key, value, state):
    state.count += value
    return key, state.count


def count_rows(time: int, records: list[Any], state: dict[Any, int], notificator: Any) -> Any:
    for key, value in records:
        state[key] = state.get(key, 0) + value
        yield key, state[key]


class Rows:
    """The word count over rows."""

    def build(self, configuration: Any, stream: Any) -> Any:
        return megaphone.unary(configuration, stream, key=lambda r: r[0], fold=count_rows, bins=BINS, name="count")

    def send(self, handle: Any, at: int, key: int, value: int) -> None:
        handle.send([(key, value)], at=at)

    def enqueued(self, batch: Any) -> list[Any]:
        return list(batch)

    def given(self, batch: Any) -> list[Any]:
        return list(batch)

    def state(self, store: Any) -> dict[int, int]:
        return {key: count for bin in store.occupied().tolist() for key, count in store.view(bin).entries.items()}


class InColumns:
    """The word count over columns."""

    def build(self, configuration: Any, stream: Any) -> Any:
        return megaphone.state_machine(
            configuration, stream, key="key", value="diff", fold=count_columns, bins=BINS, name="count"
        )

    def send(self, handle: Any, at: int, key: int, value: int) -> None:
        handle.send({"key": [key], "diff": [value]}, at=at)

    def enqueued(self, batch: Any) -> list[Any]:
        return list(batch.rows())

    given = enqueued

    def state(self, store: Any) -> dict[int, int]:
        return {key: s["count"] for bin in store.occupied().tolist() for key, s in store.view(bin).entries.items()}


def placement() -> tuple[int, ...]:
    """a and b at worker 0, c at worker 1; b has a bin of its own."""
    numbers = {key: bin_of(key, shift_of(BINS)) for key in (A, B, C)}
    assert len(set(numbers.values())) == 3
    return tuple(1 if number == numbers[C] else 0 for number in range(BINS))


class Seat:
    """What can be seen from one worker."""

    def __init__(self, worker: dataflow.Worker, kind: Any) -> None:
        self.worker = worker
        self.kind = kind
        self.out: list[Any] = []
        with worker.dataflow() as scope:
            self.control, configuration = scope.input("control")
            self.data, stream = scope.input("data")
            self.counts = kind.build(configuration, stream)
            self.probe = self.counts.inspect_batch(self._note).probe()
        self.router: Any = router_of(scope, "count")

    def _note(self, time: int, batch: Any) -> None:
        self.out.extend((time, *row) for row in self.kind.given(batch))

    def send(self, index: int, at: int, key: int, value: int) -> None:
        if self.worker.index == index:
            self.kind.send(self.data, at, key, value)

    def enqueued(self) -> list[Any]:
        """Records that F has and cannot route: (time, key, value)."""
        kept = self.router._uncertain.items()
        return [(time, *row) for time, batches in kept for *_, b in batches for row in self.kind.enqueued(b)]

    @property
    def state(self) -> dict[int, int]:
        return self.kind.state(self.counts.handle.store)

    @property
    def frontiers(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Of F's control input, of F's data input, and of S's output."""
        return frontier(self.router._control), frontier(self.router._data[0]), frontier(self.probe)

    def by_worker(self, *expected: Any) -> Any:
        return expected[self.worker.index]


async def prepare(seat: Seat) -> None:
    """Before the figure: a, b and c have been counted up to time 41."""
    if seat.worker.index == 0:
        seat.control.send([megaphone.Assign(placement())], at=0)
    for index, key, value in ((0, A, 1), (1, B, 4), (0, C, 2)):
        seat.send(index, 41, key, value)
    seat.send(0, 44, A, 3)
    seat.send(1, 43, C, 5)
    seat.send(1, 45, B, 7)
    for handle, time in ((seat.control, 42), (seat.data, seat.by_worker(55, 43))):
        handle.advance_to(time)
    await quiet()


async def snapshot_a(seat: Seat) -> None:
    """The control frontier is at 42: records from there on are enqueued where they came in."""
    assert seat.frontiers == ([42], [43], [42]), "S can reach the minimum of data and control"
    assert seat.enqueued() == seat.by_worker([(44, A, 3)], [(43, C, 5), (45, B, 7)])
    assert seat.state == seat.by_worker({A: 1, B: 4}, {C: 2})
    assert sorted(seat.out) == seat.by_worker([(41, A, 1), (41, B, 4)], [(41, C, 2)])
    seat.out.clear()
    await quiet()


async def snapshot_b(seat: Seat) -> None:
    """Control is at 45, and the update of b at 45 is known but not final: what is before 45 is routed and applied."""
    if seat.worker.index == 0:
        seat.control.send([megaphone.Move(bin_of(B, shift_of(BINS)), 1)], at=45)
    seat.control.advance_to(45)
    seat.data.advance_to(seat.by_worker(55, 45))
    await quiet()
    assert seat.frontiers == ([45], [45], [45])
    assert seat.enqueued() == seat.by_worker([], [(45, B, 7)])
    assert seat.state == seat.by_worker({A: 4, B: 4}, {C: 7}), "b has not moved"
    assert seat.out == seat.by_worker([(44, A, 4)], [(43, C, 7)])
    assert list(seat.router._held) == [45], "F holds a capability for the time at which a bin may move"
    assert seat.counts.handle.configuration.tolist() == list(placement())
    seat.out.clear()
    await quiet()


async def beyond_45(seat: Seat) -> None:
    """Control passes 45, the data of worker 1 does not: b's state moves at once; b's record is routed and waits."""
    seat.control.advance_to(46)
    await quiet()
    assert seat.frontiers == ([46], [45], [45])
    assert seat.enqueued() == []
    assert seat.state == seat.by_worker({A: 4}, {B: 4, C: 7}), "b has moved: S had nothing left before 45"
    assert seat.out == [], "more records at 45 could come"
    assert not seat.router._held, "F has sent its share and let go"
    await quiet()


async def snapshot_c(seat: Seat) -> None:
    """Control is at 55 and a record at 55 is enqueued; the data input of F1 at 53 holds the output back."""
    seat.send(0, 55, A, 9)
    seat.control.advance_to(55)
    seat.data.advance_to(seat.by_worker(56, 53))
    await quiet()
    assert seat.frontiers == ([55], [53], [53])
    assert seat.enqueued() == seat.by_worker([(55, A, 9)], [])
    assert seat.out == seat.by_worker([], [(45, B, 11)]), "b's record was applied where b is"
    assert seat.state == seat.by_worker({A: 4}, {B: 11, C: 7})
    assert bin_of(B, shift_of(BINS)) in seat.counts.handle.configuration.nonzero()[0]
    assert seat.router.configurations.size == 1, "what the update replaced is not kept"
    seat.out.clear()
    await quiet()


async def beyond_55(seat: Seat) -> None:
    """Control passes 55: F0 routes its record, and S0 may not apply it before it knows that nothing else can come."""
    seat.control.advance_to(56)
    await quiet()
    assert (seat.enqueued(), seat.out) == ([], [])
    assert seat.frontiers == ([56], [53], [53])
    await quiet()
    seat.data.advance_to(56)
    await quiet()
    assert seat.out == seat.by_worker([(55, A, 13)], [])
    assert seat.frontiers == ([56], [56], [56])


@pytest.mark.parametrize("kind", [Rows(), InColumns()], ids=["rows", "columns"])
@pytest.mark.parametrize("seed", SEEDS)
def test_figure_4_step_by_step(kind: Any, seed: int) -> None:
    steps: list[Callable[[Seat], Any]] = [prepare, snapshot_a, snapshot_b, beyond_45, snapshot_c, beyond_55]

    async def main(worker: dataflow.Worker) -> int:
        seat = Seat(worker, kind)
        for step in steps:
            await step(seat)
        return len(steps)

    assert simulate(main, workers=2, seed=seed, debug=seed % 3 == 0) == [len(steps)] * 2
