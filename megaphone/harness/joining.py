"""Workers that join an open-loop run: they take state and records from the others, and feed nothing themselves.

So the load is the same before and after, and so is who sends it; latencies are those that the first workers see.
"""

from __future__ import annotations

from dataflow.run.worker import Worker, pump_of
from megaphone.harness.pace import Pace
from megaphone.harness.startline import missed_start


def has_joined(worker: Worker) -> bool:
    """Whether this worker came while others were running."""
    return pump_of(worker).changes.resume_at is not None


async def attend(worker: Worker, *, in_step: bool = False) -> None:
    """What a worker that has joined does where the others `drive`: builds what they built for it, and, if they are in
    step, waits until the load is over. Close its inputs before."""
    pace = Pace(worker) if in_step else None
    missed_start(worker)
    if pace is not None:
        await pace.over()
