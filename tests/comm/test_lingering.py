"""Nobody looks for messages while something else in its loop can go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing

import dataflow
from dataflow.comm.linked import Linked
from dataflow.comm.patience import Patience
from dataflow.run.pump import Pump
from dataflow.run.signal import Signal
from tests.comm.rig import _links, _pairs


class Worker:
    """As much of a pump as is asked."""

    scheduled = busy = False


@contextmanager
def looking(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Worker, Linked, list[None]]]:
    """A worker, its transport, and an entry for each time that it has looked."""
    pairs = _pairs(2)
    looks: list[None] = []
    monkeypatch.setattr(Linked, "collect", lambda _: bool(looks.append(None)))
    worker = Worker()
    try:
        yield worker, Linked(worker, _links(pairs, 0), Patience(few=0)), looks  # type: ignore[arg-type]
    finally:
        for sock in pairs.values():
            sock.close()


def test_it_looks_while_nobody_else_has_anything_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with looking(monkeypatch) as (_, transport, looks):
            assert not transport.linger()
            assert looks

    trio.run(main)


def test_it_stops_when_a_task_was_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A main whose time has passed sends the next one: the others wait for that, and not the other way round."""

    async def main() -> None:
        signal = Signal()
        with looking(monkeypatch) as (_, transport, looks):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(signal.wait)
                await trio.testing.wait_all_tasks_blocked()
                transport.linger()  # so that it is known that nobody else has anything to do
                looks.clear()
                signal.set()
                assert not transport.linger()
                assert not looks

    trio.run(main)


def test_a_pump_that_is_due_is_not_taken_for_that_task() -> None:
    """It is woken when the step is over, and not one of those that can run before."""
    seen: list[tuple[bool, bool]] = []

    async def main(worker: dataflow.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.input()
            probe = stream.probe()
        pump: Pump = scope.dataflow.pump
        await trio.testing.wait_all_tasks_blocked()
        numbers.advance_to(1)
        seen.append((pump.awake, pump.scheduled))
        await probe.wait_passed(0)

    dataflow.execute(main, workers=1)
    assert seen == [(True, False)]
