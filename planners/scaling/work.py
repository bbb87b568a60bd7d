"""What was done in an interval, by operator, on all workers together. Plain data: whoever measures makes these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from planners.errors import BadRequest


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """An operator. `busy` is *useful time*: seconds in which it worked on records, on all workers together. Waiting for
    input, for room or for a processor is no part of it."""

    name: str
    records: float  # that it took in
    busy: float


@dataclass(frozen=True, slots=True)
class SourceWork:
    """A source. `records`: what it brought in. `offered`: how many records per second there were to bring in, which is
    more if it had to wait; None if nobody knows. `backlog`: records that wait outside, from before."""

    name: str
    records: float
    busy: float = 0.0
    offered: float | None = None
    backlog: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordFlow:
    """Records from one operator (or source) to another."""

    source: str
    target: str
    records: float


@dataclass(frozen=True, slots=True)
class WorkInterval:
    """So many seconds of a dataflow on so many workers. `overhead`: seconds in which workers were busy with what is no
    operator's: progress, messages, state that moves."""

    seconds: float
    workers: int
    sources: Sequence[SourceWork]
    operators: Sequence[OperatorWork]
    flows: Sequence[RecordFlow]
    overhead: float = 0.0

    @property
    def everyone(self) -> list[SourceWork | OperatorWork]:
        """Sources and operators."""
        return [*self.sources, *self.operators]

    def __post_init__(self) -> None:
        if not self.seconds > 0 or self.workers < 1:
            raise BadRequest(f"an interval has seconds and workers, not {self.seconds!r} and {self.workers!r}")
        names = [each.name for each in self.everyone]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise BadRequest(f"two operators of an interval are called {twice!r}: add up what they did, or rename one")
        for flow in self.flows:
            for name in (flow.source, flow.target):
                if name not in names:
                    raise BadRequest(
                        f"a flow from {flow.source!r} to {flow.target!r} names {name!r}, which is not there"
                    )
            if flow.target in {each.name for each in self.sources}:
                raise BadRequest(f"a flow from {flow.source!r} goes into the source {flow.target!r}")
        numbers = [self.overhead, *(flow.records for flow in self.flows)]
        numbers += [number for each in self.operators for number in (each.records, each.busy)]
        numbers += [n for each in self.sources for n in (each.records, each.busy, each.offered or 0.0, each.backlog)]
        if not all(isfinite(number) and number >= 0 for number in numbers):
            raise BadRequest("records, seconds and rates of an interval are 0 or more")
