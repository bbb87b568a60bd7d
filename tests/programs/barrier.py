"""Timely dataflow's barrier: a loop without any record, in which every worker waits for the notification of round i
before it asks for round i + 1. No worker is in round i + 1 before all have been told of round i."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import monotonic_ns
from typing import Any

import dataflow
from dataflow.lowlevel import Context, InputPort, OutputPort
from tests.programs.running import Run, require


def build(scope: dataflow.Scope, rounds: int, on_round: Any) -> None:
    """Calls `on_round(i)` when every worker has been called with i - 1."""

    def make(context: Context) -> Any:
        due = context.notificator()
        start: list[Any] = [context.capability()]

        def step(input: InputPort, output: OutputPort) -> None:
            if start:
                due.notify_at(start.pop())
            for capability in due:
                on_round(capability.time)
                if capability.time + 1 < rounds:
                    due.notify_at(capability.delayed(capability.time + 1))

        return step

    loop, cycle = scope.feedback(1)
    cycle.unary("barrier", make, frontier=True, initial=True).connect_loop(loop)


async def main(worker: dataflow.Worker, rounds: int, draw: Callable[[], int]) -> list[Any]:
    """Returns (ticket, round) in the order of this worker; what one worker draws after another is not less."""
    log: list[Any] = []
    with worker.dataflow("barrier") as scope:
        build(scope, rounds, lambda round: log.append((draw(), round)))
    return log


def check(run: Run, chance: Random) -> None:
    """Each worker saw every round once and in order, and the rounds of different workers do not overlap."""
    rounds = chance.randint(1, 12)
    logs = run(main, rounds, monotonic_ns)  # a clock, not a counter: workers may be processes
    for worker, log in enumerate(logs):
        seen = [round for _, round in log]
        require(seen == list(range(rounds)), f"worker {worker} went through rounds {seen}, not {rounds} of them")
    in_order = [round for _, round in sorted(entry for log in logs for entry in log)]
    require(in_order == sorted(in_order), f"a worker went ahead of the others: {in_order}")
