"""How a worker leaves: when it has nothing left, it needs to hear of nothing more; then it is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.comm.messages import Membership
from dataflow.members.channels import passed_everywhere

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump


class Leaving:
    """A leaver's own view: not a member as of a time, then idle, then muted and idle again, then gone."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self.asked = False  # whether it is no member as of some time
        self.gone = False
        self.muted_by: set[int] = set()  # who will send it nothing more but progress
        self.on_leave: Callable[[], None] = lambda: None  # ends main
        self._told = False  # whether the leader knows that it has nothing left

    def begin(self) -> None:
        """Ends main; its inputs are closed when it has ended, since it may be just about to send."""
        self.asked = True
        self.on_leave()

    def close_inputs(self) -> None:
        """Main has ended."""
        for dataflow in self._pump.dataflows:
            for close in dataflow.close_inputs:
                close()
        self._pump.wake()

    def look(self) -> None:
        """Whether this worker can go, or go on with going."""
        if not self.asked or self.gone or self._pump.changes.stopped or not self._idle():
            return
        pump = self._pump
        me, leader = pump.index, pump.roster.leader
        if not self._told:
            self._told = True
            pump.changes.say(leader, "idle")
        elif me in pump.roster.muted and self.muted_by >= set(pump.roster.others):
            self.gone = True
            pump.broadcast(Membership(me, "gone"))
            pump.wake()
            for dataflow in pump.dataflows:
                dataflow.end(f"worker {me} has left")
            pump.retire()

    def _idle(self) -> bool:
        muted = self._pump.index in self._pump.roster.muted
        return not self._pump.flow.keeps and all(nothing_left(each, muted) for each in self._pump.dataflows)


def nothing_left(dataflow: Dataflow, muted: bool = False) -> bool:
    """Whether this worker holds nothing in a dataflow, and nothing can be routed to it any more. Before it is muted,
    operators may hold what they let go of then, and it takes part in snapshots."""
    if dataflow.dropped:
        return True
    if dataflow.busy:
        return False
    for operator in dataflow.operators[: None if muted else dataflow.program_nodes]:
        follows = operator.follows
        if any(output.held for output in operator.outputs) and (muted or follows is None or not follows.holds):
            return False
        if any(port.queue for port in operator.inputs) or not (follows is None or follows.idle):
            return False
    if dataflow.keeper is not None and not muted and not dataflow.keeper.owes_nothing:
        return False
    last = dataflow.pump.changes.times.get(dataflow.number)
    if last is None:
        return dataflow.complete
    return passed_everywhere(dataflow, last)
