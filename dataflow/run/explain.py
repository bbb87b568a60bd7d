"""For a dataflow that seems stuck: what is outstanding, who holds it, and what waits for it; and where its state is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from time import time as wall_clock
from typing import TYPE_CHECKING

import numpy as np

from dataflow.build.hooks import Stateful
from dataflow.progress.graph import Location, Source
from dataflow.progress.reach import path_summaries
from dataflow.progress.tracker import Pointstamp
from dataflow.time.order import Time, less_equal

if TYPE_CHECKING:
    from dataflow.operators.probe import Probe
    from dataflow.run.dataflow import Dataflow
    from dataflow.run.pump import Pump


Dates = Mapping[Pointstamp, float]
"""Since when (wall clock) pointstamps are there."""


def explain(pump: Pump, dates: Mapping[int, Dates] | None = None) -> str:
    """A few lines for each dataflow that is not complete. `dates`: by dataflow, since when pointstamps are there."""
    lines = [f"worker {pump.index} of {pump.peers}:"]
    for dataflow in pump.dataflows:
        lines += [f"  {line}" for line in explain_dataflow(dataflow, (dates or {}).get(dataflow.number, {}))]
    if not pump.dataflows:
        lines.append("  every dataflow is complete")
    lines += [f"  {line}" for line in _unbuilt(pump)]
    return "\n".join(lines)


def warn_if_stuck(pump: Pump) -> None:
    """Says on standard error that a computation cannot end: main has returned, and an operator keeps a capability.

    Says nothing while a source may still send: then it may well take for ever.
    """
    for dataflow in pump.dataflows:
        held = [dataflow.graph.locations[index] for index, _ in dataflow.tracker.pointstamps()]
        if dataflow.busy or any(not dataflow.graph.nodes[location.node].inputs for location in held):
            return
    print(f"main has returned, and the computation does not end:\n{explain(pump)}", file=sys.stderr)


def explain_dataflow(dataflow: Dataflow, dates: Dates) -> Iterator[str]:
    """What holds this dataflow, as this worker sees it."""
    yield f"{dataflow.name!r}: {len(dataflow.operators)} operators, {'busy' if dataflow.busy else 'idle'}"
    yield from (f"  {_state(operator)}" for operator in dataflow.hooks)
    outstanding, now = dataflow.tracker.pointstamps().items(), wall_clock()
    for (index, time), count in sorted(outstanding, key=lambda item: item[0]):  # times compare at one location only
        since = dates.get((index, time))
        age = "" if since is None else f", for {max(0.0, now - since):.1f} s"
        yield f"  {_pointstamp(dataflow, dataflow.graph.locations[index], time, count)}{age}"
    for number in dataflow.runnable:
        yield f"  {dataflow.operators[number].label} is about to run"
    for probe in dataflow.probes:
        yield from (f"  {line}" for line in _waits(dataflow, probe))


def _state(operator: Stateful) -> str:
    sizes = operator.durable.sizes()
    here = f"{np.count_nonzero(sizes)} here with about {int(sizes.sum()):,} bytes"
    line = f"{operator.name} keeps state in {operator.durable.shards} shards, {here}"
    if operator.placement is None:
        return line
    workers, counts = np.unique(operator.placement.workers(), return_counts=True)
    has = [f"worker {worker} has {count}" for worker, count in zip(workers.tolist(), counts.tolist(), strict=True)]
    return f"{line}; {', '.join(has)}"


def _pointstamp(dataflow: Dataflow, location: Location, time: Time, count: int) -> str:
    operator = dataflow.operators[location.node]
    if isinstance(location, Source):
        here = operator.outputs[location.port].held.get(time, 0)
        kind = "capability" if count == 1 else "capabilities"
        hint = "" if operator.inputs else ": not advanced past it, nor closed"
        if count < 0:
            return f"{operator.label} dropped {-count} {kind} at {time!r} that this worker has not heard of yet"
        return f"{operator.label} holds {count} {kind} at {time!r}{_where(dataflow, count, here)}{hint}"
    if count < 0:
        return f"{-count} messages at {time!r} to {operator.label} were taken that this worker has not heard of yet"
    queued = sum(1 for t, _ in operator.inputs[location.port].queue if t == time)
    kind = "message" if count == 1 else "messages"
    where = f"{queued} queued on this worker" if queued else "on other workers, or on the way"
    return f"{count} {kind} at {time!r} to {operator.label} ({where})"


def _where(dataflow: Dataflow, count: int, here: int) -> str:
    if dataflow.pump.peers == 1 and not here:
        return ""  # counted, but not by one of its outputs: nothing to say
    if count == 1:
        return " (on this worker)" if here else " (on another worker)"
    return f" ({here} of them on this worker)"


def _waits(dataflow: Dataflow, probe: Probe) -> Iterator[str]:
    for awaited in probe.awaited:
        held = [f"{dataflow.operators[at.node].label} at {time!r}" for at, time in holders(dataflow, probe, awaited)]
        yield f"somebody waits for {probe!r} to pass {awaited!r}; held by {', '.join(held) or 'nothing any more'}"


def holders(dataflow: Dataflow, probe: Probe, awaited: Time) -> Iterator[tuple[Location, Time]]:
    """The pointstamps that keep a probe from passing a time."""
    for (index, time), count in dataflow.tracker.pointstamps().items():
        location = dataflow.graph.locations[index]
        if count > 0 and _holds(dataflow, location, time, probe.source, awaited):
            yield location, time


def _holds(dataflow: Dataflow, location: Location, time: Time, end: Location, awaited: Time) -> bool:
    outcomes = (path.results_in(time) for path in path_summaries(dataflow.graph, location).get(end, ()))
    return any(outcome is not None and less_equal(outcome, awaited) for outcome in outcomes)


def _unbuilt(pump: Pump) -> Iterator[str]:
    for number, senders in pump.unbuilt.items():
        yield f"worker {', '.join(map(str, sorted(senders)))} built dataflow number {number}; this worker has not"
