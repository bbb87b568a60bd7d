"""Unordered input: main holds a capability for each of many times, sends in any order, and drops each when it is done
with it. While one is held, nothing may claim that its time is over."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import trio

import dataflow
from dataflow.lowlevel import less_equal
from tests.oracles import tables
from tests.programs.running import Run, gathered, require, require_same, share

Timed = Sequence[tuple[Any, int]]


async def main(worker: dataflow.Worker, kind: Any, records: Timed) -> list[Any]:
    """Returns (time, number of records) for each time that was counted on this worker."""
    found: list[Any] = []
    with worker.dataflow("unordered", time=kind) as scope:
        handle, stream = scope.unordered_input("records")
        counts = stream.count(lambda record: record)
        probe = counts.inspect(lambda time, count: found.append((time, count))).probe()
    mine = share(records, worker)
    held = [handle.capability.delayed(time) for time, _ in mine]
    handle.capability.drop()
    for position, (_, record) in enumerate(mine):
        handle.send([record], held[position])
        held[position].drop()
        await trio.lowlevel.checkpoint()
        for capability in held[position + 1 :]:
            _require_open(capability.time, probe, found)
    await probe.wait_done()
    return found


def _require_open(time: Any, probe: dataflow.Probe, found: list[Any]) -> None:
    """Somebody holds a capability for `time`: neither it nor anything after it can be complete."""
    require(not probe.passed(time), f"the probe has passed {time}, for which a capability is held")
    early = [counted for counted, _ in found if less_equal(time, counted)]
    require(not early, f"{early} were counted while a capability for {time} was held")


def check(run: Run, chance: Random) -> None:
    """Integer times, and pairs, many of which do not compare."""
    pairs = chance.random() < 0.5
    kind: Any = dataflow.Product(int, int) if pairs else int

    def time() -> Any:
        return (chance.randrange(4), chance.randrange(4)) if pairs else chance.randrange(8)

    records = [(time(), chance.randrange(3)) for _ in range(chance.randint(0, 24))]
    require_same(gathered(run(main, kind, records)), tables.count_by_time(records))
