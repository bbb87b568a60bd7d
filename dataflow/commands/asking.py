"""What all commands have in common that ask a run something: its name on the command line, and errors as one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list, require_mapping
from dataflow.errors import DataflowError
from dataflow.run.readings import WorkerReading

PATIENCE = 15.0  # seconds for a run to answer: a worker answers between two steps
Subparsers = argparse._SubParsersAction  # argparse has no public name for it

_STATUS = "\n\nexit status: 0 when the run has answered, 1 when not (the message says why), 2 for a wrong command\n"


def add_command(
    commands: Subparsers[argparse.ArgumentParser],
    name: str,
    command: Callable[[argparse.Namespace], int],
    help: str,
    description: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Adds a command whose first argument is the name of a run."""
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=examples.rstrip() + _STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=lambda options: told(command, options))
    parser.add_argument("run", metavar="RUN", help="its name (python -m dataflow list)")
    return parser


def told(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Runs a command; what goes wrong is one line on standard error."""
    try:
        return command(options)
    except (DataflowError, ValueError) as error:
        print(f"dataflow: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1


class Status:
    """What a run says of itself, checked."""

    def __init__(self, run: str) -> None:
        facts, readings, silent = require_list(ask_run(run, Question("status"), PATIENCE), 3)
        self.facts = {str(key): value for key, value in require_mapping(facts).items()}
        self.silent = {f"worker {key}": str(value) for key, value in require_mapping(silent).items()}
        self.workers = [_reading(each) for each in require_list(readings)]


def _reading(given: object) -> WorkerReading:
    if not isinstance(given, WorkerReading):
        raise ValueError("the run answers something else: use the same version of dataflow as it does")
    return given
