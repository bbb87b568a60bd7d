"""`python -m dataflow status RUN`: what a run has done so far, and how it is."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from dataflow.commands.asking import Status, Subparsers, add_command, look_twice
from dataflow.commands.tables import duration_text, make_table
from dataflow.run.readings import DataflowReading, OperatorReading, WorkerReading
from dataflow.run.reasons import Reason
from dataflow.text import size_text

_EXAMPLES = """\
  python -m dataflow status app
  python -m dataflow status app --json | jq '.workers[].dataflows[].lag_seconds'
  python -m dataflow status 10.0.0.1:9400 --secret secret.txt      a run on another host (its --control)
"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "status",
        _command,
        "what a run has done so far, and how it is",
        "Shows the workers of a run, its dataflows with their times, and its operators: records, time, state.",
        _EXAMPLES,
    )
    parser.add_argument("--json", action="store_true", help="everything that workers count, as JSON")


def _command(options: argparse.Namespace) -> int:
    status, reasons = look_twice(options.run)
    if options.json:
        workers = [asdict(worker) for worker in status.workers]
        told = [asdict(reason) for reason in reasons]
        everything = {"run": status.facts, "workers": workers, "silent": status.silent, "reasons": told}
        print(json.dumps(everything, indent=1))
    else:
        print("\n".join(show(status, reasons)))
    return 0


def show(status: Status, reasons: Sequence[Reason] = ()) -> Iterator[str]:
    """For people."""
    facts = status.facts
    since = facts["since"]
    age = duration_text(max(0.0, time.time() - since)) if isinstance(since, float) else "?"
    yield f"{facts['name']}: {facts['workers']} workers, process {facts['pid']}, for {age}"
    yield ""
    yield from make_table(
        ["worker", "process", "busy", "waiting", "cpu", "memory", "on its way", "pressure"],
        [_worker(worker) for worker in status.workers],
    )
    for worker, why in status.silent.items():
        yield f"{worker}: {why}"
    yield from (reason.text for reason in reasons if reason.kind != "silent")
    for name, parts in by_dataflow(status.workers).items():
        yield ""
        yield from _dataflow(name, parts)


def _worker(worker: WorkerReading) -> list[str]:
    lived = max(1e-9, worker.when - worker.since)
    return [
        str(worker.worker),
        str(worker.pid),
        f"{worker.busy / lived:.0%}",
        duration_text(worker.waiting),
        f"{worker.cpu:.1f} s",
        size_text(worker.memory),
        size_text(worker.on_its_way),
        ", ".join(f"worker {who}: {why}" for who, why in worker.pressing) or "none",
    ]


def by_dataflow(workers: Sequence[WorkerReading]) -> dict[str, list[DataflowReading]]:
    """By name, the parts of each dataflow on all workers."""
    found: dict[str, list[DataflowReading]] = {}
    for worker in workers:
        for part in worker.dataflows:
            found.setdefault(part.name, []).append(part)
    return found


def _dataflow(name: str, parts: list[DataflowReading]) -> Iterator[str]:
    slowest = max(parts, key=lambda part: part.lag_seconds)
    samples = sum(sum(part.latency_counts) for part in parts)
    mean = sum(part.latency_sum for part in parts) / samples if samples else 0.0
    yield (
        f"{name}: complete before {slowest.output_time or 'its end'}, inputs at {slowest.input_time or 'their end'}, "
        f"{slowest.lag_seconds:.3f} s behind; a time takes {1000 * mean:.2f} ms (mean of {samples} samples)"
    )
    yield from make_table(
        ["#", "operator", "records in", "out", "failed", "bytes in", "busy", "queued", "holds"],
        [_operator(group) for group in zip(*(part.operators for part in parts), strict=False)],
    )
    for states in zip(*(part.state for part in parts), strict=False):
        first = states[0]
        total, largest = sum(state.bytes for state in states), max(state.quantiles[-1] for state in states)
        placed = "".join(f"; worker {worker}: {count}" for worker, count in first.placed)
        coarse = f", {first.groups} bins" if first.groups < first.shards else ""
        used = f"{sum(state.here for state in states)} of {first.shards} shards{coarse}"
        yield f"{first.name}: {size_text(total)} of state, {used} in use, the largest {size_text(largest)}{placed}"
        for state in states:
            if state.movement:
                yield f"  migration {state.movement}"


def _operator(group: tuple[OperatorReading, ...]) -> list[str]:
    first = group[0]
    return [
        str(first.number),
        first.name,
        f"{sum(each.records_in for each in group):,}",
        f"{sum(each.records_out for each in group):,}",
        f"{failed:,}" if (failed := sum(each.failed for each in group)) else "",
        size_text(sum(edge.bytes for each in group for edge in each.edges)),
        f"{sum(each.busy for each in group):.2f} s",
        str(sum(edge.queued for each in group for edge in each.edges)),
        next((each.holds for each in group if each.holds), ""),
    ]
