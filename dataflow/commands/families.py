"""Readings of a run as metrics in the format of Prometheus. The list is documented in docs/operating.md, and stable: a
test compares the two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from dataflow.commands.asking import Status
from dataflow.run.meters import BOUNDS
from dataflow.run.readings import DataflowReading, WorkerReading
from dataflow.run.reasons import find_reasons

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_WORKER = ("run", "worker")
_DATAFLOW = (*_WORKER, "dataflow")
_OPERATOR = (*_DATAFLOW, "operator", "number")
_EDGE = (*_OPERATOR, "input", "source")
_STATE = (*_DATAFLOW, "operator")

COUNTER, GAUGE = "counter", "gauge"


@dataclass(slots=True)
class Family:
    """One metric: its name without `_total`, kind, labels and values."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    samples: list[tuple[tuple[str, ...], float]] = field(default_factory=list)

    def set(self, labels: tuple[str, ...], value: float) -> None:
        """The value for these labels."""
        self.samples = [sample for sample in self.samples if sample[0] != labels]
        self.add(labels, value)

    def add(self, labels: tuple[str, ...], value: float) -> None:
        """One more value."""
        self.samples.append((labels, value))


class Families:
    """All metrics of one look at a run."""

    def __init__(self) -> None:
        self._by_name = {
            name: Family(f"dataflow_{name}", kind, help, labels) for name, kind, labels, help in _DECLARED
        }
        self.latencies: list[tuple[tuple[str, ...], DataflowReading]] = []

    def __getitem__(self, name: str) -> Family:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Family]:
        return iter(self._by_name.values())


_DECLARED = (
    ("up", GAUGE, ("run",), "1 if the run answers."),
    ("workers", GAUGE, ("run",), "Workers of the run."),
    ("worker_up", GAUGE, _WORKER, "1 if the worker answers."),
    ("worker_start_time_seconds", GAUGE, _WORKER, "When the worker began, in seconds since 1970."),
    ("worker_busy_seconds", COUNTER, _WORKER, "Seconds in turns: operators, progress, messages."),
    ("worker_idle_seconds", COUNTER, _WORKER, "Seconds in which there was nothing to do, or main computed."),
    ("worker_waiting_seconds", COUNTER, _WORKER, "Seconds that sources and main waited for room, added up."),
    ("worker_cpu_seconds", COUNTER, _WORKER, "Processor time of the worker's process."),
    ("worker_stalled_seconds", COUNTER, _WORKER, "Seconds in which the host did not let the worker run."),
    ("worker_longest_turn_seconds", GAUGE, _WORKER, "The longest turn so far."),
    ("worker_memory_bytes", GAUGE, _WORKER, "Resident memory."),
    ("worker_on_its_way_bytes", GAUGE, _WORKER, "Bytes sent to other workers and not taken."),
    ("worker_limit_bytes", GAUGE, _WORKER, "From how many of these on sources wait."),
    ("pressure", GAUGE, (*_WORKER, "by", "cause"), "1 while `by` makes sources wait, because of `cause`."),
    ("slow", GAUGE, ("run", "kind", "worker", "dataflow", "operator"), "1 for each cause that makes the run slow."),
    ("events", COUNTER, (*_WORKER, "kind"), "Migrations, snapshots, recoveries, memberships, by kind."),
    ("input_time", GAUGE, _DATAFLOW, "Where the worker's inputs are, where times are numbers."),
    ("output_time", GAUGE, _DATAFLOW, "The least time that is not complete, where times are numbers."),
    ("lag_time", GAUGE, _DATAFLOW, "The difference of the two."),
    ("lag_seconds", GAUGE, _DATAFLOW, "For how long a time has been complete here and not everywhere."),
    ("operator_busy_seconds", COUNTER, _OPERATOR, "Seconds in its steps."),
    ("operator_records_out", COUNTER, _OPERATOR, "Records that it gave."),
    ("operator_failed", COUNTER, _OPERATOR, "Records at which it raised, and which went to a stream of errors."),
    ("edge_messages", COUNTER, _EDGE, "Messages that came to an input."),
    ("edge_records", COUNTER, _EDGE, "Records that came to an input."),
    ("edge_remote_records", COUNTER, _EDGE, "Those from other workers."),
    ("edge_bytes", COUNTER, _EDGE, "Bytes that came to an input; estimated for those of the same worker."),
    ("edge_queued", GAUGE, _EDGE, "Messages that wait at an input."),
    ("state_bytes", GAUGE, _STATE, "Bytes of state."),
    ("state_shards", GAUGE, _STATE, "Shards (bins) that have something here."),
    ("state_shard_bytes", GAUGE, (*_STATE, "quantile"), "Quantiles of the bytes of shards that are here."),
    ("migration_under_way", GAUGE, _STATE, "1 while a migration that was asked for from outside is under way."),
)
LATENCY = "dataflow_latency_seconds"
NAMES = [f"dataflow_{name}{'_total' * (kind == COUNTER)}" for name, kind, _, _ in _DECLARED] + [LATENCY]


def families(run: str, status: Status | None, before: Status | None = None) -> Families:
    """Everything that a run says of itself; None if it does not answer. `before`: what it said when it was last
    asked."""
    found = Families()
    found["up"].add((run,), float(status is not None))
    if status is None:
        return found
    for reason in {*find_reasons(before.workers if before else (), status.workers, status.silent)}:
        if reason.level != "calm":
            who = str(reason.worker) if reason.worker >= 0 else ""
            found["slow"].set((run, reason.kind, who, reason.dataflow, reason.operator), 1.0)
    workers = status.facts["workers"]
    found["workers"].add((run,), float(workers) if isinstance(workers, int) else 0.0)
    for name in status.silent:
        found["worker_up"].add((run, name.removeprefix("worker ")), 0.0)
    for worker in status.workers:
        add_worker(found, (run, str(worker.worker)), worker)
        for part in worker.dataflows:
            _add_dataflow(found, (run, str(worker.worker), part.name), part)
    return found


def add_worker(found: Families, labels: tuple[str, ...], worker: WorkerReading) -> None:
    """What a worker counts beside its dataflows."""
    values = {
        "worker_up": 1.0,
        "worker_start_time_seconds": worker.since,
        "worker_busy_seconds": worker.busy,
        "worker_idle_seconds": worker.idle,
        "worker_waiting_seconds": worker.waiting,
        "worker_cpu_seconds": worker.cpu,
        "worker_longest_turn_seconds": worker.longest_turn,
        "worker_memory_bytes": worker.memory,
        "worker_on_its_way_bytes": worker.on_its_way,
        "worker_limit_bytes": worker.limit,
    }
    if worker.run_delay >= 0:
        values["worker_stalled_seconds"] = worker.run_delay
    for name, value in values.items():
        found[name].add(labels, float(value))
    for who, cause in worker.pressing:
        found["pressure"].add((*labels, str(who), cause), 1.0)
    for kind, count in worker.marked:
        found["events"].add((*labels, kind), float(count))


def _add_dataflow(found: Families, labels: tuple[str, ...], part: DataflowReading) -> None:
    found.latencies.append((labels, part))
    for name, text in (("input_time", part.input_time), ("output_time", part.output_time)):
        if text.lstrip("-").isdigit():
            found[name].add(labels, float(text))
    if part.lag >= 0:
        found["lag_time"].add(labels, part.lag)
    found["lag_seconds"].add(labels, part.lag_seconds)
    for each in part.operators:
        mine = (*labels, each.name, str(each.number))
        found["operator_busy_seconds"].add(mine, each.busy)
        found["operator_records_out"].add(mine, each.records_out)
        found["operator_failed"].add(mine, each.failed)
        for edge in each.edges:
            its = (*mine, str(edge.port), f"{edge.source}.{edge.source_port}")
            found["edge_messages"].add(its, edge.messages)
            found["edge_records"].add(its, edge.records)
            found["edge_remote_records"].add(its, edge.remote_records)
            found["edge_bytes"].add(its, edge.bytes)
            found["edge_queued"].add(its, edge.queued)
    for state in part.state:
        mine = (*labels, state.name)
        found["state_bytes"].add(mine, state.bytes)
        found["state_shards"].add(mine, state.here)
        found["migration_under_way"].add(mine, float(state.moving))
        for quantile, size in zip(("0.5", "0.9", "0.99", "1"), state.quantiles, strict=True):
            found["state_shard_bytes"].add((*mine, quantile), size)


def as_prometheus(found: Families) -> Iterator[Metric]:
    """As the client library wants them."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    for family in found:
        made = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
        metric = made(family.name, family.help, labels=family.labels)
        for labels, value in family.samples:
            metric.add_metric(labels, value)
        yield metric
    help = "How long a time took from when a worker's inputs had left it until it was complete everywhere (samples)."
    histogram = HistogramMetricFamily(LATENCY, help, labels=_DATAFLOW)
    for labels, part in found.latencies:
        if part.latency_counts:
            bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
            buckets = [*zip(bounds, map(float, accumulate(part.latency_counts)), strict=True)]
            histogram.add_metric(labels, buckets, part.latency_sum)
    yield histogram
