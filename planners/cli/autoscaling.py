"""``python -m planners autoscale APP``: how many workers a run needs, from its own counters, and asks for them."""

from __future__ import annotations

import argparse
import time

from planners.cli.living import tell
from planners.errors import BadRequest

EVERY = 10.0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser("autoscale", help="have as many workers in a run as its rates need")
    parser.add_argument("run", metavar="APP", help="its name (python -m dataflow list)")
    parser.add_argument("--every", type=float, default=EVERY, help="seconds of an interval (10)")
    parser.add_argument("--utilisation", type=float, default=0.8, help="how busy workers should be (0.8)")
    parser.add_argument("--minimum", type=int, default=1, help="how few workers there may be (1)")
    parser.add_argument("--maximum", type=int, default=8, help="how many workers there may be (8)")
    parser.add_argument("--warm-up", type=int, default=1, help="intervals that are ignored after each change (1)")
    parser.add_argument("--activation", type=int, default=1, help="intervals whose median counts (1)")
    parser.add_argument("--cool-down", type=int, default=3, help="intervals after a change without shrinking (3)")
    parser.add_argument("--hysteresis", type=float, default=0.1, help="what must be to spare to shrink (0.1)")
    parser.add_argument(
        "--offered", action="append", default=[], metavar="SOURCE=RATE",
        help="records per second that there are to bring in, if you know (what it brings in when it does not wait)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="decide, say why, and ask for nothing")
    parser.add_argument("--seconds", type=float, help="end after so many seconds (when the run ends)")


def autoscale(options: argparse.Namespace) -> int:
    """Runs beside the run until that ends."""
    from dataflow.errors import DataflowError
    from planners.live.autoscale import RunningWorkers, ScalingBeside, read_offered
    from planners.scaling.autoscaler import Autoscaler, ScaleSettings

    if not options.every > 0:
        raise BadRequest(f"--every is a number of seconds above 0, not {options.every}")
    settings = ScaleSettings(
        options.utilisation, options.minimum, options.maximum, options.warm_up, options.activation, options.cool_down,
        options.hysteresis,
    )  # fmt: skip
    offered = read_offered(options.offered)
    try:
        workers = RunningWorkers(options.run)
        beside = ScalingBeside(workers, Autoscaler(settings), dry_run=options.dry_run, offered=lambda: offered)
        end = None if options.seconds is None else time.monotonic() + options.seconds
        beside.run(options.every, tell, lambda: end is not None and time.monotonic() >= end)
    except DataflowError as error:
        raise BadRequest(str(error)) from None
    except KeyboardInterrupt:
        tell("ended; the run goes on")
    return 0
