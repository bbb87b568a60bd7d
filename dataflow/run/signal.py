"""A wake-up for one sleeping task: cheaper than an event, since there is only ever one to wake."""

from __future__ import annotations

import trio


class Signal:
    """Remembers one wake-up. `set` before `wait` is not lost; several are one."""

    __slots__ = ("_set", "_task")

    def __init__(self) -> None:
        self._set = False
        self._task: trio.lowlevel.Task | None = None

    def set(self) -> None:
        """Wakes the task that waits, or the next one to wait. Not thread-safe."""
        if self._task is not None:
            task, self._task = self._task, None
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
