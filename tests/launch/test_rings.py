"""Workers of one host that die with something in the memory that all share: nobody waits for them."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import dataflow
from dataflow.errors import WorkerFailed
from tests.launch.arena import Arena

LARGE = 3000  # rows that do not fit into a ring together


async def _dies(worker: dataflow.Worker, when: str) -> None:
    def take(_: Any, batch: list[Any]) -> None:
        if worker.index == 1 and when == "it has read":
            os.kill(os.getpid(), signal.SIGKILL)

    with worker.dataflow() as scope:
        rows, stream = scope.input()
        probe = stream.exchange(lambda row: row[0]).inspect_batch(take).probe()
    for epoch in range(200):
        rows.send([(to, "x" * 400) for to in range(worker.peers)] * LARGE)
        rows.advance_to(epoch + 1)
        if worker.index == 1 and when == "it has written":
            await worker.step()  # as much as there is room for: others are in the middle of it
            os.kill(os.getpid(), signal.SIGKILL)
        if worker.index == 1 and when == "it has not read":
            os.kill(os.getpid(), signal.SIGKILL)
        await probe.wait_passed(epoch)


@pytest.mark.parametrize("when", ["it has read", "it has written", "it has not read"])
def test_a_worker_dies_when(when: str) -> None:
    with pytest.raises(WorkerFailed, match=r"worker 1 .*SIGKILL"):
        dataflow.execute(_dies, when, workers=3)



def test_one_of_sixty_four_dies_and_nobody_is_left(arena: Arena) -> None:
    program = arena.script(
        """
        async def main(worker):
            with worker.dataflow() as scope:
                numbers, stream = scope.input()
                probe = stream.exchange(lambda n: n).probe()
            for epoch in range(5):
                numbers.send([worker.index + epoch])
                numbers.advance_to(epoch + 1)
                await probe.wait_passed(epoch)
                if (worker.index, epoch) == (33, 2):
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            dataflow.execute(main, workers=64)
        except dataflow.errors.WorkerFailed as error:
            print(error)
        """
    )
    ended = program.end(within=120)  # on a machine that is busy with other things
    assert "worker 33" in ended.out and "SIGKILL" in ended.out, ended
