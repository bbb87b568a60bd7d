"""Looks at a run: what its workers have counted, twice, as rates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow.run.readings import DataflowReading, OperatorReading, WorkerReading

_RECENT = 10.0  # seconds of latencies that a look has


@dataclass(frozen=True)
class StateLook:
    """The state of one operator."""

    name: str
    bytes: int
    bins: tuple[tuple[int, int], ...]  # (worker, how many bins it has), where that is known
    moving: str  # a migration that is under way; empty if none is


@dataclass(frozen=True)
class OperatorLook:
    """One operator, on all workers."""

    name: str
    busy: float  # cores
    rate: float  # records in, each second
    queued: int
    failed: int  # records so far


@dataclass(frozen=True)
class DataflowLook:
    """One dataflow, on all workers."""

    name: str
    rate: float  # records that came in, each second
    records: int  # so far
    latency: tuple[float, float] | None  # seconds: half of all times take so long or less, and .99 of them
    inputs_at: str  # the least time at which a worker's inputs are; empty at the end
    complete_before: str  # the frontier: the least time that is not complete; empty at the end
    behind: float  # seconds
    operators: tuple[OperatorLook, ...]
    state: tuple[StateLook, ...]


@dataclass(frozen=True)
class Look:
    """A run at a moment."""

    when: float
    workers: int
    memory: int
    dataflows: tuple[DataflowLook, ...]


def look(before: Sequence[WorkerReading], now: Sequence[WorkerReading]) -> Look:
    """What happened between two readings of all workers. One whose process is another than before is new."""
    old = {(worker.worker, worker.pid): worker for worker in before}
    pairs = [(old.get((worker.worker, worker.pid)), worker) for worker in now]
    names = list(dict.fromkeys(part.name for worker in now for part in worker.dataflows))
    when = max((worker.when for worker in now), default=0.0)
    return Look(
        when,
        len(now),
        sum(worker.memory for worker in now),
        tuple(_dataflow(name, pairs, when) for name in names),
    )


def _dataflow(name: str, pairs: Sequence[tuple[WorkerReading | None, WorkerReading]], when: float) -> DataflowLook:
    parts = [(_named(was, name), part, _length(was, now)) for was, now in pairs if (part := _named(now, name))]
    samples = sorted(sec for _, part, _ in parts for at, sec in part.latencies if at > when - _RECENT)
    slowest = max((part for _, part, _ in parts), key=lambda part: part.lag_seconds)
    entries = [(was, part, length) for was, part, length in parts]
    return DataflowLook(
        name,
        sum((_came(part) - (_came(was) if was else 0)) / length for was, part, length in entries),
        sum(_came(part) for _, part, _ in parts),
        (samples[len(samples) // 2], samples[int(0.99 * (len(samples) - 1))]) if samples else None,
        slowest.input_time,
        slowest.output_time,
        slowest.lag_seconds,
        tuple(_operator(number, parts) for number in range(len(parts[0][1].operators))),
        tuple(_state(number, [part for _, part, _ in parts]) for number in range(len(parts[0][1].state))),
    )


def _named(worker: WorkerReading | None, name: str) -> DataflowReading | None:
    return next((part for part in worker.dataflows if part.name == name), None) if worker else None


def _length(was: WorkerReading | None, now: WorkerReading) -> float:
    return max(1e-3, now.when - (was.when if was else now.since))


def _came(part: DataflowReading) -> int:
    """Records that came in from outside: what operators without inputs gave."""
    return sum(each.records_out for each in part.operators if not each.edges or _is_reader(each))


def _is_reader(operator: OperatorReading) -> bool:
    """Whether an operator's only input is the list of partitions that it is to read."""
    return len(operator.edges) == 1 and operator.records_in <= 1 < operator.records_out


Parts = Sequence[tuple[DataflowReading | None, DataflowReading, float]]


def _operator(number: int, parts: Parts) -> OperatorLook:
    now = [(part.operators[number], length) for _, part, length in parts if number < len(part.operators)]
    was = [(part.operators[number], length) for part, _, length in parts if part and number < len(part.operators)]
    return OperatorLook(
        now[0][0].name,
        sum(each.busy / length for each, length in now) - sum(each.busy / length for each, length in was),
        sum(each.records_in / length for each, length in now) - sum(each.records_in / length for each, length in was),
        sum(edge.queued for each, _ in now for edge in each.edges),
        sum(each.failed for each, _ in now),
    )


def _state(number: int, parts: Sequence[DataflowReading]) -> StateLook:
    states = [part.state[number] for part in parts if number < len(part.state)]
    moving = next((state.movement for state in states if state.moving), "")
    return StateLook(states[0].name, sum(state.bytes for state in states), states[0].placed, moving)
