"""The controller: feeds the steps of a migration to the control stream, each when the one before is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataflow import InputHandle, Stream
from dataflow.order import Time
from megaphone.control import ControlError, Move, check_update
from megaphone.operators import Migratable
from megaphone.strategies import Strategy, all_at_once


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a migration has come."""

    steps_done: int
    steps: int
    bins_moved: int
    bins: int


class Controller:
    """Paces migrations by the output frontier of an operator. One exists on every worker; one of them issues a
    migration.

    `advance_to` takes the place of the control input's own: it advances the input and, when the last step is complete,
    sends the next one.
    """

    def __init__(self, control: InputHandle, stream: Stream[Any]) -> None:
        if not isinstance(stream, Migratable):
            raise TypeError("a controller needs the stream that a migratable operator returned, as it returned it")
        self._control = control
        self._operator = stream.handle
        self._steps: list[list[Move]] = []
        self._next = 0
        self._under_way: Time | None = None  # the time of the step that is not complete
        self._gap = 0
        self._idle_since = 0  # advances since the last step was complete

    @property
    def configuration(self) -> tuple[int, ...]:
        """Where each bin is, as far as that is final."""
        return self._operator.configuration

    @property
    def busy(self) -> bool:
        """Whether a migration is under way."""
        return self._under_way is not None or self._next < len(self._steps)

    @property
    def progress(self) -> Progress:
        """How far the last migration has come."""
        done = self._next - (self._under_way is not None)
        moved = sum(map(len, self._steps[:done]))
        return Progress(done, len(self._steps), moved, sum(map(len, self._steps)))

    def migrate(self, to: Sequence[int], strategy: Strategy | None = None) -> None:
        """Begins a migration from where bins are to `to`. ControlError if one is under way, or `to` makes no sense."""
        if self.busy:
            raise ControlError("a migration is under way: wait until it is done, or cancel it")
        operator = self._operator
        if len(to) != operator.bins:
            raise ControlError(f"a map of {len(to)} bins, and the operator has {operator.bins}")
        target = [int(worker) for worker in to]
        for number, worker in enumerate(target):
            check_update(Move(number, worker), operator.bins, operator.peers)
        chosen = strategy or all_at_once()
        self._steps, self._next = chosen.steps(self.configuration, target), 0
        self._gap = self._idle_since = chosen.gap

    def cancel(self) -> None:
        """Gives up the steps that have not begun. What has moved stays where it is."""
        self._steps = self._steps[: self._next]

    def advance_to(self, time: Time) -> None:
        """Advances the control input to `time`, and sends the next step there if the last one is done."""
        self._control.advance_to(time)
        if self._under_way is not None and self._operator.passed(self._under_way):
            self._under_way = None
            self._idle_since = 0
        elif self._under_way is None:
            self._idle_since += 1
        if self._under_way is None and self._next < len(self._steps) and self._idle_since >= self._gap:
            self._control.send(self._steps[self._next])
            self._next += 1
            self._under_way = time
