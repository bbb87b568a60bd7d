"""What a migration costs in memory: the peak of each process, beyond what it had before or keeps afterwards.

The kernel keeps the peak of a process's resident set, and forgets it on demand: nothing is missed between two looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dataflow
from bench.counting import Setup, build, halved, load
from megaphone.strategies import Strategy

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
CALM = 60  # epochs before and after a migration
RECORDS = 2000  # of a worker in an epoch


class Footprint(NamedTuple):
    """The resident set of a process around a migration, in bytes."""

    before: int
    peak: int
    after: int

    @property
    def beyond(self) -> int:
        """How much more than before, and than what it has kept, there was for a while."""
        return max(0, self.peak - max(self.before, self.after))


def _resident(field: str) -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) << 10


def _begin() -> int:
    """What there is now; from here on the kernel notes the peak."""
    _FORGET.write_text("5")
    return _resident("VmRSS")


async def footprints(worker: dataflow.Worker, setup: Setup, strategies: Sequence[Strategy]) -> list[list[Footprint]]:
    """By strategy, the footprints of moving half of worker 0's bins away and back, twice, on this worker."""
    counter = build(worker, setup)
    epoch = await load(worker, counter)
    controller = counter.controller
    assert controller is not None
    homes = [halved(setup.bins), np.arange(setup.bins) % 2]
    pool = [counter.batch(RECORDS) for _ in range(16)]

    async def go_on() -> None:
        nonlocal epoch
        counter.keys.send(pool[epoch % len(pool)])
        epoch += 1
        counter.advance_to(epoch)
        await counter.probe.wait_passed(epoch - 3)

    result = []
    for strategy in strategies:
        seen = []
        for home in (*homes, *homes):
            for _ in range(CALM):
                await go_on()
            before = _begin()
            if worker.index == 0:
                controller.migrate(home, strategy)
            target = tuple(home.tolist())
            while controller.configuration != target or (worker.index == 0 and controller.busy):
                await go_on()
            await counter.probe.wait_passed(epoch - 3)
            for _ in range(CALM):
                await go_on()
            seen.append(Footprint(before, _resident("VmHWM"), _resident("VmRSS")))
        result.append(seen)
    return result


def measure(setup: Setup, strategies: Sequence[Strategy]) -> list[Any]:
    """By worker, what `footprints` found, on two processes."""
    return dataflow.execute(footprints, setup, strategies, workers=2)
