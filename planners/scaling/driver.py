"""Between the autoscaler and what can be scaled: a worker, whose `scale` it calls. Nothing here imports an engine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from planners.scaling.autoscaler import Autoscaler, ScaleDecision
from planners.scaling.work import WorkInterval
from planners.showing import ShownLoop

log = logging.getLogger("planners.scaling")


class ChangeUnderWay(Protocol):
    """What `scale` returns."""

    @property
    def done(self) -> bool:
        """Whether the new membership is in force, and state has moved."""
        ...


class Scalable(Protocol):
    """What `worker.scale` of a running dataflow offers."""

    def scale(self, workers: int, /) -> ChangeUnderWay:
        """Asks for so many workers, and returns at once."""
        ...


class ScaleDriver(ShownLoop):
    """Hand it each interval that is over (`step`): it decides, logs, and asks for workers.

    Intervals in which a change was under way are not looked at. `dry_run` decides and logs, and asks for nothing.
    """

    def __init__(
        self,
        scalable: Scalable,
        autoscaler: Autoscaler | None = None,
        *,
        dry_run: bool = False,
        tell: Callable[[ScaleDecision], None] | None = None,
    ) -> None:
        super().__init__("how many workers there are", scalable, dry_run)
        self._scalable = scalable
        self._autoscaler = autoscaler or Autoscaler()
        self._tell = tell
        self._change: ChangeUnderWay | None = None
        self.decisions: list[ScaleDecision] = []

    def step(self, seen: WorkInterval) -> ScaleDecision | None:
        """The decision after an interval, which is carried out; None while an earlier one is."""
        if self._change is not None:
            if self._change.done:
                self._change = None
            return None  # it was under way during at least a part of this interval
        decision = self._autoscaler.decide(seen)
        self.decisions.append(decision)
        self.show(decision)
        log.info("%s%s", "(dry run) " if self.dry_run else "", decision)
        if self._tell is not None:
            self._tell(decision)
        if decision.acts and not self.dry_run:
            self._change = self._scalable.scale(decision.wanted)
        return decision
