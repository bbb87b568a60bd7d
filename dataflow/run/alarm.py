"""Wakes pumps, no earlier than they need it.

Whatever gives a worker something to do wakes its pump, a task of its own. But most of that is done at once, by the
very task that caused it: main sends, and then waits for a probe, which takes a turn of the pump. A switch to the pump's
task, only to find out that nothing is left, costs as much as an epoch's operators do. So a pump is woken when the step
of the current task is over, and only if it has something to do then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from dataflow.run.attending import Attending

_alarm: trio.lowlevel.RunVar[Alarm] = trio.lowlevel.RunVar("alarm")


class Alarm(trio.abc.Instrument):
    """One for each trio loop, for all workers in it."""

    def __init__(self) -> None:
        self.due: list[Attending] = []  # those that have been woken in this step

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """A task has done a step."""
        if self.due:
            due, self.due = self.due, []
            for pump in due:
                pump.alarmed()


def alarm_of_this_loop() -> Alarm:
    """The alarm, which is set up the first time."""
    try:
        return _alarm.get()
    except LookupError:
        alarm = Alarm()
        trio.lowlevel.add_instrument(alarm)
        _alarm.set(alarm)
        return alarm
