"""How a dataflow begins on a worker that joins it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.errors import GraphMismatch
from dataflow.members.barrier import Turnover
from dataflow.members.channels import AudienceChannel, MemberChannel
from dataflow.members.history import History
from dataflow.members.plain import fields
from dataflow.members.reports import hand_out
from dataflow.progress.broadcast import Inbox, Outbox
from dataflow.text import plain

if TYPE_CHECKING:
    from dataflow.build.capability import Capability
    from dataflow.build.operator import Operator
    from dataflow.channels.channel import LocalChannel, RoutedChannel
    from dataflow.members.decisions import Welcome
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump


class Joinable:
    """A dataflow as far as workers join it. (A part of `Dataflow`.)"""

    pump: Pump
    operators: list[Operator]
    beginning: Welcome | None
    outbox: Outbox
    inbox: Inbox

    def start(self, node: int, port: int) -> Capability:
        """The capability with which an output starts; a joiner gets what was minted for it."""
        output = self.operators[node].outputs[port]
        if self.beginning is None:
            return output.start()
        time = self.beginning.decision.start_of(self.pump.index, node, port)
        return output.start_closed() if time is None else output.adopt(time)


def begin(dataflow: Dataflow) -> None:
    """The graph is complete: joins it, or routes by who is there, if the membership has changed before."""
    if dataflow.beginning is not None:
        dataflow.greeted, dataflow.inbox = take_up(dataflow, dataflow.beginning)
    elif dataflow.pump.roster.ever_changed:
        route_by_time(dataflow)


def take_up(dataflow: Dataflow, beginning: Welcome) -> tuple[set[int], Inbox]:
    """The graph is complete: takes over counts, memberships and what operators were handed. Returns who need not greet
    this worker, and where everybody's progress goes on."""
    require_alike(dataflow, beginning)
    founders, since = fields(beginning.memberships, 2)
    dataflow.history = History(founders, since)
    dataflow.tracker.propagate(beginning.counts)
    route_by_time(dataflow)
    dataflow.pump.changes.times[dataflow.number] = beginning.decision.time
    hand_out(dataflow, Turnover(0, join=(dataflow.pump.index,)), beginning.decision)
    inbox = Inbox(dict(beginning.sequences))
    return set(beginning.sequences), inbox


def require_alike(dataflow: Dataflow, beginning: Welcome) -> None:
    """GraphMismatch if the joiner has built something else."""
    mine, theirs = dataflow.graph.describe(), beginning.description
    if theirs and mine != theirs:
        first = next((pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]), None)
        what = f"{first[0]} here, {plain(first[1])} there" if first else f"{len(mine)} operators, and {len(theirs)}"
        raise GraphMismatch(
            f"worker {dataflow.pump.index} joins dataflow {beginning.name!r} and has built another one: {what}. Every "
            "worker must build the same operators in the same order; only what goes into inputs may differ."
        )


def route_by_time(dataflow: Dataflow) -> None:
    """From now on exchanges ask who takes part at a time, and who is there."""
    for output, place, port in dataflow.exchanges:
        before = output.channel(place)
        if port.pact.audience:
            if not isinstance(before, AudienceChannel):
                output.replace(place, AudienceChannel(dataflow, port, port.pact))
        elif not isinstance(before, MemberChannel):
            old: LocalChannel | RoutedChannel = before  # type: ignore[assignment]
            output.replace(place, MemberChannel(dataflow, port, port.pact, old))
