"""A wake-up for one sleeping task: cheaper than an event, since there is only ever one to wake. And for several."""

from __future__ import annotations

from time import perf_counter_ns
from typing import ClassVar

import trio


class Signal:
    """Remembers one wake-up. `set` before `wait` is not lost; several are one."""

    __slots__ = ("_set", "_task")

    woken: ClassVar[int] = 0  # tasks, by all signals: whoever looks for messages stops when another task can go on

    def __init__(self) -> None:
        self._set = False
        self._task: trio.lowlevel.Task | None = None

    def set(self) -> None:
        """Wakes the task that waits, or the next one to wait. Not thread-safe."""
        if self._task is not None:
            task, self._task = self._task, None
            Signal.woken += 1
            trio.lowlevel.reschedule(task)
        else:
            self._set = True

    async def wait(self) -> None:
        """Waits until `set` is called, unless it has been since the last wait. Always a checkpoint."""
        if self._set:
            self._set = False
            await trio.lowlevel.checkpoint()
            return
        assert self._task is None, "only one task may wait"
        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class Waiters:
    """Tasks that wait for one thing, and for how long they have, in all."""

    __slots__ = ("_nanoseconds", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[Signal, int] = {}  # in their order, each with the moment since when
        self._nanoseconds = 0

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def nanoseconds(self) -> int:
        """How long tasks have waited, those included that wait now."""
        now = perf_counter_ns()
        return self._nanoseconds + sum(now - since for since in self.waiting.values())

    async def wait(self) -> None:
        """Waits until `wake` is called."""
        signal = Signal()
        self.waiting[signal] = since = perf_counter_ns()
        try:
            await signal.wait()
        finally:
            self.waiting.pop(signal, None)
            self._nanoseconds += perf_counter_ns() - since

    def wake(self) -> None:
        """Wakes all who wait, in the order in which they came."""
        waiting, self.waiting = self.waiting, {}
        for signal in waiting:
            signal.set()
