"""A program that goes on until workers have come and gone. Worker 0 gathers what all have sent, and what came out."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import trio

import megaphone
from dataflow import Worker
from dataflow.lowlevel import Keeps, ToWorker


def _gather(stream: Any, to: Counter[Any]) -> None:
    def step(input: Any, output: Any) -> None:
        for _, batch in input:
            to.update(batch)

    stream.unary("gather", lambda _: step, pact=ToWorker(0), keeps=Keeps.NOTHING)


def build(worker: Worker) -> tuple[Any, Any, Counter[Any], Counter[Any]]:
    """Which record of its key each is, by a migratable operator."""

    def fold(time: int, batch: list[int], state: dict[int, int], later: Any) -> Any:
        for key in batch:
            state[key] = state.get(key, 0) + 1
            yield key, state[key]

    sent, out = Counter[Any](), Counter[Any]()
    with worker.dataflow() as scope:
        handle, stream = scope.input()
        counted = megaphone.unary(scope.control(), stream, key=lambda key: key, fold=fold, bins=32, name="count")
        _gather(stream, sent)
        _gather(counted, out)
        probe = counted.probe()
    return handle, probe, sent, out


def judge(sent: Counter[Any], out: Counter[Any]) -> None:
    """Each record of a key has a number of its own, and none is left out."""
    assert out == Counter((key, number) for key, times in sent.items() for number in range(1, times + 1))


async def steered(worker: Worker, plan: dict[int, int], last: int) -> Any:
    """Scales itself, at times of its own, as a plan says; worker 0 goes on until all of that is done."""
    handle, probe, sent, out = build(worker)
    changes: list[Any] = []
    time = worker.resume_at - 1
    while time < last - 1 or not all(change.done for change in changes):
        time += 1
        if worker.index == 0 and time in plan:
            changes.append(worker.scale(plan[time]))
        handle.send([key % 7 for key in range(time % 5 + 3)])
        handle.advance_to(time + 1)
        await probe.wait_passed(time - 2)
    handle.close()
    await probe.wait_done()
    if worker.index == 0:
        judge(sent, out)
    return [(change.state, change.error) for change in changes]


async def main(worker: Worker) -> None:
    """Goes on until a third worker has come and gone."""
    handle, probe, sent, out = build(worker)
    print(f"worker {worker.index} is process {os.getpid()}", flush=True)
    grown = over = False

    async def watch() -> None:
        nonlocal grown, over
        async for members in worker.members():
            grown = grown or len(members.workers) > 2
            over = grown and len(members.workers) == 2
            if over:
                return

    time = worker.resume_at
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        while not over:
            handle.send([time % 7])
            time += 1
            handle.advance_to(time)
            await probe.wait_passed(time - 2)
    handle.close()
    await probe.wait_done()
    if worker.index == 0:
        judge(sent, out)
        print(f"all {sum(sent.values())} records came out", flush=True)
