"""What a worker has counted, read when somebody asks: plain, typed values that can travel.

All counters only grow, for as long as the worker's process lives a life; whoever wants rates takes two readings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns, process_time, thread_time, time
from typing import TYPE_CHECKING

import numpy as np

from dataflow.build.hooks import Stateful
from dataflow.build.operator import Operator
from dataflow.comm.flow import ON_ITS_WAY
from dataflow.progress.graph import Source, Target
from dataflow.time.order import Time

if TYPE_CHECKING:
    from dataflow.channels.ports import InputPort
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump

_PAGE = os.sysconf("SC_PAGE_SIZE")
_OWING = 8  # workers that are told by name
_QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class EdgeReading:
    """What came into one input of an operator: an edge has one input, and an input one edge."""

    source: int  # the operator that it comes from; -1 if nothing does
    source_port: int
    port: int
    messages: int
    records: int
    remote_records: int  # those that came from other workers
    bytes: int  # of those exact, of the others estimated from one message in 256
    queued: int  # messages that wait now


@dataclass(frozen=True, slots=True)
class OperatorReading:
    """One operator on one worker. `records / busy` is its true rate (DS2): waiting is not in it."""

    number: int
    name: str
    busy: float  # seconds in its steps
    records_out: int
    failed: int  # records at which a function of the program's raised, and that went to a stream of errors
    edges: tuple[EdgeReading, ...]
    holds: str  # the least time that it holds a capability for here, as text; empty if none
    frontier: str  # what may still come to its inputs
    active: bool  # whether it is about to run
    kept: int  # bytes that its tasks have taken and not dealt with: what a sink has to write

    @property
    def records_in(self) -> int:
        """What came to all of its inputs."""
        return sum(edge.records for edge in self.edges)


@dataclass(frozen=True, slots=True)
class StateReading:
    """The state of one operator on one worker."""

    name: str
    shards: int  # in all
    here: int  # that have something here
    bytes: int
    quantiles: tuple[int, ...]  # of the bytes of shards that are here: .5, .9, .99, largest
    movable: bool
    groups: int  # of shards that move as one; as many as there are shards where that is not known
    placed: tuple[tuple[int, int], ...]  # (worker, how many groups it has), where that is known
    movement: str  # a migration that was asked for from outside: how far it is; empty if there was none
    moving: bool


@dataclass(frozen=True, slots=True)
class DataflowReading:
    """One dataflow on one worker."""

    number: int
    name: str
    operators: tuple[OperatorReading, ...]
    state: tuple[StateReading, ...]
    input_time: str  # where this worker's entries are; empty if they have ended
    output_time: str  # the least time that is not complete; empty if there is none
    lag: float  # the difference, where times are numbers; -1 otherwise
    lag_seconds: float  # for how long a time has been complete here and not everywhere
    latency_counts: tuple[int, ...]  # samples, by `meters.BOUNDS`
    latency_sum: float
    latencies: tuple[tuple[float, float], ...]  # the last ones: (wall clock, seconds)


@dataclass(frozen=True, slots=True)
class WorkerReading:
    """One worker. `busy + idle` is the time since it began; operators' time is part of `busy`."""

    worker: int
    pid: int
    when: float  # wall clock
    since: float
    busy: float  # seconds in turns
    waiting: float  # seconds that sources and main have waited for room, added up over those who waited
    awaiting: float  # seconds in which main waited for times to be complete
    cpu: float  # seconds of processor time of the process
    thread: float  # of these, in the thread that runs main and operators
    run_delay: float  # seconds in which the host did not let it run, though it could; -1 if the system does not tell
    longest_turn: float
    turns: int
    memory: int  # bytes, resident
    on_its_way: int  # bytes sent to others and not taken
    limit: int
    owed: tuple[tuple[int, int], ...]  # of these, by worker that has not taken them: those who owe most
    pressing: tuple[tuple[int, str], ...]  # (worker, cause): who is under pressure, and by what
    pressed: tuple[tuple[int, str, float], ...]  # (worker, cause, seconds): for how long they were, so far
    marks: tuple[tuple[float, str, str, float], ...]  # of late: wall clock, kind, text, until when (0: under way)
    marked: tuple[tuple[str, int], ...]  # how often each kind did
    dataflows: tuple[DataflowReading, ...]

    @property
    def idle(self) -> float:
        """Seconds in which it had nothing to do, or main computed."""
        return max(0.0, self.when - self.since - self.busy)


def seconds_between(was: WorkerReading | None, now: WorkerReading) -> float:
    """From one reading of a worker to another; from when it began, if there is no other. Not by the wall clock, which
    may jump."""
    return max(1e-3, (now.when - now.since) - (was.when - was.since if was else 0.0))


def read_worker(pump: Pump) -> WorkerReading:
    """A reading of now. O(operators + shards)."""
    meter, flow = pump.meter, pump.flow
    names = {dataflow.number: dataflow.name for dataflow in pump.dataflows}
    return WorkerReading(
        worker=pump.index,
        pid=os.getpid(),
        when=time(),
        since=time() - (perf_counter_ns() - meter.began) / 1e9,
        busy=meter.busy_ns / 1e9,
        waiting=pump.room_waiters.nanoseconds / 1e9,
        awaiting=meter.awaiting_ns / 1e9,
        cpu=process_time(),
        thread=thread_time(),
        run_delay=_run_delay(),
        longest_turn=meter.longest_ns / 1e9,
        turns=meter.turns,
        memory=_memory(),
        on_its_way=flow.on_its_way,
        limit=flow.limit,
        owed=tuple(flow.owed[:_OWING]),
        pressing=tuple((worker, _cause(why, names)) for worker, why in flow.pressing),
        pressed=tuple((who, _cause(why, names), took) for (who, why), took in pump.pressures.seconds().items()),
        marks=tuple((mark.when, mark.kind, mark.text, mark.until) for mark in meter.marks),
        marked=tuple(sorted(meter.marked.items())),
        dataflows=tuple(read_dataflow(dataflow) for dataflow in pump.dataflows),
    )


def read_dataflow(dataflow: Dataflow) -> DataflowReading:
    """A reading of one dataflow."""
    sampler = dataflow.pump.meter.sampler(dataflow)
    came, left = sampler.lag()
    latencies = sampler.latencies
    sources = {target: source for source, target in dataflow.graph.edges}
    return DataflowReading(
        dataflow.number,
        dataflow.name,
        tuple(read_operator(operator, sources) for operator in dataflow.operators),
        tuple(read_state(stateful) for stateful in dataflow.hooks),
        _text(came),
        _text(left),
        _difference(came, left),
        sampler.waits(),
        tuple(latencies.counts),
        latencies.seconds,
        tuple(latencies.recent),
    )


def read_operator(operator: Operator, sources: Mapping[Target, Source]) -> OperatorReading:
    """A reading of one operator: what an autoscaler wants to know of it. `sources`: where the edge into each input
    begins."""
    dataflow, number = operator.dataflow, operator.number
    held = [time for output in operator.outputs for time in output.held]
    frontier = [time for port in operator.inputs for time in port.frontier]
    return OperatorReading(
        number,
        operator.name,
        dataflow.busy_seconds[number],
        sum(output.given for output in operator.outputs if not output.failures),
        sum(output.given for output in operator.outputs if output.failures),
        tuple(_edge(port, sources.get(Target(number, port.number))) for port in operator.inputs),
        _text(min(held)) if held else "",
        _text(min(frontier)) if frontier else "",
        operator.active,
        operator.kept,
    )


def _edge(port: InputPort, source: Source | None) -> EdgeReading:
    local = int(port.local_records * port.width)
    return EdgeReading(
        -1 if source is None else source.node,
        0 if source is None else source.port,
        port.number,
        port.messages,
        port.local_records + port.remote_records,
        port.remote_records,
        port.remote_bytes + local,
        len(port.queue),
    )


def read_state(stateful: Stateful) -> StateReading:
    """A reading of the state of one operator. O(shards)."""
    sizes = stateful.durable.sizes()
    here = sizes[sizes > 0]
    quantiles = np.quantile(here, _QUANTILES).astype(int).tolist() if here.size else [0] * len(_QUANTILES)
    placed: list[tuple[int, int]] = []
    groups = stateful.durable.shards
    if stateful.placement is not None:
        sizes_of = stateful.placement.groups()
        firsts, groups = np.cumsum(sizes_of) - sizes_of, len(sizes_of)
        counts = np.bincount(stateful.placement.workers()[firsts])
        placed = [(worker, count) for worker, count in enumerate(counts.tolist()) if count]
    last = None if stateful.steering is None else stateful.steering.last
    movement = ""
    if last is not None:
        movement = f"to {_short(last.to)}, {last.strategy}: {last.shards_done} of {last.shards} moved"
    if last is not None and last.failure:
        movement += f"; {last.failure}"
    return StateReading(
        stateful.name,
        stateful.durable.shards,
        int(here.size),
        int(here.sum()),
        tuple(quantiles),
        stateful.steering is not None,
        groups,
        tuple(placed),
        movement,
        last is not None and last.under_way,
    )


def _cause(why: int, names: dict[int, str]) -> str:
    if why == ON_ITS_WAY:
        return "data on its way"
    return f"sinks of {names.get(why, f'dataflow {why}')}"


def _short(words: str) -> str:
    return words if len(words) <= 40 else f"{words[:39]}…"


def _text(time: Time) -> str:
    return "" if time is None else str(time)


def _difference(came: Time, left: Time) -> float:
    numbers = isinstance(came, int) and isinstance(left, int)
    return max(0.0, float(came - left)) if numbers else -1.0


def _memory() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):  # another system than Linux
        return 0


def _run_delay() -> float:
    try:
        with open("/proc/self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return -1.0
