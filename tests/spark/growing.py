"""A program that asks for other numbers of workers, one after the other, and goes on until that is done."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from dataflow import Worker
from tests.members.app import build


async def main(worker: Worker, plan: list[int], killed: str = "", marker: str = "", last: int = 60) -> Any:
    """Worker 0 says how the requests went. `killed`: what worker 1 kills some time after it has begun, once: itself, or
    its executor; the others go on until then."""
    handle, probe, sent, out = build(worker)
    print("begins:", worker.index, "later" if worker.resume_at else "at first")
    changes: list[Any] = []
    wanted = list(plan) if worker.index == 0 else []
    time = worker.resume_at
    while time < last or wanted or not all(change.done for change in changes) or alive(killed, marker):
        if wanted and all(change.done for change in changes):
            changes.append(worker.scale(wanted.pop(0)))
        handle.send([key % 7 for key in range(time % 5 + 3)])
        time += 1
        handle.advance_to(time)
        await probe.wait_passed(time - 2)
        if worker.index == 1 and time > worker.resume_at + 100 and alive(killed, marker):
            kill(killed, marker)
    handle.close()
    await probe.wait_done()
    if worker.index == 0:
        require_right(sent, out)
    return worker.index, [(change.state, change.error) for change in changes]


async def from_shell(worker: Worker, plan: str) -> None:
    """The same, with the numbers of workers as text."""
    _, went = await main(worker, [int(each) for each in plan.split(",")])
    if worker.index == 0:
        print("went:", *(state for state, _ in went))


def kill(what: str, marker: str) -> None:
    """Kills this worker, or its executor, once."""
    Path(marker).touch()
    os.kill(os.getpid() if what == "worker" else executor(), signal.SIGKILL)


def alive(killed: str, marker: str) -> bool:
    """Whether something is still to be killed."""
    return bool(killed) and not Path(marker).exists()


def require_right(sent: Counter[Any], out: Counter[Any]) -> None:
    """Each record of a key has a number of its own, the next after that before it; from the last snapshot on."""
    for key, times in sent.items():
        numbers = sorted(number for found, number in out.elements() if found == key)
        first = numbers[0] if numbers else 1
        assert numbers == list(range(first, first + times)), f"{key}, sent {times} times: {numbers}"


def executor() -> int:
    """The process of Spark's in which this worker runs."""
    pid = os.getpid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
