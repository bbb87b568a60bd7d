"""Main waits, and the worker looks by itself meanwhile: what there is to do is done in main's task, and messages are
looked for a moment, which saves a switch of tasks, a sleep and a bell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from time import perf_counter

import trio

from dataflow.comm.transport import Transport
from dataflow.run.alarm import Alarm
from dataflow.run.breathing import OFTEN, Breath
from dataflow.run.receiving import Receiving
from dataflow.run.signal import Signal


class Attending(Receiving):
    """A worker as far as its main waits. (A part of `Pump`.)"""

    def __init__(self, index: int, peers: int, limit: int) -> None:
        super().__init__(index, peers, limit)
        self.transport: Transport | None = None
        self.signal = Signal()  # set when there is something to do
        self._alarm: Alarm | None = None  # who wakes the pump's task, while it runs
        self._attends = False  # whether main looks for messages by itself until its step is over
        self._breath = Breath()
        self._stepping = False
        self._failed = False
        self._failure: Exception | None = None  # raised by an operator in main's task; `run` raises it
        self._pumped = False

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether there is something to do without hearing from anybody."""

    @abstractmethod
    def turn(self, collected: bool = False) -> None:
        """Does what there is to do now and flushes the transport."""

    @abstractmethod
    def alarmed(self) -> None:
        """The step of the task that woke the pump is over."""

    def turn_before_waiting(self) -> None:
        """Takes a turn for a main that is about to wait, which saves a switch of tasks. Not while simulated."""
        if self._pumped and not self._stepping:
            self.turn_for_main()

    def turn_for_main(self) -> None:
        """Takes a turn in main's task. What an operator raises is not for main to catch: `run` raises it."""
        try:
            self.turn()
            self._turn_if_news()
        except Exception as error:
            self._fail_in_run(error)

    def _turn_if_news(self) -> bool:
        assert self.transport is not None
        if self._failed or not self.transport.collect():
            return False
        self.turn(collected=True)
        return True

    def outlasts(self, holds: Callable[[], bool]) -> bool:
        """For a main that is about to wait while something holds: does what there is to do, which saves a switch of
        tasks, and looks for messages for a moment. Whether it still holds. Not while simulated."""
        if not self._pumped or self._stepping:
            return holds()
        if not self._attends:
            self._attend()
        transport = self.transport
        assert transport is not None
        try:
            self.turn()
            for _ in range(OFTEN):
                if not holds():
                    return False
                if self.busy or self._failed or not (self._turn_if_news() or transport.linger()):
                    break
        except Exception as error:
            self._fail_in_run(error)
        return holds()

    def _attend(self) -> None:
        """Until the step of the current task is over this worker looks by itself; then others are to wake it."""
        if self._alarm is not None:
            assert self.transport is not None
            self.transport.stay_awake()
            self._attends = True  # invariant: while it does, nobody rings
            self._alarm.due.append(self)

    async def breathe(self) -> None:
        """A checkpoint for a main that has not waited. It goes on at once, or when others have had their turn: so it
        still looks by itself, and nobody needs to ring."""
        if not self._pumped:
            await trio.lowlevel.checkpoint()  # a simulation: others have their turn each time
        elif self._breath.held(perf_counter()):
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            self._attends = False
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._attend()

    def _fail_in_run(self, error: Exception) -> None:
        self._failure = error
        self.signal.set()
