"""The workers that a dataflow needs: DS2's rule (OSDI 2018, sections 3.2 and 4.2). Pure.

An operator's *true rate* is what it would do if it never waited: records by useful time. In topological order, from the
sources' offered rates on, each operator gets a target rate: what those before it would send at their own targets.
Target by true rate is the share of a worker that it needs. Where every worker runs every operator (timely; here) the
workers needed are the sum of these shares, rounded up once and not for each operator.

A loop is taken as one operator (the paper has none): what it takes from outside sets the pace of all in it. The cost is
linear in operators and flows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil

from planners.scaling.work import RecordFlow, WorkInterval

_ROUNDING = 1e-9  # of a worker: sums of floats are no reason for one more


@dataclass(frozen=True, slots=True)
class WorkerNeed:
    """Workers needed, if they did nothing but useful work (`exact`); by operator; and the target rates."""

    exact: float
    shares: Mapping[str, float]  # of a worker, by operator
    rates: Mapping[str, float]  # records per second, by operator
    true_rates: Mapping[str, float]  # of one worker, by operator that took in anything

    def workers(self, utilisation: float) -> int:
        """How many, if they are to be busy for that share of the time. At least one."""
        return max(1, ceil(self.exact / utilisation - _ROUNDING))

    @property
    def heaviest(self) -> str:
        """The operator that needs most."""
        return max(self.shares, key=lambda name: self.shares[name], default="")


def workers_needed(seen: WorkInterval, catch_up: float | None = None) -> WorkerNeed:
    """What an interval says is needed for the rates that are offered; and, with `catch_up`, to work off what has piled
    up outside within so many seconds."""
    records = {each.name: each.records for each in seen.everyone}
    busy = {each.name: each.busy for each in seen.everyone}
    rates: dict[str, float] = {}
    for source in seen.sources:
        rate = source.records / seen.seconds if source.offered is None else source.offered
        rates[source.name] = rate + (source.backlog / catch_up if catch_up else 0.0)
    into: dict[str, list[RecordFlow]] = defaultdict(list)
    for flow in seen.flows:
        into[flow.target].append(flow)
    for group in components([each.name for each in seen.operators], seen.flows):
        inside = set(group)
        outer = [flow for name in group for flow in into[name] if flow.source not in inside]
        sent = sum(flow.records * _pace(rates[flow.source], records[flow.source]) for flow in outer)
        measured = sum(flow.records for flow in outer)
        for name in group:  # one operator, or all of a loop
            rates[name] = records[name] * (sent / measured) if measured else records[name] / seen.seconds
    shares = {name: _share(rate, records[name], busy[name], seen.seconds) for name, rate in rates.items()}
    useful = sum(busy.values())
    exact = sum(shares.values()) * (1.0 + seen.overhead / useful) if useful else 0.0
    true = {name: records[name] / busy[name] for name in rates if busy[name] and records[name]}
    return WorkerNeed(exact, shares, rates, true)


def _pace(rate: float, records: float) -> float:
    """How many times the records of the interval there would be in a second."""
    return rate / records if records else 0.0


def _share(rate: float, records: float, busy: float, seconds: float) -> float:
    """Of a worker. What is busy without records (a timer, say) stays as busy as it was."""
    return rate * busy / records if records else busy / seconds


def components(names: Iterable[str], flows: Iterable[RecordFlow]) -> list[list[str]]:
    """Operators in topological order; those of one loop together (Tarjan's algorithm, without recursion)."""
    names = list(names)
    before: dict[str, list[str]] = {name: [] for name in names}
    for flow in flows:
        if flow.source in before:
            before[flow.target].append(flow.source)
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in names:
        path = [(root, iter(before[root]))] if root not in number else []
        while path:
            name, rest = path[-1]
            if name not in number:
                number[name] = low[name] = len(number)
                stack.append(name)
            for earlier in rest:
                if earlier not in number:
                    path.append((earlier, iter(before[earlier])))
                    break
                if earlier in stack:
                    low[name] = min(low[name], number[earlier])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == number[name]:
                    at = stack.index(name)
                    found.append(stack[at:])
                    del stack[at:]
    return found
