"""Trying a run again in this process: for workers that share it, an exception rolls all of them back.

Whatever ends the process itself is for the next run, which goes on from the last snapshot.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from dataflow.recovery.beginning import Beginnings
from dataflow.recovery.policy import Recovery
from dataflow.recovery.restarts import Enough, Older, Restarts, explain_decision
from dataflow.recovery.resume import Resume
from dataflow.run.exceptions import unwrap

if TYPE_CHECKING:
    from dataflow.run.pump import Pump

R = TypeVar("R")


async def live_again_and_again(
    recovery: Recovery, workers: int, live: Callable[[Resume, list[Pump]], Awaitable[R]]
) -> R:
    """Lives until a life ends well, or has failed too often. `live` puts the pumps that it makes into the list."""
    restarts = Restarts(recovery.restarts, recovery.window)
    beginnings = Beginnings(recovery, workers, tell)
    lives, older, reason = 0, False, ""
    while True:
        pumps: list[Pump] = []
        choosing = True
        try:
            beginning = await beginnings.choose(older)
            if reason:
                tell(f"{reason}, from {beginning.title}")
            choosing, older, reason = False, False, ""
            lives += 1
            return await live(beginning.resume, pumps)
        except (Exception, BaseExceptionGroup) as group:
            error = unwrap(group) if isinstance(group, BaseExceptionGroup) else group
            unbuilt = not lives if choosing else lives == 1 and not any(pump.built for pump in pumps)
            beginnings.failure_seen()
            decision = restarts.decide(error, time.monotonic(), unbuilt=unbuilt, choosing=choosing)
            if reason:
                tell(reason)
            if isinstance(decision, Enough):
                if decision.why:
                    error.add_note(decision.why)
                raise
            reason = explain_decision(error, decision)
            older = older or isinstance(decision, Older)
        del pumps
        gc.collect()  # the state of the old life must not be there beside that of the new one


def tell(line: str) -> None:
    """What people should know."""
    print(f"dataflow: {line}", file=sys.stderr)
