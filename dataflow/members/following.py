"""What an operator must know of a change of the membership, and which operators cannot follow one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataflow.build.cuts import Keeps
from dataflow.channels.pact import Pipeline
from dataflow.errors import DataflowError
from dataflow.members.barrier import Turnover
from dataflow.members.decisions import Mint
from dataflow.time.order import Time
from dataflow.time.timestamp import Checked, Integers

if TYPE_CHECKING:
    from dataflow.build.operator import Operator
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump


class CannotScale(DataflowError):
    """A dataflow, or a request, with which workers cannot join or leave."""


@dataclass(slots=True)
class Handing:
    """What an operator has for others: by worker, plain data; and rights that they need with it."""

    handed: dict[int, object] = field(default_factory=dict)
    mints: list[Mint] = field(default_factory=list)


class Follows:
    """An operator that follows the membership: it routes by time, or by a configuration of its own.

    All of this is called between two steps, while all workers stand still. `early`: where an output starts with a
    capability, a joiner's is at the least that there is, and not at the time of the change.
    """

    early = False
    holds = False  # whether it holds a capability to the end, also with nothing left; muted, it lets go of it

    parts_at_change = False  # whether all that is before a change must be committed before what is after it

    @property
    def idle(self) -> bool:
        """Whether it has nothing left to do, besides what operators can be seen to have."""
        return True

    def report(self, proposal: Turnover) -> object:
        """What the leader must know of this worker's part. Plain data."""
        return None

    def decide(self, proposal: Turnover, time: Time, reports: Mapping[int, object]) -> Handing:
        """On the leader, with everybody's report: what goes to whom. `NotYet` if the change must wait."""
        return Handing()

    def install(self, proposal: Turnover, time: Time, handed: object) -> None:
        """The change is made; `handed` is for this worker. A joiner hears of it when its dataflow is built."""


PLAIN = Follows()
"""For operators that have nothing to hand over."""


def follows(operator: Operator) -> bool:
    """Whether an operator can follow the membership."""
    return operator.follows is not None or operator.keeps is Keeps.NOTHING


def require_scalable(dataflow: Dataflow) -> None:
    """CannotScale, with names and what to do, if something in a dataflow cannot follow the membership."""
    root = dataflow.root_domain
    if not isinstance(root.domain if isinstance(root, Checked) else root, Integers):
        raise CannotScale(f"dataflow {dataflow.name!r}: workers can only join and leave where times are integers")
    fixed = [operator for operator in dataflow.operators if not follows(operator)]
    if fixed:
        own = "say keeps=Keeps.NOTHING of an operator of your own that keeps nothing from one time to the next"
        advice = dict.fromkeys(operator.instead or own for operator in fixed)
        raise CannotScale(
            f"dataflow {dataflow.name!r} cannot be scaled: {', '.join(operator.label for operator in fixed)} cannot "
            f"follow. What to do: {'; '.join(advice)}"
        )
    for operator in _shifted(dataflow):
        raise CannotScale(
            f"dataflow {dataflow.name!r} cannot be scaled: {operator.label} puts together records that were exchanged "
            "at other times than its own. Exchange them again before it"
        )


def _shifted(dataflow: Dataflow) -> Iterator[Operator]:
    """Operators that wait for times to be complete behind ones that change times behind an exchange, with no exchange
    in between: what belongs together there may have been exchanged before and after a change."""
    routed, shifted = set[int](), set[int]()
    readers: dict[int, list[tuple[int, int]]] = {}
    for source, target in dataflow.graph.edges:
        readers.setdefault(source.node, []).append((target.node, target.port))
    work: list[tuple[int, bool]] = [
        (operator.number, False)
        for operator in dataflow.operators
        if any(not isinstance(port.pact, Pipeline) and not port.pact.addressed for port in operator.inputs)
    ]
    while work:
        node, is_shifted = work.pop()
        seen = shifted if is_shifted else routed
        if node in seen:
            continue
        seen.add(node)
        operator = dataflow.operators[node]
        waits = operator.watches_frontier and operator.combines and not operator.changes_times
        if is_shifted and waits and not _routes(operator):
            yield operator
        if _routes(operator):
            continue
        after = is_shifted or operator.changes_times
        for reader, port in readers.get(node, ()):
            if isinstance(dataflow.operators[reader].inputs[port].pact, Pipeline):
                work.append((reader, after))


def _routes(operator: Operator) -> bool:
    """Whether an operator sends records where they belong by itself, as F does."""
    return operator.routes


def can_leave(pump: Pump) -> bool:
    """Whether a worker that is told to end may leave the others instead: if all of them can do without it."""
    if pump.index == pump.roster.leader or len(pump.roster.members) < 2 or not pump.dataflows:
        return False
    try:
        all_follow(pump.dataflows)
    except CannotScale:
        return False
    return True


def all_follow(dataflows: Sequence[Dataflow]) -> None:
    """CannotScale if any of these dataflows cannot be scaled."""
    for dataflow in dataflows:
        require_scalable(dataflow)
