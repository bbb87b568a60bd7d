"""From two readings of a run to what a look has: rates, shares and latencies, as plain data for JSON. Pure.

Lists by operator and by edge are in the order of `shapes`, so a look repeats no names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dataflow.commands.asking import Status
from dataflow.run.readings import (
    DataflowReading,
    EdgeReading,
    OperatorReading,
    StateReading,
    WorkerReading,
    seconds_between,
)
from dataflow.run.reasons import find_reasons

Plain: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Pair:
    """A worker now, and as it was before; None if it is new, or another process has its place."""

    was: WorkerReading | None
    now: WorkerReading

    @property
    def seconds(self) -> float:
        """From one to the other."""
        return seconds_between(self.was, self.now)


Parts: TypeAlias = list[tuple[DataflowReading | None, DataflowReading, float]]
"""One dataflow on each worker: as it was, as it is, and the seconds between."""


def pairs_of(before: Sequence[WorkerReading], now: Sequence[WorkerReading]) -> list[Pair]:
    """Every worker of now with itself before."""
    old = {(worker.worker, worker.pid): worker for worker in before}
    return [Pair(old.get((worker.worker, worker.pid)), worker) for worker in now]


def parts_of(name: str, pairs: Sequence[Pair]) -> Parts:
    """One dataflow, on all workers that have it."""
    found: Parts = []
    for pair in pairs:
        part = _named(pair.now, name)
        if part is not None:
            found.append((_named(pair.was, name), part, pair.seconds))
    return found


def names_of(workers: Sequence[WorkerReading]) -> list[str]:
    """The dataflows that any worker has."""
    return list(dict.fromkeys(part.name for worker in workers for part in worker.dataflows))


def look(before: Status | None, now: Status) -> Plain:
    """What the page shows of a moment."""
    pairs = pairs_of(before.workers if before else (), now.workers)
    return {
        "when": max((worker.when for worker in now.workers), default=0.0),
        "run": now.facts,
        "silent": now.silent,
        "workers": [_worker(pair) for pair in pairs],
        "dataflows": [_dataflow(name, parts_of(name, pairs)) for name in names_of(now.workers)],
        "reasons": [
            [reason.level, reason.text]
            for reason in find_reasons(before.workers if before else (), now.workers, now.silent)
        ],
        "marks": marks_of(now.workers),
    }


def marks_of(workers: Sequence[WorkerReading]) -> list[Plain]:
    """What happened of late, on all workers, in order."""
    found = [
        {"worker": worker.worker, "when": when, "kind": kind, "text": text, "until": until}
        for worker in workers
        for when, kind, text, until in worker.marks
    ]
    found.sort(key=lambda mark: (mark["when"], mark["worker"]))
    return [dict(mark) for mark in found]


def _worker(pair: Pair) -> Plain:
    now, was, seconds = pair.now, pair.was, pair.seconds

    def rate(value: Callable[[WorkerReading], float]) -> float:
        return max(0.0, value(now) - (value(was) if was else 0.0)) / seconds

    return {
        "worker": now.worker,
        "pid": now.pid,
        "busy": rate(lambda each: each.busy),
        "cpu": rate(lambda each: each.cpu),
        "waiting": rate(lambda each: each.waiting),
        "stalled": rate(lambda each: each.run_delay) if now.run_delay >= 0 else None,
        "memory": now.memory,
        "on_its_way": now.on_its_way,
        "limit": now.limit,
        "longest_turn": now.longest_turn,
        "pressing": [[who, why] for who, why in now.pressing],
    }


def _dataflow(name: str, parts: Parts) -> Plain:
    slowest = max((part for _, part, _ in parts), key=lambda part: part.lag_seconds)
    count = max(len(part.operators) for _, part, _ in parts)
    operators = [[*_operators(number, parts)] for number in range(count)]
    edges = [[*_edges(number, port, parts)] for number in range(count) for port in range(_ports(number, parts))]
    return {
        "name": name,
        "input_time": slowest.input_time,
        "output_time": slowest.output_time,
        "lag": slowest.lag,
        "lag_seconds": slowest.lag_seconds,
        "came": sum(_came(was, now, seconds) for was, now, seconds in parts),
        "busy": [_most(each, lambda operator: operator.busy) for each in operators],
        "in": [_rate(each, lambda operator: operator.records_in) for each in operators],
        "out": [_rate(each, lambda operator: operator.records_out) for each in operators],
        "total_in": [sum(now.records_in for _, now, _ in each) for each in operators],
        "total_out": [sum(now.records_out for _, now, _ in each) for each in operators],
        "failed": [sum(now.failed for _, now, _ in each) for each in operators],
        "frontier": [next((now.frontier for _, now, _ in each), "") for each in operators],
        "holds": [[now.holds for _, now, _ in each] for each in operators],
        "edge_rate": [_edge_rate(each, lambda edge: edge.records) for each in edges],
        "edge_bytes": [_edge_rate(each, lambda edge: edge.bytes) for each in edges],
        "edge_queued": [sum(now.queued for _, now, _ in each) for each in edges],
        "state": [_state([part.state[at] for _, part, _ in parts if at < len(part.state)]) for at in _states(parts)],
    }


def _operators(number: int, parts: Parts) -> Iterator[tuple[OperatorReading | None, OperatorReading, float]]:
    for was, now, seconds in parts:
        if number < len(now.operators):
            old = was.operators[number] if was is not None and number < len(was.operators) else None
            yield old, now.operators[number], seconds


def _edges(number: int, port: int, parts: Parts) -> Iterator[tuple[EdgeReading | None, EdgeReading, float]]:
    for was, now, seconds in _operators(number, parts):
        if port < len(now.edges):
            yield (was.edges[port] if was is not None and port < len(was.edges) else None), now.edges[port], seconds


def _ports(number: int, parts: Parts) -> int:
    return max((len(now.edges) for _, now, _ in _operators(number, parts)), default=0)


def _states(parts: Parts) -> range:
    return range(max((len(part.state) for _, part, _ in parts), default=0))


Counted: TypeAlias = Sequence[tuple[OperatorReading | None, OperatorReading, float]]


def _rate(each: Counted, value: Callable[[OperatorReading], float]) -> float:
    return sum(max(0.0, value(now) - (value(was) if was else 0.0)) / seconds for was, now, seconds in each)


def _most(each: Counted, value: Callable[[OperatorReading], float]) -> float:
    """Of the worker that has most."""
    shares = (max(0.0, value(now) - (value(was) if was else 0.0)) / seconds for was, now, seconds in each)
    return max(shares, default=0.0)


def _edge_rate(
    each: Sequence[tuple[EdgeReading | None, EdgeReading, float]], value: Callable[[EdgeReading], float]
) -> float:
    return sum(max(0.0, value(now) - (value(was) if was else 0.0)) / seconds for was, now, seconds in each)


def _came(was: DataflowReading | None, now: DataflowReading, seconds: float) -> float:
    """Records per second from outside: what operators without inputs gave, and those that read partitions."""
    old = {each.number: each.records_out for each in was.operators} if was else {}
    first = [each for each in now.operators if not each.edges or _reads_partitions(each)]
    return sum(each.records_out - old.get(each.number, 0) for each in first) / seconds


def _reads_partitions(operator: OperatorReading) -> bool:
    return len(operator.edges) == 1 and operator.records_in <= 1 < operator.records_out


def _state(states: Sequence[StateReading]) -> Plain:
    first = states[0]
    return {
        "name": first.name,
        "movable": first.movable,
        "shards": first.shards,
        "groups": first.groups,
        "bytes": sum(state.bytes for state in states),
        "placed": [[worker, count] for worker, count in first.placed],
        "movement": next((state.movement for state in states if state.movement), ""),
        "moving": any(state.moving for state in states),
    }


def _named(worker: WorkerReading | None, name: str) -> DataflowReading | None:
    return next((part for part in worker.dataflows if part.name == name), None) if worker else None
