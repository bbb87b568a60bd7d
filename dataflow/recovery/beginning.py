"""Where a life begins: a snapshot is chosen and claimed, before any worker builds a dataflow. (A stub.)"""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.recovery.policy import Recovery
from dataflow.recovery.resume import Resume


@dataclass(frozen=True, slots=True)
class Beginning:
    """What workers are told, and what people are told about it."""

    resume: Resume
    title: str  # "snapshot 12 at time 700"


class Beginnings:
    """Chooses and claims for one life after the other."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self._count = 0

    async def choose(self, older: bool) -> Beginning:
        """Chooses a snapshot and claims the storage. `older`: one before that of the last life."""
        self._count += 1
        return Beginning(Resume(self._recovery, self._count), "the beginning")
