"""Workers come and go during a load: asks for them when it is time, and follows that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataflow.errors import DataflowError
from dataflow.run.worker import Worker, pump_of

if TYPE_CHECKING:
    from dataflow.members.requests import ScaleChange


@dataclass(frozen=True)
class Scaled:
    """A change that was made. All in seconds."""

    name: str
    joined: float  # from asking until those that join had joined, or those that leave had left
    first_record: float | None  # from asking until the first record was at a worker that joined
    pause: float  # for which all workers stood still, at most


class Scaler:
    """Asks for numbers of workers, one after the other, by the clock of the load. On one worker."""

    def __init__(self, worker: Worker, plan: Sequence[tuple[float, int]], strategy: object) -> None:
        self._worker = worker
        self._roster = pump_of(worker).roster
        self._waiting = sorted(plan)
        self._strategy = strategy
        self._change: ScaleChange | None = None
        self.under_way: str | None = None  # what is being done
        self.scaled: list[Scaled] = []

    @property
    def members(self) -> tuple[int, ...]:
        """Who takes part now."""
        return self._roster.members

    def look(self, seconds: float) -> str | None:
        """Asks, if it is time; what is under way. DataflowError if it could not be done."""
        if self._change is not None and self._change.done:
            self._note(self._change)
        if self._change is None and self._waiting and seconds >= self._waiting[0][0]:
            _, workers = self._waiting.pop(0)
            self.under_way = f"{len(self.members)} to {workers} workers"
            self._change = self._worker.scale(workers, strategy=self._strategy)
        return self.under_way

    def _note(self, change: ScaleChange) -> None:
        if change.error is not None:
            raise DataflowError(f"{self.under_way}: {change.error}")
        assert self.under_way is not None
        self.scaled.append(Scaled(self.under_way, change.seconds or 0.0, change.first_record, change.pause or 0.0))
        self._change = self.under_way = None
