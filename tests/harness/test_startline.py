"""All workers start at one instant."""

from __future__ import annotations

import pytest

import dataflow
from dataflow.run.clock import Clock
from dataflow.run.worker import pump_of
from dataflow.testing import simulate
from megaphone.harness.startline import agree_on_start, clock_offset


class Ahead(Clock):
    """A clock that is some seconds ahead of the loop's, as that of another program would be."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> float:
        return super().now() + self._seconds


async def start(worker: dataflow.Worker) -> tuple[float, float]:
    """The agreed instant on the worker's clock and on the machine's."""
    pump_of(worker).clock = Ahead(1000.0 * worker.index)
    instant = await agree_on_start(worker)
    return instant, instant - clock_offset(worker)


async def start_here(worker: dataflow.Worker) -> float:
    """The agreed instant on the worker's own clock."""
    return await agree_on_start(worker)


@pytest.mark.parametrize("seed", range(5))
def test_simulated_workers_share_a_clock(seed: int) -> None:
    assert len(set(simulate(start_here, workers=3, seed=seed))) == 1


def test_workers_of_one_process_share_a_clock() -> None:
    assert len(set(dataflow.execute(start_here, workers=3, in_process=True))) == 1


def test_processes_share_the_machine_s_clock() -> None:
    (here, machine), (there, same_machine) = dataflow.execute(start, workers=2)
    assert abs(there - here) > 900
    assert abs(machine - same_machine) < 0.05  # less than the lead: each waits for the same instant


def test_a_worker_alone_need_not_ask() -> None:
    (instant,) = simulate(start_here, workers=1)
    assert instant == pytest.approx(0.05)
