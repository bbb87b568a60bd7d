"""A common start: all workers agree on one instant, so that their schedules are one schedule."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from dataflow.worker import Worker

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROGRAM = os.urandom(8).hex()  # forks of one program have it in common, and differ in their pid


async def agree_on_start(worker: Worker, lead: float = 0.05) -> float:
    """The instant, on this worker's clock, at which all workers start: `lead` seconds after the last one asked.

    Every worker must call this at the same point of its program: it builds a small dataflow, which ends at once.
    Workers of one process share a clock, and those of one host the machine's. On several hosts, whose clocks mean
    nothing to each other, each starts when it has heard from all: they differ by the time that a message takes.
    """
    if worker.peers == 1:
        return worker.clock.now() + lead
    heard: list[Any] = []
    with worker.dataflow("start line") as scope:
        handle, stream = scope.input()
        probe = stream.broadcast().inspect(lambda _, report: heard.append(report)).probe()
    offset = clock_offset(worker)
    here = worker.clock.now()
    handle.send([(f"{_PROGRAM}-{os.getpid()}", _boot(), here, here - offset)])
    handle.close()
    await probe.wait_done()
    processes, hosts, clocks, machine_clocks = zip(*heard, strict=True)
    if len(set(processes)) == 1:
        return float(max(clocks)) + lead
    if len(set(hosts)) == 1 and hosts[0]:
        return float(max(machine_clocks)) + offset + lead
    return worker.clock.now() + lead


def clock_offset(worker: Worker) -> float:
    """How far this worker's clock is ahead of the machine's, which all processes share."""
    looks = []
    for _ in range(5):  # the best of some looks: one may be interrupted
        before = time.perf_counter()
        here = worker.clock.now()
        after = time.perf_counter()
        looks.append((after - before, here - (before + after) / 2))
    return min(looks)[1]


def _boot() -> str:
    """What tells this host from others, and from itself before it was last started; empty where unknown."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""
