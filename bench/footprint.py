"""What a migration costs in memory: the peak of each process, beyond what it had before and the state it receives.

The kernel keeps the peak of a process's resident set, and forgets it on demand: nothing is missed between two looks.
Whatever else stays afterwards (freed memory that the C library keeps, pages of shared memory, pages that are kept ready
for tables) counts as added, though it is used again: only state is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import trio

import dataflow
from bench.counting import Setup, build, halved, load
from dataflow.state.memory.segments import RESERVED
from megaphone.migration.strategies import Strategy

_STATUS, _FORGET, _MAPS = Path("/proc/self/status"), Path("/proc/self/clear_refs"), Path("/proc/self/smaps")
CALM = 60  # epochs before and after a migration
REST = 0.01  # seconds after each of these: the thread that touches memory ahead gets where it wants to be
RECORDS = 2000  # of a worker in an epoch


class Footprint(NamedTuple):
    """A process around a migration, in bytes: its resident set, and how much of that are tables."""

    before: int
    peak: int
    after: int
    tables_before: int
    tables_after: int
    received: int  # state that has come
    largest: int = 0  # of all bins

    @property
    def beyond(self) -> int:
        """How far the peak was above what there was before, without the state that came. If tables had free places, and
        so grew by less than that state, only their growth is left out.

        >>> Footprint(before=100, peak=145, after=140, tables_before=50, tables_after=90, received=30).beyond
        15
        """
        grown = max(0, self.tables_after - self.tables_before)
        return max(0, self.peak - self.before - min(grown, self.received))


def _resident(field: str) -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) << 10


def _begin() -> int:
    """Has the kernel note the peak from now on. Returns what is resident now."""
    _FORGET.write_text("5")
    return _resident("VmRSS")


def tables() -> int:
    """Resident bytes of tables: those in mappings that are as large as what tables reserve."""
    total, large = 0, False
    for line in _MAPS.read_text().splitlines():
        name, value, *_ = line.split()
        if not name.endswith(":"):  # a mapping begins: from and to
            begin, end = (int(edge, 16) for edge in name.split("-"))
            large = end - begin >= RESERVED
        elif large and name == "Rss:":
            total += int(value) << 10
    return total


async def footprints(worker: dataflow.Worker, setup: Setup, strategy: Strategy) -> list[Footprint]:
    """The footprints, on this worker, of moving half of worker 0's bins away and back."""
    counter = build(worker, setup)
    epoch = await load(worker, counter)
    controller = counter.controller
    assert controller is not None
    pool = [counter.batch(RECORDS) for _ in range(16)]

    async def go_on() -> None:
        nonlocal epoch
        counter.keys.send(pool[epoch % len(pool)])
        epoch += 1
        counter.advance_to(epoch)
        await counter.probe.wait_passed(epoch - 3)

    async def calm_down() -> None:
        for _ in range(CALM):
            await go_on()
            await trio.sleep(REST)

    while not controller.statistics.bytes.all():  # without sizes there is no budget
        await go_on()
    result = []
    homes = [halved(setup.bins), np.arange(setup.bins) % 2]
    for home in homes:
        await calm_down()
        came = (home == worker.index) & (np.array(controller.configuration) != worker.index)
        received = int(controller.statistics.bytes[came].sum())
        before, tables_before = _begin(), tables()
        if worker.index == 0:
            controller.migrate(home, strategy)
        target = tuple(home.tolist())
        while controller.configuration != target or (worker.index == 0 and controller.busy):
            await go_on()
        await counter.probe.wait_passed(epoch - 3)
        await calm_down()
        peak, after = _resident("VmHWM"), _resident("VmRSS")
        largest = int(controller.statistics.bytes.max())
        result.append(Footprint(before, peak, after, tables_before, tables(), received, largest))
    return result


def measure(setup: Setup, strategy: Strategy) -> list[list[Footprint]]:
    """By worker, what `footprints` found, on two fresh processes: what another strategy has left would hide what this
    one needs."""
    return dataflow.execute(footprints, setup, strategy, workers=2)
