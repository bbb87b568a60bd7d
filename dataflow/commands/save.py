"""`python -m dataflow save RUN NAME`: a snapshot of a running program now, kept under a name."""

from __future__ import annotations

import argparse

from dataflow.asking.client import ask_run
from dataflow.asking.messages import Question
from dataflow.comm.codec import require_list
from dataflow.commands.asking import WrongCommand, add_run

_MARGIN = 10.0  # seconds for the run to say that its time is over

_EPILOG = """\
  python -m dataflow run app:main --workers 2 --recovery state/ --name app
  python -m dataflow save app before-the-change                                from another shell
  python -m dataflow run app2:main --recovery state-2/ --from state/#before-the-change

exit status: 0 when it is durable, 1 when there is none (the message says why), 2 for a wrong command
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "save",
        help="make a savepoint of a running program",
        description="Has a run take a snapshot now, and keeps it under a name until it is deleted by that name.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser, _command)
    parser.add_argument("name", metavar="NAME", help="what the savepoint is to be called")
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="wait no longer (default: 60); then there is none",
    )


def _command(options: argparse.Namespace) -> int:
    if not options.timeout > 0 or not options.name:
        raise WrongCommand("--timeout must be more than 0, and a savepoint needs a name")
    question = Question("save", {"name": options.name, "timeout": options.timeout})
    for each in require_list(ask_run(options.run, question, options.timeout + _MARGIN)):
        dataflow, number, time = require_list(each, 3)
        print(f"{dataflow}: snapshot {number}, at time {time}, is kept as {options.name}")
    return 0
