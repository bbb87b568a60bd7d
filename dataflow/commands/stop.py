"""`python -m dataflow stop RUN`: ends a run, as SIGTERM would, and waits until it has."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress

from dataflow.asking.client import NoSuchRun, ask_run, list_runs
from dataflow.asking.elsewhere import Elsewhere
from dataflow.asking.messages import Question
from dataflow.commands.asking import PATIENCE, Subparsers, WrongCommand, add_command

_EXAMPLES = """\
  python -m dataflow stop app
  python -m dataflow stop app --save before-stopping      a savepoint first; the run goes on if there is none

All workers run their `finally` clauses, for two seconds at most. The run itself exits with 143. One that has --recovery
goes on from its last snapshot when it is started again.
"""
_LOOK = 0.05  # seconds between looks


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(
        commands, "stop", _command, "end a run", "Ends a run, and waits until it has ended.", _EXAMPLES
    )
    parser.add_argument("--save", metavar="NAME", help="make a savepoint first")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="for each of the two (default: 30)"
    )


def _command(options: argparse.Namespace) -> int:
    if not options.timeout > 0:
        raise WrongCommand("--timeout must be more than 0")
    if options.save is not None:
        question = Question("save", {"name": options.save, "timeout": options.timeout})
        ask_run(options.run, question, options.timeout + PATIENCE)
        print(f"{options.run}: kept as {options.save}")
    ask_run(options.run, Question("who"), PATIENCE)  # NoSuchRun here means that there is none to stop
    with suppress(NoSuchRun):  # it ended before the answer was sent, which is what we want to know
        ask_run(options.run, Question("stop"), options.timeout)
    deadline = time.monotonic() + options.timeout
    while _is_there(options.run):
        if time.monotonic() > deadline:
            raise NoSuchRun(f"{options.run!r} was told to stop, and is still there after {options.timeout:g} seconds")
        time.sleep(_LOOK)
    print(f"{options.run} has stopped")
    return 0


def _is_there(run: str) -> bool:
    """Whether a run has not ended yet."""
    if not isinstance(run, Elsewhere):
        return run in list_runs()
    try:
        ask_run(run, Question("who"), PATIENCE)
    except NoSuchRun:
        return False
    return True
