"""`python -m dataflow top RUN`: a run, live in the terminal."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from textwrap import wrap

from dataflow.commands.asking import Status, Subparsers, WrongCommand, add_command, reasons_between
from dataflow.commands.status import by_dataflow
from dataflow.commands.tables import duration_text, make_table
from dataflow.run.readings import DataflowReading, OperatorReading, WorkerReading, seconds_between
from dataflow.text import size_text

_EXAMPLES = """\
  python -m dataflow top app
  python -m dataflow top app --every 5
  python -m dataflow top app --frames 1           one look, for a script

Ctrl-C ends it; the run goes on.
"""
_SIGNS = {"bad": "!!", "warn": "! ", "calm": "  "}
_CLEAR, _REST = "\033[H", "\033[J"


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "top",
        _command,
        "a run, live in the terminal",
        "Shows rates, latency, how far behind times are, queues, memory, where bins are, and migrations; again and "
        "again.",
        _EXAMPLES,
    )
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between two looks (default: 1)")
    parser.add_argument("--frames", type=int, metavar="N", help="end after so many")


def _command(options: argparse.Namespace) -> int:
    if not 0 < options.every <= 3600 or (options.frames is not None and options.frames < 1):
        raise WrongCommand("--every is more than 0 and at most 3600, and --frames at least 1")
    terminal = sys.stdout.isatty()
    before, shown = Status(options.run), 0
    while options.frames is None or shown < options.frames:
        time.sleep(options.every)
        now = Status(options.run)
        lines = [*frame(before, now)]
        if terminal:
            width, height = shutil.get_terminal_size()
            lines = [f"{line}\033[K" for line in fit(lines, width)[: height - 1]]
            print(_CLEAR + "\n".join(lines) + _REST, end="", flush=True)
        else:
            print("\n".join(lines), flush=True)
        before, shown = now, shown + 1
    return 0


def fit(lines: Sequence[str], width: int) -> list[str]:
    """Lines as a terminal has room for: those of tables are cut; sentences go on below, for their end may say why.

    >>> fit(["!! sources wait for worker 1", "", "busy  operator that is long"], 20)
    ['!! sources wait for', '   worker 1', '', 'busy  operator that ']
    """
    found: list[str] = []
    for line in lines:
        is_row = "  " in line.lstrip("! ")  # columns are two spaces apart
        found += [line[:width]] if is_row or len(line) <= width else wrap(line, max(width, 20), subsequent_indent="   ")
    return found


def frame(before: Status, now: Status) -> Iterator[str]:
    """One look, with the rates since the one before."""
    facts, since = now.facts, now.facts["since"]
    age = duration_text(max(0.0, time.time() - since)) if isinstance(since, float) else "?"
    clock = time.strftime("%H:%M:%S")
    yield f"{facts['name']}: {facts['workers']} workers, for {age}; {clock}"
    old = {(worker.worker, worker.pid): worker for worker in before.workers}
    yield from make_table(
        ["worker", "busy", "cpu", "host stalls", "memory", "on its way", "pressure"],
        [_worker(old.get((worker.worker, worker.pid)), worker) for worker in now.workers],
    )
    yield from (f"{_SIGNS[reason.level]} {reason.text}" for reason in reasons_between(before, now))
    earlier = by_dataflow(before.workers)
    for name, parts in by_dataflow(now.workers).items():
        yield ""
        yield from _dataflow(name, earlier.get(name, parts), parts, _length(before, now))


def _length(before: Status, now: Status) -> float:
    old = {(worker.worker, worker.pid): worker for worker in before.workers}
    return max((seconds_between(old.get((each.worker, each.pid)), each) for each in now.workers), default=1.0)


def _worker(was: WorkerReading | None, now: WorkerReading) -> list[str]:
    length = seconds_between(was, now)
    stalled = now.run_delay - (was.run_delay if was else 0.0)
    return [
        str(now.worker),
        f"{(now.busy - (was.busy if was else 0.0)) / length:.0%}",
        f"{(now.cpu - (was.cpu if was else 0.0)) / length:.0%}",
        f"{max(0.0, stalled) / length:.0%}" if now.run_delay >= 0 else "",
        size_text(now.memory),
        f"{size_text(now.on_its_way)} of {size_text(now.limit)}",
        ", ".join(f"worker {who}: {why}" for who, why in now.pressing) or "none",
    ]


def latencies(parts: list[DataflowReading], since: float) -> list[float]:
    """The samples of all workers after a moment, sorted."""
    return sorted(seconds for part in parts for when, seconds in part.latencies if when > since)


def _dataflow(
    name: str, before: list[DataflowReading], parts: list[DataflowReading], length: float
) -> Iterator[str]:
    slowest = max(parts, key=lambda part: part.lag_seconds)
    samples = latencies(parts, time.time() - max(10.0, 3 * length))
    told = ""
    if samples:
        middle, high = samples[len(samples) // 2], samples[min(len(samples) - 1, int(0.99 * len(samples)))]
        told = f"; latency {1000 * middle:.2f} ms, .99 {1000 * high:.2f} ms, largest {1000 * samples[-1]:.2f} ms"
    lag = f" ({slowest.lag:g} behind)" if slowest.lag >= 0 else ""
    yield (
        f"{name}: inputs at {slowest.input_time or 'their end'}, complete before "
        f"{slowest.output_time or 'its end'}{lag}, {slowest.lag_seconds:.3f} s{told}"
    )
    old = {(at, each.number): each for at, part in enumerate(before) for each in part.operators}
    rows = []
    for group in zip(*(part.operators for part in parts), strict=False):
        was = [old.get((at, each.number)) for at, each in enumerate(group)]
        rows.append(_operator(was, group, length))
    rows.sort(key=lambda row: -row[0])
    yield from make_table(["busy", "records/s", "out/s", "queued", "operator"], [row for _, row in rows], right=4)
    for states in zip(*(part.state for part in parts), strict=False):
        first = states[0]
        placed = ", ".join(f"worker {worker}: {count}" for worker, count in first.placed)
        where = f"; bins by worker: {placed}" if placed else ""
        yield f"{first.name}: {size_text(sum(state.bytes for state in states))}{where}"
        yield from (f"  migration {state.movement}" for state in states if state.movement)


def _operator(
    was: list[OperatorReading | None], group: tuple[OperatorReading, ...], length: float
) -> tuple[float, list[str]]:
    busy = sum(now.busy - (old.busy if old else 0.0) for old, now in zip(was, group, strict=True))
    came = sum(now.records_in - (old.records_in if old else 0) for old, now in zip(was, group, strict=True))
    went = sum(now.records_out - (old.records_out if old else 0) for old, now in zip(was, group, strict=True))
    queued = sum(edge.queued for now in group for edge in now.edges)
    failed = sum(now.failed for now in group)
    label = f"{group[0].name} (#{group[0].number}){f', {failed:,} records failed' if failed else ''}"
    return busy, [f"{busy / length:.0%}", f"{came / length:,.0f}", f"{went / length:,.0f}", str(queued), label]
