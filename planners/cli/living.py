"""``python -m planners live APP --tables DIR``: plans with tables that are made while the run goes on, beside it."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from pathlib import Path

from planners.errors import BadRequest

EVERY = 1.0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser("live", help="plan a run's migrations from tables that are made beside it, on Spark")
    parser.add_argument("run", metavar="APP", help="its name (python -m dataflow list)")
    parser.add_argument("--tables", required=True, type=Path, metavar="DIR", help="where logs and tables are kept")
    parser.add_argument("--operator", metavar="NAME", help="whose bins move (the one that can, if there is only one)")
    parser.add_argument("--nodes", metavar="LOW:HIGH", help="how many workers there may be (1 to all)")
    parser.add_argument("--capacity", type=float, help="what a worker bears in a second (0.8e9 nanoseconds)")
    parser.add_argument("--cost", choices=["nanoseconds", "records"], default="nanoseconds", help="what load is")
    parser.add_argument("--tau", type=float, default=0.5, help="how far a load may be above the mean (0.5)")
    parser.add_argument("--gamma", type=float, default=0.8, help="what a later migration counts for (0.8)")
    parser.add_argument("--drift", type=float, default=0.15, help="share of the load that may be elsewhere (0.15)")
    parser.add_argument("--grid", type=int, metavar="CELLS", help="cuts on a grid of so many cells only")
    parser.add_argument("--strategy", default="batched:64", metavar="HOW", help="in which steps bins move (batched:64)")
    parser.add_argument("--every", type=float, default=EVERY, help="seconds between looks (1)")
    parser.add_argument("--master", default="local[1]", help="where tables are made (local[1])")
    parser.add_argument("--seconds", type=float, help="end after so many seconds (when the run ends)")


def live(options: argparse.Namespace) -> int:
    """Runs beside the run until that ends."""
    from dataflow.errors import DataflowError
    from planners.live.beside import FULL, Beside, LiveSettings
    from planners.live.running import RunningOperator

    if not options.every > 0:
        raise BadRequest(f"--every is a number of seconds above 0, not {options.every}")
    try:
        name = options.operator or _only_operator(options.run)
        operator = RunningOperator(options.run, name, options.strategy)
        capacity = FULL if options.capacity is None else options.capacity
        settings = LiveSettings(
            _nodes(options.nodes, operator.peers), capacity, options.cost, options.tau, options.gamma, options.drift,
            options.grid, master=options.master,
        )  # fmt: skip
        beside = Beside(operator, options.tables, settings)
        print(f"{name}: {len(operator.counts)} bins on {operator.peers} workers; logs and tables in {options.tables}")
        end = None if options.seconds is None else time.monotonic() + options.seconds
        beside.run(options.every, tell, lambda: end is not None and time.monotonic() >= end)
    except DataflowError as error:
        raise BadRequest(str(error)) from None
    except KeyboardInterrupt:
        tell("ended; the run goes on")
    return 0


def tell(line: str) -> None:
    """Prints a line with the time of day."""
    print(f"{datetime.now():%H:%M:%S} {line}", flush=True)


def _nodes(text: str | None, workers: int) -> tuple[int, int]:
    if text is None:
        return 1, workers
    low, _, high = text.partition(":")
    if not (low.isdigit() and (high or low).isdigit()):
        raise BadRequest(f"--nodes is LOW:HIGH, two numbers of workers, not {text!r}")
    if int(high or low) > workers:
        raise BadRequest(f"--nodes says up to {high or low}, and the run has {workers} workers")
    return int(low), int(high or low)


def _only_operator(run: str) -> str:
    """The one operator of a run whose state can move."""
    from dataflow.commands.asking import Status

    found = {
        state.name
        for worker in Status(run).workers
        for flow in worker.dataflows
        for state in flow.state
        if state.movable
    }
    if len(found) != 1:
        known = ", ".join(sorted(found)) or "none"
        raise BadRequest(f"say --operator NAME, one whose state can move; there are: {known}")
    return found.pop()
