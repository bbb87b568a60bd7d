"""What workers report when they have stopped, and what the leader makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from dataflow.channels.channel import root_of
from dataflow.errors import ProtocolError
from dataflow.members.barrier import Turnover
from dataflow.members.decisions import Mint, NotYet, Ruling
from dataflow.members.following import CannotScale, require_scalable
from dataflow.progress.graph import Source, Target
from dataflow.progress.tracker import Change
from dataflow.time.order import Time
from dataflow.values import Value

if TYPE_CHECKING:
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump

Report: TypeAlias = dict[str, Value]
"""What a worker says of itself, in plain data."""


def report_of(pump: Pump, proposal: Turnover) -> Report:
    """Where a worker stands. Plain data."""
    flows = {}
    for dataflow in pump.dataflows:
        parts = {o.number: o.follows.report(proposal) for o in dataflow.operators if o.follows is not None}
        known = {number: part for number, part in parts.items() if part is not None}
        flows[dataflow.number] = [_mark(dataflow), _entered(dataflow), known, dataflow.outbox.next]
    built = None if pump.changes.left else pump.built
    return {"built": built, "building": pump.building, "dataflows": flows}


def report_in(said: object) -> Report:
    """What a worker has reported; ProtocolError if that is no report."""
    if not isinstance(said, dict) or said.keys() != {"built", "building", "dataflows"}:
        raise ProtocolError(f"{said!r} where a report belongs")
    return said


def _mark(dataflow: Dataflow) -> list[object] | None:
    """The greatest time of the root at which something was sent by who takes part, and to whom."""
    best: list[object] | None = None
    for output, place, port in dataflow.exchanges:
        most = None if port.pact.audience else output.channel(place).most
        if most is not None:
            time = root_of(port.depth)(most)
            if best is None or time > best[0]:
                best = [time, port.operator.label]
    return best


def _entered(dataflow: Dataflow) -> Time:
    """The greatest time at which main or a source may send now; None if they cannot."""
    times = [max(port.held) for port in dataflow.entries if port.held]
    return max(times, default=None)


def next_batch(report: Report, dataflow: int) -> int:
    """The number of the next batch of progress that a worker will send, as it says."""
    number = report["dataflows"][dataflow][3] if dataflow in report["dataflows"] else 0
    if type(number) is not int or number < 0:
        raise ProtocolError(f"{number!r} where the number of a batch belongs")
    return number


def decide(pump: Pump, proposal: Turnover, reports: Mapping[int, Report]) -> dict[int, Ruling]:
    """By dataflow, what changes. NotYet, if the change must wait; CannotScale, if it cannot be."""
    built = {report["built"] for report in reports.values() if report["built"] is not None}
    if len(built) > 1 or any(report["building"] for report in reports.values()):
        raise NotYet("a dataflow is partly built")
    for dataflow in pump.dataflows:
        require_scalable(dataflow)
    return {dataflow.number: _decide(dataflow, proposal, reports) for dataflow in pump.dataflows}


def _decide(dataflow: Dataflow, proposal: Turnover, reports: Mapping[int, Report]) -> Ruling:
    flows = {w: r["dataflows"][dataflow.number] for w, r in reports.items() if dataflow.number in r["dataflows"]}
    marks = [mark for mark, _, _, _ in flows.values() if mark is not None]
    entered = [time for _, time, _, _ in flows.values() if time is not None]
    before = dataflow.pump.changes.times.get(dataflow.number, -1)
    time = 1 + max([before, *entered, *(mark[0] for mark in marks)])
    latest = max(entered, default=time)
    if proposal.within is not None and time - 1 > latest + proposal.within:
        mark = max(marks)
        raise CannotScale(
            f"dataflow {dataflow.name!r}: {mark[1]} has been sent records of time {mark[0]}, which is "
            f"{mark[0] - latest} after where the inputs are, and workers can only join or leave after it: that is not "
            f"within {proposal.within}"
        )
    decision = Ruling(time)
    if proposal.join:
        decision.mints += _starts(dataflow, proposal, time)
    for operator in dataflow.operators:
        if operator.follows is not None:
            parts = {worker: known.get(operator.number) for worker, (_, _, known, _) in flows.items()}
            handing = operator.follows.decide(proposal, time, parts)
            decision.mints += handing.mints
            if handing.handed:
                decision.handed[operator.number] = handing.handed
    return decision


def _starts(dataflow: Dataflow, proposal: Turnover, time: Time) -> Iterator[Mint]:
    """Capabilities for joiners, where somebody has one: on entries at the time of the change or, if all others are
    later, then; elsewhere at the least that there is, since a joiner may see records of earlier times there."""
    least: dict[int, Time] = {}
    for (index, at), count in dataflow.tracker.pointstamps().items():
        if count > 0 and (index not in least or at < least[index]):
            least[index] = at
    graph = dataflow.graph
    for number, node in enumerate(graph.nodes):
        for port, starts in enumerate(node.initial):
            index = graph.index(Source(number, port))
            if starts and len(node.outputs[port]) == 1 and index in least:
                start = least[index] if _is_early(dataflow, number, port) else max(time, least[index])
                for joiner in proposal.join:
                    yield Mint(joiner, number, port, start)


def _is_early(dataflow: Dataflow, number: int, port: int) -> bool:
    """Whether a joiner may have to do with times before the change at an output: not where its main feeds."""
    operator = dataflow.operators[number]
    if operator.follows is not None and operator.follows.early:
        return True
    return not any(output is operator.outputs[port] for output in dataflow.entries)


def changes_of(dataflow: Dataflow, decision: Ruling) -> list[Change]:
    """What is minted, as changes of counts."""
    graph = dataflow.graph
    return [
        ((graph.index(Target(m.node, m.port) if m.target else Source(m.node, m.port)), m.time), +1)
        for m in decision.mints
    ]


def hand_out(dataflow: Dataflow, proposal: Turnover, decision: Ruling) -> None:
    """Every operator takes what it was handed."""
    me = dataflow.pump.index
    for operator in dataflow.operators:
        if operator.follows is not None:
            handed = decision.handed.get(operator.number, {}).get(me)
            operator.follows.install(proposal, decision.time, handed)
