"""A common start: all workers agree on one instant, so that their schedules are one schedule."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from dataflow.operators.inputs import InputHandle
from dataflow.operators.probe import Probe
from dataflow.run.worker import Worker, pump_of

Report = tuple[str, str, float, float]  # process, host, and what the worker's and the machine's clock showed

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROGRAM = os.urandom(8).hex()  # forks of one program have it in common, and differ in their pid


async def agree_on_start(worker: Worker, lead: float = 0.05) -> float:
    """The instant, on this worker's clock, at which all workers start: `lead` seconds after the last one asked.

    Every worker must call this at the same point of its program: it builds a small dataflow, which ends at once.
    Workers of one process share a clock, and those of one host the machine's. On several hosts, whose clocks mean
    nothing to each other, each starts when it has heard from all: they differ by the time that a message takes.
    """
    heard: list[Report] = []
    handle, probe = _start_line(worker, heard)
    offset = clock_offset(worker)
    here = pump_of(worker).clock.now()
    handle.send([(f"{_PROGRAM}-{os.getpid()}", _boot(), here, here - offset)])
    handle.close()
    await probe.wait_done()
    return common_instant(heard, offset, pump_of(worker).clock.now()) + lead


def missed_start(worker: Worker) -> None:
    """A worker that joins builds what the others built to agree on their start, which is over."""
    handle, _ = _start_line(worker, [])
    handle.close()


def _start_line(worker: Worker, heard: list[Report]) -> tuple[InputHandle[Report], Probe]:
    with worker.dataflow("start line") as scope:
        handle: InputHandle[Report]
        handle, stream = scope.input()
        probe = stream.broadcast().inspect(lambda _, report: heard.append(report)).probe()
    return handle, probe


def common_instant(reports: Sequence[Report], offset: float, now: float) -> float:
    """When the last one reported, on the clock of one whose clock is `offset` ahead of its machine's and shows `now`.

    >>> common_instant([("a", "host", 3.0, 1003.0), ("a", "host", 5.0, 1005.0)], offset=-1000.0, now=6.0)
    5.0
    >>> common_instant([("a", "host", 3.0, 1003.0), ("b", "host", 700.0, 1005.0)], offset=-1000.0, now=6.0)
    5.0
    >>> common_instant([("a", "host", 3.0, 1003.0), ("b", "other", 700.0, 1005.0)], offset=-1000.0, now=6.0)
    6.0
    """
    if not reports:  # this worker joined when all was over
        return now
    processes, hosts, clocks, machine_clocks = zip(*reports, strict=True)
    if len(set(processes)) == 1:
        return float(max(clocks))
    if len(set(hosts)) == 1 and hosts[0]:
        return float(max(machine_clocks)) + offset
    return now


def clock_offset(worker: Worker) -> float:
    """How far this worker's clock is ahead of the machine's, which all processes share."""
    looks = []
    for _ in range(5):  # the best of some looks: one may be interrupted
        before = time.perf_counter()
        here = pump_of(worker).clock.now()
        after = time.perf_counter()
        looks.append((after - before, here - (before + after) / 2))
    return min(looks)[1]


def _boot() -> str:
    """What tells this host from others, and from itself before it was last started; empty where unknown."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""
