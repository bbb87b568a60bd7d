"""Migrations that somebody outside of the program asks for (`dataflow.build.hooks.Steering`).

The steps are those of a `Controller`; what paces it is the output frontier of S, whose every move asks whether the step
under way is done. So no task is needed, and a simulation chooses when that happens as it chooses all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dataflow.build.hooks import Movement, UpdateFeed
from dataflow.errors import DataflowError
from dataflow.state.values import Record
from dataflow.time.order import Time
from megaphone.assembly import Migratable
from megaphone.control.tree import Merge, Split
from megaphone.control.updates import Update, check_update
from megaphone.errors import ControlError
from megaphone.migration.controller import Controller
from megaphone.migration.strategies import changes_between
from megaphone.migration.words import parse_shapes, parse_strategy, parse_target


class _OutsideInput:
    """The input of an operator's control stream, for somebody who must not advance it: the program does, or the run."""

    def __init__(self, name: str, feed: UpdateFeed) -> None:
        self._name = name
        self._feed = feed

    @property
    def time(self) -> Time:
        """The least time at which an update can take effect."""
        return self._feed.time

    def send(self, records: Iterable[Update], at: Time = None) -> None:
        """Sends updates for this operator alone: others on the stream stay as they are."""
        self._feed.send([replace(update, operator=self._name) for update in records], self.time if at is None else at)

    def advance_to(self, time: Time) -> None:
        """Does nothing."""


class OutsideSteering:
    """Begins migrations of one operator, and paces them. One at a time."""

    def __init__(self, name: str, operator: Migratable[Record]) -> None:
        self._name = name
        self._operator = operator
        self._controller: Controller | None = None
        self._words = ("", "")  # what was asked for last
        self._failure = ""
        operator.scope.dataflow.watch(operator.source, self._moved)

    @property
    def last(self) -> Movement | None:
        """How far the migration has come that was begun last."""
        if self._controller is None or not self._words[0]:
            return None
        now = self._controller.progress
        return Movement(*self._words, now.steps, now.steps_done, now.bins, now.bins_moved, self._failure)

    def migrate(self, to: str, strategy: str, dry: bool = False) -> Movement:
        """Begins a migration to where the words say, or only says what it would be. The words may also say that bins
        are split and merged."""
        controller, cut = self._steered(), parse_strategy(strategy)
        handle = self._operator.handle
        shapes = parse_shapes(to)
        if shapes:
            for update in shapes:
                check_update(update, handle.bins, handle.peers)
            if dry:
                return Movement(to, strategy, 1, 0, 0, 0)
            splits = [update for update in shapes if isinstance(update, Split)]
            merges = [update for update in shapes if isinstance(update, Merge)]
            return self._begin(to, "", lambda: controller.reshape(splits, merges))
        known = handle.statistics
        there = parse_target(to, handle.configuration, handle.tree, self._workers(), known.bytes)
        if controller.busy:
            raise ControlError(f"{self._name}: a migration is under way: wait until it is done, or cancel it")
        if dry:
            changes = changes_between(handle.configuration, there, handle.tree)
            steps = cut.cut_up(changes, known.bytes.tolist(), known.records.tolist())
            return Movement(to, strategy, len(steps), 0, sum(map(len, steps)), 0)
        return self._begin(to, strategy, lambda: controller.migrate(there, cut))

    def _workers(self) -> list[int]:
        """Who can be given bins. After workers have left, numbers are missing."""
        roster = self._operator.scope.dataflow.pump.roster
        return [worker for worker in roster.members if roster.refuses(worker) is None]

    def _begin(self, to: str, strategy: str, begin: Callable[[], None]) -> Movement:
        begin()
        self._words, self._failure = (to, strategy), ""
        controller = self._steered()
        try:
            controller.advance_to(self._input.time)
        except DataflowError as error:
            controller.cancel()
            self._failure = str(error)
            raise
        assert self.last is not None
        return self.last

    def cancel(self) -> Movement | None:
        """Gives up the steps that have not begun."""
        if self._controller is not None:
            self._controller.cancel()
        return self.last

    def _moved(self) -> None:
        """The output frontier of S has moved: the next step may begin."""
        controller = self._controller
        if controller is None or not controller.busy or self._failure:
            return
        try:
            controller.advance_to(self._input.time)
        except DataflowError as error:  # the inputs have ended; whoever asked for the rest is told, and the run goes on
            self._failure = f"the rest was given up: {error}"
            controller.cancel()

    def _steered(self) -> Controller:
        if self._controller is None:
            dataflow, control = self._operator.scope.dataflow, self._operator.handle.control
            feed: UpdateFeed | None = dataflow.hooks.feeds.get(control.source)
            if feed is None:
                raise ControlError(
                    f"{self._name}: its control stream is not that of an input, so only the program itself can send "
                    "on it: build the operator on scope.control()"
                )
            self._input = _OutsideInput(self._name, feed)
            self._controller = Controller(self._input, self._operator)
        return self._controller
