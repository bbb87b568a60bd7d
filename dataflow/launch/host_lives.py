"""The lives of a run on several hosts, as one host sees them.

Every host knows what its own failures are worth; host 0 counts them, and chooses where the next life goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dataflow.errors import WorkerFailed
from dataflow.launch.control import AGAIN, END, OLDER, HostFailed, LifeBegins
from dataflow.launch.hosts import Cluster, ClusterError, Unreachable
from dataflow.launch.verdict import Verdict
from dataflow.recovery.beginning import Beginnings
from dataflow.recovery.policy import Recovery
from dataflow.recovery.restarts import Again, Enough, Older, Restarts, explain_decision, one_line
from dataflow.recovery.resume import Resume


class ElsewhereFailed(WorkerFailed):
    """Another host has failed, or is gone; `then` is what follows (see `control`)."""

    def __init__(self, message: str, then: str) -> None:
        super().__init__(message)
        self.then = then


class HostLives:
    """What this host knows of the run's lives. Host 0 decides."""

    def __init__(self, cluster: Cluster, recovery: Recovery, tell: Callable[[str], None]) -> None:
        self.chooses = cluster.process == 0
        self._recovery = recovery
        self._tell = tell
        self._restarts = Restarts(recovery.restarts, recovery.window)
        self._beginnings = Beginnings(recovery, cluster.peers, tell) if self.chooses else None
        self._lives = 0
        self._older = False
        self._reason = ""
        self._since, self._title = 0.0, ""  # of the last choice: for those who look, at worker 0

    async def choose(self) -> LifeBegins:
        """Where the next life goes on. For host 0."""
        assert self._beginnings is not None
        beginning = await self._beginnings.choose(self._older)
        if self._reason:
            self._tell(f"{self._reason}, from {beginning.title}")
        self._reason, self._older = "", False
        self._since, self._title = beginning.resume.since, beginning.resume.title
        self._lives += 1
        return LifeBegins(self._lives, beginning.resume.incarnation, beginning.resume.manifests)

    def resume(self, begins: LifeBegins) -> Resume:
        """What this host's workers are told: what host 0 has chosen, and this host's own word about the storage."""
        self._lives = begins.life
        return Resume(self._recovery, begins.incarnation, begins.manifests, self._since, self._title)

    def follows(self, error: BaseException, verdict: Verdict) -> str:
        """What follows from a failure, here or elsewhere, if it is up to this host."""
        if isinstance(error, ElsewhereFailed):
            return error.then
        if isinstance(error, ClusterError | Unreachable):
            return END
        choosing = self._was_choosing(error, verdict)
        unbuilt = self._lives == 0 if choosing else self._lives <= 1 and verdict.unbuilt
        decision = Restarts(1, 1.0).decide(error, 0.0, unbuilt=unbuilt, choosing=choosing)
        return {Again: AGAIN, Older: OLDER, Enough: END}[type(decision)]

    def _was_choosing(self, error: BaseException, verdict: Verdict) -> bool:
        ours = isinstance(error, ElsewhereFailed | ClusterError | Unreachable)
        return self.chooses and error is not verdict.error and not ours

    def over(self, error: BaseException, verdict: Verdict) -> HostFailed | None:
        """A life has failed. None if all go back; otherwise what is to be told to those who wait for host 0.

        Raises the error if there is nobody to tell.
        """
        follows = self.follows(error, verdict)
        if self._beginnings is not None:
            self._beginnings.failure_seen()
        if follows == END:
            if self._was_choosing(error, verdict):  # which nobody else knows
                return HostFailed(one_line(error), END)
            raise error from error.__cause__
        if not self.chooses:
            self._tell(f"{one_line(error)}: all go back")
            return None
        decision = Older() if follows == OLDER else self._restarts.decide(error, time.monotonic())
        if isinstance(decision, Enough):
            error.add_note(decision.why)
            return HostFailed(one_line(error), END)
        self._reason = explain_decision(error, decision)
        self._older = self._older or follows == OLDER
        return None
