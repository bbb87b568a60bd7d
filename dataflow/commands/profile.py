"""`python -m dataflow profile RUN`: where each worker's time goes, by operator."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from dataflow.commands.asking import Status, Subparsers, WrongCommand, add_command
from dataflow.commands.tables import make_table
from dataflow.run.readings import OperatorReading, WorkerReading

_EXAMPLES = """\
  python -m dataflow profile app                  for five seconds
  python -m dataflow profile app --seconds 60 --most 10

`progress and messages` is what the engine itself took; `idle` is when there was nothing to do, or main computed.
"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "profile",
        _command,
        "where each worker's time goes, by operator",
        "Shows how much of some seconds each operator took on each worker, and how many records it dealt with.",
        _EXAMPLES,
    )
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="for how long (default: 5)")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="operators to show (default: 20)")


def _command(options: argparse.Namespace) -> int:
    if not 0 < options.seconds <= 3600 or options.most < 1:
        raise WrongCommand("--seconds is more than 0 and at most 3600, and --most at least 1")
    before = Status(options.run)
    time.sleep(options.seconds)
    after = Status(options.run)
    earlier = {worker.worker: worker for worker in before.workers}
    for worker in after.workers:
        if worker.worker in earlier and earlier[worker.worker].pid == worker.pid:
            print("\n".join(profile(earlier[worker.worker], worker, options.most)))
            print()
    return 0


def profile(before: WorkerReading, after: WorkerReading, most: int) -> Iterator[str]:
    """One worker, from one reading to the next."""
    length = max(1e-9, after.when - before.when)
    old = {(part.name, each.number): each for part in before.dataflows for each in part.operators}
    rows: list[tuple[float, list[str]]] = []
    inside = 0.0
    for part in after.dataflows:
        for each in part.operators:
            was = old.get((part.name, each.number))
            busy = each.busy - (was.busy if was else 0.0)
            records = each.records_in - (was.records_in if was else 0)
            messages = _messages(each) - (_messages(was) if was else 0)
            inside += busy
            rate = f"{records / busy:,.0f}" if busy > 0 and records else ""
            row = [f"{busy / length:.1%}", f"{records / length:,.0f}", rate, f"{messages / length:,.0f}"]
            rows.append((busy, [*row, f"{part.name}: {each.name} (#{each.number})"]))
    turned = after.busy - before.busy
    rows.append((turned - inside, [f"{max(0.0, turned - inside) / length:.1%}", "", "", "", "progress and messages"]))
    rows.sort(key=lambda row: -row[0])
    idle = max(0.0, length - turned)
    rows.append((idle, [f"{idle / length:.1%}", "", "", "", "idle"]))
    yield f"worker {after.worker} (process {after.pid}), {length:.1f} s"
    heads = ["share", "records/s", "per busy s", "messages/s", "operator"]
    yield from make_table(heads, [row for _, row in rows[: most + 2]], right=4)


def _messages(operator: OperatorReading) -> int:
    return sum(edge.messages for edge in operator.edges)
