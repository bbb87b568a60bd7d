"""Workers in step: which epochs are sent together is the same on all of them, because one of them decides.

Worker 0 leads. Its decision travels as the frontier of an input that only it holds: the others send the epochs before
that frontier when they see it move. It must not move again before they have; whoever leads sees to that by waiting
until what was sent is complete everywhere.
"""

from __future__ import annotations

from dataflow.run.worker import Worker, pump_of

LEADER = 0


class Pace:
    """One worker's view. Every worker must make its own at the same point of its program: it is a small dataflow."""

    def __init__(self, worker: Worker) -> None:
        self.leads = worker.index == LEADER
        self._pump = pump_of(worker)
        with worker.dataflow("pace") as scope:
            self._handle, stream = scope.input()
            self._probe = stream.probe()
        if not self.leads:
            self._handle.close()

    def say(self, until: int) -> None:
        """Has all workers send the epochs before `until`. For the leader, when all that was said before is complete."""
        self._handle.advance_to(until)
        self._pump.turn_before_waiting()  # the others can begin while we make what we send

    async def heard(self, since: int) -> int:
        """Waits until the leader says more than `since`: the epoch until which to send; `since` if that was all."""
        await self._probe.wait_passed(since)
        frontier = self._probe.frontier
        return int(min(frontier)) if len(frontier) else since

    async def over(self) -> None:
        """Waits until nothing more will be said."""
        await self._probe.wait_done()

    def end(self) -> None:
        """Nothing more will be said."""
        self._handle.close()
